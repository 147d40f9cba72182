"""How a run can end before its task does: limits, signals, refusals, errors of the provider."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from process_program import Program, assert_well_formed, call, finish, still_runs

HELLO = {"text": "Hello.", "repeat": 100}
LOOKS = {"text": "{{position}}", "calls": [call("glob", pattern="{{position}}")], "repeat": 5}


@pytest.mark.parametrize(
    ("flags", "subtype", "said"),
    [
        (("--max-turns", "2"), "max_turns", "the limit of 2 model calls is reached"),
        (("--max-tokens", "3000"), "max_tokens", "the limit is 3,000"),
        (("--timeout", "0.7"), "timeout", "the time limit of 0.7 s is reached"),
    ],
    ids=["turns", "tokens", "time"],
)
def test_a_limit_ends_the_run_and_the_session_goes_on(
    program: Program, flags: tuple[str, ...], subtype: str, said: str
) -> None:
    slow = {"text": "slow", "delay": 60}
    model = program.script(LOOKS, slow, usage="estimate")
    done = program.run("-p", "look", "-m", model, *flags, "--output-format", "json")
    assert (done.code, done.result["subtype"], done.result["is_error"]) == (3, subtype, True)
    assert said in done.err
    assert_well_formed(program.log())
    again = program.inside("-c", "-p", "go on", "-m", program.script(HELLO), "--output-format", "json")
    assert (again.code, again.result["session_id"]) == (0, done.result["session_id"])
    assert_well_formed(program.log())


WAIT = "echo $$ >pid; touch started; while :; do sleep 0.1; done"


def appears(path: Path) -> None:
    """Waits for a file, which the program's child makes."""
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.01)


def test_an_interrupt_ends_the_run_in_order_with_what_it_started(program: Program) -> None:
    model = program.script({"text": "I wait.", "calls": [call("execute", command=WAIT), call("ls")]}, HELLO)
    with program.start("-p", "wait", "-m", model, "--yolo", "--output-format", "stream-json") as process:
        appears(program.repo / "started")
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert (done.code, done.result["subtype"], done.result["result"]) == (130, "interrupted", "I wait.")
    assert not still_runs(program.repo / "pid")
    log = program.log()
    assert_well_formed(log)
    assert [entry.kind for entry in log.entries[-3:]] == ["message", "message", "ended"], "a call has no result"
    assert program.inside("-c", "-p", "go on", "-m", model).out == "Hello.\n"


def test_what_an_answer_had_said_before_sigterm_is_kept(program: Program) -> None:
    model = program.script({"text": "One two three. " * 50, "pace": 0.02}, HELLO)
    debug = program.repo.parent / "debug"
    with program.start("-p", "talk", "-m", model, "--debug", debug) as process:
        appears(debug)
        while debug.read_text().count("TextArrived") < 5:
            time.sleep(0.01)
        process.terminate()
        assert finish(process).code == 143
    assert_well_formed(program.log())
    answer = program.messages()[-1]
    assert answer.role == "assistant" and answer.stop == "interrupted"
    assert answer.text.startswith("One two three. One")


def test_a_second_signal_ends_it_at_once(program: Program) -> None:
    model = program.script({"calls": [call("execute", command=f"trap '' TERM; {WAIT}")]})
    with program.start("-p", "wait", "-m", model, "--yolo") as process:
        appears(program.repo / "started")
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # two signals that come together are one
        process.send_signal(signal.SIGINT)
        assert process.wait(1.5) == 130
    assert_well_formed(program.log())


def test_a_signal_that_is_ignored_stays_so(program: Program) -> None:
    model = program.script({"calls": [call("execute", command="touch started; sleep 0.3")]}, HELLO)
    with program.start(
        "-p", "wait", "-m", model, "--yolo", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ) as process:
        appears(program.repo / "started")
        process.send_signal(signal.SIGHUP)
        assert finish(process).out == "Hello.\n"


