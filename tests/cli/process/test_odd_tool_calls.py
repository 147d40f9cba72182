"""What a model may do wrong, and what it may find: each call gets one short answer, and the run goes on."""

from __future__ import annotations

import os

from process_program import Program, assert_well_formed, call

HELLO = {"text": "Hello.", "repeat": 100}
_SHORT = 4_000
"""Characters: nothing here may fill the window."""

WRONG: dict[str, tuple[dict[str, object], str]] = {
    "an unknown tool": (call("run_shell", command="ls"), "There is no tool 'run_shell'. There are: "),
    "a missing field": (call("read_file"), "path: Field required"),
    "a wrong type": (call("read_file", path=["a.txt"]), "path: Input should be a valid string"),
    "an unknown field": (call("read_file", path="a.txt", lines=3), "lines: Extra inputs are not permitted"),
    "no object": ({"name": "ls", "arguments": "[1, 2]"}, "ls was not run"),
    "broken JSON": ({"name": "ls", "arguments": '{"path": "a'}, "ls was not run"),
    "no number": ({"name": "ls", "arguments": '{"path": NaN}'}, "NaN is not JSON"),
    "infinity": ({"name": "ls", "arguments": '{"path": 1e999}'}, "a number is too large"),
    "a number of 5,000 digits": ({"name": "ls", "arguments": f'{{"path": {"1" * 5_000}}}'}, "no valid JSON"),
    "deep": ({"name": "ls", "arguments": f'{{"path": {"[" * 300}{"]" * 300}}}'}, "nested more than 100 levels"),
    "endlessly deep": ({"name": "ls", "arguments": '{"path": ' + "[" * 100_000}, "no valid JSON"),
    "a NUL in a path": (call("read_file", path="a\0b"), "NUL"),
    "a surrogate in a path": (call("read_file", path="a\ud800"), "does not exist"),
    "an empty name": ({"name": "", "arguments": {}}, "There is no tool ''"),
    "a path outside": (call("read_file", path="/etc/passwd"), "lies outside the workspace"),
    "a device": (call("read_file", path="zero"), "lies outside the workspace"),
    "a pipe": (call("read_file", path="pipe"), "It is a pipe, not a regular file"),
    "a folder": (call("read_file", path="."), "is a directory"),
    "no such file": (call("read_file", path="a.tx"), "a.tx does not exist; beside it: a.txt"),
    "a bad pattern": (call("grep", pattern="(", path="."), "pattern"),
    "a command that fails": (call("execute", command="exit 3"), "exit code 3"),
    "no command": (call("execute", command="  "), "The command is empty."),
    "a name of control codes": (call("ls\n\x1b[31m"), r"There is no tool 'ls\n\x1b[31m'"),
}
FOUND: dict[str, tuple[dict[str, object], str]] = {
    "a binary file": (call("read_file", path="binary"), "binary"),
    "a huge file": (call("read_file", path="huge"), "huge"),
    "one endless line": (call("read_file", path="line"), "aaaa"),
    "an empty file": (call("read_file", path="empty"), "empty"),
    "a command with binary output": (
        call("execute", command="head -c 3000 /dev/zero; printf '\\377\\033[31m'"),
        "exit",
    ),
    "an id that was there": ({**call("ls", path="names"), "id": "same"}, "caf"),
    "the same id": ({**call("glob", pattern="a.*"), "id": "same"}, "a.txt"),
    "a name that is no text": (call("ls", path="names"), r"caf\xe9\n\x1b 0"),
}


def odd_files(program: Program) -> None:
    repo = program.repo
    os.mkfifo(repo / "pipe")
    (repo / "zero").symlink_to("/dev/zero")
    (repo / "binary").write_bytes(bytes(range(256)) * 100)
    (repo / "line").write_text("a" * 3_000_000)
    (repo / "empty").touch()
    with (repo / "huge").open("wb") as file:
        file.truncate(3 * 1024**3)
    (repo / "names").mkdir()
    with open(os.fsencode(repo / "names") + b"/caf\xe9\n\x1b", "wb"):  # noqa: PTH123 - a name of bytes
        pass


def test_every_odd_call_gets_one_short_answer(program: Program) -> None:
    odd_files(program)
    cases = {**WRONG, **FOUND}
    model = program.script({"text": "a\ud800b", "calls": [given for given, _ in cases.values()]}, HELLO)
    done = program.run("-p", "do it", "-m", model, "--yolo", "--output-format", "stream-json")
    assert (done.code, done.result["result"]) == (0, "Hello."), done.err
    assert done.of("assistant")[0]["text"] == "a\ufffdb"
    results = done.of("tool_result")
    assert len({result["tool_use_id"] for result in results}) == len(cases)
    for (name, (_, words)), result in zip(cases.items(), results, strict=True):
        assert words in result["content"], name
        assert len(result["content"]) < _SHORT, name
        assert "Traceback" not in result["content"], name
        if name in WRONG and name != "a command that fails":
            assert result["is_error"], name
    assert_well_formed(program.log())
    assert program.inside("-c", "-p", "go on", "-m", model).out == "Hello.\n"
