"""Settings and command lines that make no sense: the exit code, one message that names the place, nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from deepagent.agent.local_servers import find_local_servers
from process_program import Done, Program

FORMATS = ("text", "json", "stream-json")
HELLO = {"text": "Hello."}


def assert_refused(run: Callable[..., Done], *args: str, code: int, said: str) -> None:
    """The program ends with `code`, says `said` on standard error, and standard output is what the format promises."""
    for output in FORMATS:
        done = run(*args, "--output-format", output)
        assert (done.code, said in done.err, "Traceback" in done.err) == (code, True, False), done.err
        if output == "text":
            assert done.out == ""
            continue
        (result,) = done.lines
        assert (result["type"], result["subtype"], result["is_error"]) == ("result", "error", True)
        assert said in result["error"]["message"]
        assert result["session_id"] is None, "a session was begun"


def test_no_prompt(program: Program) -> None:
    assert_refused(program.inside, "-p", code=2, said="there is no prompt")
    done = program.run("-p", "--output-format", "json")
    assert (done.code, done.result["error"]["kind"]) == (2, "usage")


def test_no_model_and_no_key(program: Program) -> None:
    done = program.run("-p", "hi")
    assert (done.code, done.out) == (1, "")
    for way in ("OPENAI_API_KEY=", "ANTHROPIC_API_KEY", "deepagent auth set openai", "deepagent demo"):
        assert way in done.err
    assert_refused(program.inside, "-p", "hi", "-m", "openai/gpt-5", code=1, said="OPENAI_API_KEY")


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that lists one model."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": [{"id": "tiny"}]}).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield http.server_address[1]
        http.shutdown()


async def test_a_local_server_that_listens_is_offered(server: int) -> None:
    from deepagent.cli.first_steps import first_steps

    (found,) = await find_local_servers((("Ollama", server),))
    text = await first_steps(lambda: find_local_servers((("Ollama", server),)))
    assert f"Ollama listens on {found.url}: tiny." in text
    assert f"OPENAI_BASE_URL={found.url}/v1 deepagent -m openai/tiny -p" in text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("-m", "scripted:missing.yaml"), "missing.yaml cannot be read: No such file or directory"),
        (("-m", "gtp-5"), "No provider is known for the model 'gtp-5'"),
        (("-m", "demo", "--max-cost", "1"), "--max-cost needs a price"),
        (("-m", "demo", "--compact-at", "7"), "command line: context.compact_at"),
        (("-m", "demo", "--allow", "rm -rf"), "'rm -rf' is no rule"),
        (("-m", "demo", "--debug", "missing/file"), "--debug: cannot write missing/file"),
        (("-m", "demo", "--add-dir", "a.txt"), "--add-dir: a.txt is no folder"),
        (("-m", "demo", "--fork"), "--fork needs --continue or --resume"),
    ],
    ids=["script", "model", "cost", "share", "rule", "debug", "folder", "fork"],
)
def test_a_command_line_that_makes_no_sense(program: Program, args: tuple[str, ...], said: str) -> None:
    assert_refused(program.inside, "-p", "hi", *args, code=2, said=said)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("sesions",), "'sesions' is no command; did you mean 'sessions'?"),
        (("-p", "x", "--output-format", "xml"), "'xml' is not one of 'text', 'json', 'stream-json'"),
        (("-p", "x", "--max-turns", "0"), "--max-turns"),
        (("-p", "x", "--no-such-flag"), "--no-such-flag"),
    ],
    ids=["typo", "format", "turns", "flag"],
)
def test_a_command_line_that_cannot_be_read(program: Program, args: tuple[str, ...], said: str) -> None:
    done = program.inside(*args)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = \n", ":1:9: is not valid TOML"),
        ("[context]\ncompact_it = 0.5\n", ":2: context.compact_it: is no setting; did you mean context.compact_at?"),
        ("[limits]\n\nmax_turns = 'many'\n", ":3: limits.max_turns: "),
        (None, ": cannot be read: not a regular file"),
    ],
    ids=["no TOML", "no key", "no value", "no file"],
)
def test_a_settings_file_that_makes_no_sense(program: Program, text: str | None, said: str) -> None:
    path = program.home / ".deepagents" / "deepagent.toml"
    path.parent.mkdir()
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    assert_refused(program.inside, "-p", "hi", "-m", "demo", code=2, said=f"{path}{said}")


def test_a_sub_command_says_the_same_of_settings(program: Program) -> None:
    path = program.home / ".deepagents" / "deepagent.toml"
    path.parent.mkdir()
    path.write_text("model = \n")
    done = program.run("config")
    assert (done.code, done.out) == (2, "")
    assert f"deepagent: {path}:1:9: is not valid TOML" in done.err


def test_a_variable_that_makes_no_sense(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPAGENT_LIMITS_MAX_TURNS", "none")
    assert_refused(program.inside, "-p", "hi", code=2, said="DEEPAGENT_LIMITS_MAX_TURNS: limits.max_turns: ")


def test_broken_skills_and_project_settings_are_said_and_the_run_goes_on(program: Program) -> None:
    program.commit(".deepagents/skills/broken/SKILL.md", "---\nname: [\n---\n")
    program.commit(".deepagents/deepagent.toml", "this is no TOML")
    done = program.run("-p", "hi", "-m", program.script(HELLO), "--output-format", "json")
    assert (done.code, done.result["result"], done.result["trusted"]) == (0, "Hello.", False)
    assert ".deepagents/skills/broken/SKILL.md" in done.err
    assert "this folder is not trusted: .deepagents/deepagent.toml was not applied" in done.err
    done = program.inside("-p", "hi", "-m", program.script(HELLO), "--trust")
    assert (done.code, done.out) == (2, "")
    assert f"{program.repo}/.deepagents/deepagent.toml:1" in done.err