def test_what_a_command_left_running_ends_with_the_run(program: Program) -> None:
    model = program.script({"calls": [call("execute", command="sleep 100 & echo $! >pid")]}, HELLO)
    assert program.run("-p", "start it", "-m", model, "--yolo").code == 0
    assert not still_runs(program.repo / "pid")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


DENIED = (
    call("execute", command="touch one"),
    call("execute", command="""touch 'it'"'"'s' "a b" && touch two"""),
    call("execute", command="cd . && touch three; echo $(date) | cat"),
    call("execute", command="touch four\nls -d *\n"),
    call("execute", command="ls * && touch five"),
    call("execute", command="touch six; echo '\x1b[31m\u202e\\'"),
    call("write_file", path="./seven", content="x"),
    call("write_file", path="eight [*] (1)", content="x"),
    call("write_file", path=".envrc", content="x"),
)
MADE = {"one", "it's", "a b", "two", "three", "four", "five", "six", "seven", "eight [*] (1)", ".envrc"}


def test_each_denial_names_the_rule_that_allows_the_call(program: Program) -> None:
    model = program.script({"calls": DENIED}, HELLO)
    before = names(program.repo)
    done = program.run("-p", "do it", "-m", model, "--output-format", "json")
    assert (done.code, done.result["subtype"], done.result["result"]) == (4, "success", "Hello.")
    assert names(program.repo) - before == {".deepagents"}
    said = [line.partition(" To allow it: ")[2] for line in done.err.splitlines()]
    given = subprocess.run(("bash", "-c", f"printf '%s\\0' {' '.join(said)}"), capture_output=True, check=True)
    flags = given.stdout.decode().split("\0")[:-1]
    assert flags == [
        word for denial in done.result["denials"] for rule in denial["rules"] for word in ("--allow", rule)
    ]
    assert len(done.result["denials"]) == len(DENIED)
    done = program.run("-p", "do it", "-m", model, *flags)
    assert (done.code, done.out, done.err) == (0, "Hello.\n", "")
    assert names(program.repo) - before == {".deepagents", *MADE}


def test_what_no_rule_could_allow_names_none(program: Program) -> None:
    model = program.script({"calls": [call("execute", command="touch made")]}, HELLO)
    done = program.inside("-p", "do it", "-m", model, "--permission-mode", "plan")
    assert done.code == 4
    assert "denied execute: in plan mode nothing is changed" in done.err
    assert "--allow" not in done.err


@pytest.mark.parametrize(
    ("kind", "code"),
    [("rate_limit", 75), ("server", 75), ("auth", 1), ("overflow", 1)],
)
def test_errors_of_the_provider_have_their_exit_codes(
    program: Program, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    error = {"kind": kind, "message": f"sorry: {kind}", "retry_after": 0.01}
    monkeypatch.setenv("DEEPAGENT_PROVIDER_RETRIES", "1")
    model = program.script({"error": error})
    done = (program.run if kind == "auth" else program.inside)("-p", "hi", "-m", model, "--output-format", "json")
    assert (done.code, done.result["subtype"]) == (code, "error")
    assert done.result["error"] == {"kind": kind, "message": f"sorry: {kind}"}
    assert f"deepagent: sorry: {kind}" in done.err.splitlines()
    assert done.err.count("trying again") == (kind != "auth"), "an overflow is met with a smaller request"


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "auth"), pytest.param(404, "unknown_model", marks=pytest.mark.long)]
)
def test_a_real_server_refuses(program: Program, status: int, kind: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"error": {"message": "no such thing as sk-very-secret-key"}}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        environ = program.with_env(
            OPENAI_BASE_URL=f"http://127.0.0.1:{http.server_address[1]}/v1", OPENAI_API_KEY="sk-very-secret-key"
        )
        done = program.run("-p", "hi", "-m", "openai/tiny", "--output-format", "json", env=environ)
        http.shutdown()
    assert (done.code, done.result["error"]["kind"]) == (1, kind), done.err
    assert "sk-very-secret-key" not in done.out + done.err
