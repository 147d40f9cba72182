"""What the sandbox refuses is told, asked about, and run again with what was granted; on the sandbox that is here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.config import SandboxSettings
from deepagent.agent.events import Approval, ApprovalAsked, Denied, Event
from deepagent.agent.sandbox.bounds import Grant
from deepagent.agent.sandbox.opening import open_sandbox
from deepagent.agent.workspace import find_workspace
from deepagent.context.messages import ToolMessage, text_of
from hard_inputs import hard_input
from stage import Stage

Make = Callable[..., Stage]


@pytest.fixture(scope="module", autouse=True)
def confined(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing can be shown where nothing confines."""
    folder = tmp_path_factory.mktemp("place")
    state = open_sandbox(SandboxSettings(), find_workspace(folder, environ=os.environ), os.environ).state()
    if state.engine is None:
        pytest.skip(f"no sandbox works here: {state.reason}")


def _played(stage: Make, home: Path, *commands: str, mode: str = "yolo", **sandbox: Any) -> Stage:
    calls = [{"calls": [{"name": "execute", "arguments": {"command": command}}]} for command in commands]
    settings = {"permissions": {"mode": mode}, "sandbox": {"mode": "auto", **sandbox}}
    return stage(*calls, {"text": "Done."}, settings=settings, interactive=True, environ={"HOME": str(home)})


async def _run(play: Stage, *answers: Approval) -> list[ApprovalAsked]:
    """Runs it, giving these answers; returns the questions."""
    asked: list[ApprovalAsked] = []

    def on(event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            asked.append(event)
            event.answer.set_result(answers[len(asked) - 1])

    await play.run(on=on)
    assert len(asked) == len(answers)
    return asked


def _results(play: Stage) -> list[str]:
    return [text_of(message) for message in play.view if isinstance(message, ToolMessage)]


@pytest.fixture
def outside() -> Path:
    """A folder that no bounds make writable: temporary folders are."""
    return Path("/opt")


def _refused(asked: Sequence[ApprovalAsked]) -> list[tuple[str, str]]:
    return [(refusal.kind, refusal.subject) for question in asked for refusal in question.refused]


@hard_input("Sandbox", "a command that writes outside", "is refused, named in the result, and asked about")
async def test_a_write_outside_is_refused_told_and_denied(stage: Make, isolated: Path, outside: Path) -> None:
    target = outside / f"deepagent-{os.getpid()}"
    play = _played(stage, isolated, f"touch {target}")
    asked = await _run(play, Approval(allowed=False, reason="keep to the project"))
    assert _refused(asked) == [("write", str(target))]
    assert asked[0].reason == f"the sandbox kept it from writing {target}"
    (result,) = _results(play)
    assert f"; the sandbox kept it from writing {target}; directory " in result
    assert "[not allowed: keep to the project; do without it" in result
    assert not target.exists()
    assert any(isinstance(event, Denied) for event in play.events)


async def test_once_without_the_sandbox_is_for_one_call(stage: Make, isolated: Path, outside: Path) -> None:
    target = outside / f"deepagent-{os.getpid()}"
    play = _played(stage, isolated, f"touch {target}", f"rm {target}")
    try:
        grant, no = Approval(allowed=True, grant=Grant(off=True)), Approval(allowed=False)
        asked = await _run(play, grant, no)
        assert target.exists()
        assert _refused(asked) == [("write", str(target))] * 2
        assert "[run again: the user allowed it to run outside the sandbox, once]" in _results(play)[0]
    finally:
        target.unlink(missing_ok=True)


async def test_a_folder_is_writable_for_the_session(stage: Make, isolated: Path, outside: Path) -> None:
    folder = outside / f"deepagent-{os.getpid()}"
    folder.mkdir()
    play = _played(stage, isolated, f"echo a > {folder}/a", f"echo b > {folder}/b")
    try:
        await _run(play, Approval(allowed=True, grant=Grant(writable=(folder,))))
        assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
        assert f"[run again: the user allowed writing {folder}]" in _results(play)[0]
        assert "run again" not in _results(play)[1]
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


async def test_a_command_gets_the_network_and_keeps_it(
    stage: Make, isolated: Path, model_server: Callable[..., Any]
) -> None:
    server = model_server({"text": "hi"})
    fetch = f"python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:{server.port}/\", timeout=5))'"
    play = _played(stage, isolated, fetch, fetch, f"{fetch} ; true")
    asked = await _run(play, Approval(allowed=True, grant=Grant(network=True)))
    assert [refusal.kind for refusal in asked[0].refused][:1] == ["network"]
    first, second, third = _results(play)
    assert "Connection refused" not in first and "[run again: the user allowed the network]" in first
    assert "Connection refused" not in second
    assert "onnection refused" in third or "unreachable" in third or "not permitted" in third


@hard_input("Sandbox", "the same with nobody to ask", "is a denial")
async def test_without_anybody_it_is_a_denial(stage: Make, isolated: Path, outside: Path) -> None:
    target = outside / f"deepagent-{os.getpid()}"
    play = stage(
        {"calls": [{"name": "execute", "arguments": {"command": f"touch {target}"}}]},
        {"text": "Done."},
        settings={"sandbox": {"mode": "auto"}, "permissions": {"mode": "yolo"}},
        environ={"HOME": str(isolated)},
    )
    await play.run()
    denied = next(event for event in play.events if isinstance(event, Denied))
    assert denied.reason == f"the sandbox kept it from writing {target}"
    assert play.ended.outcome == "success"


@hard_input("Sandbox", "a command that only reads, in the default mode", "runs unasked, where it can write nothing")
async def test_what_only_reads_runs_unasked_and_can_write_nothing(stage: Make, isolated: Path) -> None:
    play = _played(stage, isolated, "ls -a; cat .deepagents/.gitignore", "touch made", mode="default")
    asked = await _run(play, Approval(allowed=False))
    assert [question.rules for question in asked] == [("execute(touch made)",)]
    assert "[exit code 0" in _results(play)[0]


@hard_input("Sandbox", "`--sandbox strict` where nothing confines", "no command runs")
async def test_strict_runs_nothing_that_it_cannot_confine(stage: Make, isolated: Path, tmp_path: Path) -> None:
    play = _played(stage, isolated, "echo ran", mode="yolo")
    sandbox = play.agent.parts.sandbox
    sandbox.mode, sandbox._engines, sandbox._chosen = "strict", (), None
    await _run(play)
    assert "cannot be confined" in _results(play)[0]
    assert "ran\n" not in _results(play)[0]
