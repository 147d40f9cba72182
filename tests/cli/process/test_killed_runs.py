"""SIGKILL at random moments: what was acknowledged is there, and `deepagent -c` goes on."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from subprocess import Popen
from typing import cast

import pytest
from deepagent.context.archive import parse
from deepagent.context.entries import Compacted, Entry, Offloaded
from deepagent.context.messages import (
    AssistantMessage,
    Message,
    Pointer,
    Reasoning,
    ToolMessage,
    UserMessage,
    text_of,
)
from deepagent.context.storage import archive_name, log_name
from process_program import Json, Program, assert_well_formed, call, messages_of

_NOISE = "All-work-and-no-play-makes-the-window-full." * 55
"""Over 2,000 characters, so that in an old call it becomes a stub; few words, as each is a piece of the stream."""
_STEP = {
    "thinking": "Thought {{position}}.",
    "text": "Answer {{position}}.",
    "delay": 0.02,
    "pace": 0.001,
    "repeat": 5_000,
    "calls": [
        call("write_file", path="out/{{position}}.txt", content='{{position}} {{first:(All-work[^\\s"]{2000,})}}'),
        call("execute", command="seq -s ' ' {{position}} 2500; sleep 0.03"),
    ],
}
_AFTER_OFFLOAD = {
    "text": "Answer {{position}}, after an offload.",
    "delay": 0.01,
    "repeat": 5_000,
    "calls": [
        call("read_file", path="a.txt"),
        call("ls", path="."),
        call("write_todos", todos=[{"text": "Step {{position}}", "status": "in_progress"}]),
        call("read_file", path="a.txt"),
    ],
}
_MOMENTS = (
    ("", 1),
    ("RunStarted", 1),
    ("CallStarted", 3),
    ("ToolCallArriving", 60),
    ("Answered", 4),
    ("ToolStarted", 8),
    ("TodosChanged", 2),
    ("Offloading", 3),
    ("ToolFinished", 12),
    ("Trimmed", 1),
    ("CompactionStarted", 2),
    ("CompactionStarted", 1),
    ("CompactionDone", 2),
)
"""Events after which a run is killed, and after how many of them at most; without a name, at any time."""
_PHASES = {
    "": "starting",
    "RunStarted": "starting",
    "CallStarted": "model",
    "TextArrived": "model",
    "ReasoningArrived": "model",
    "ToolCallArriving": "model",
    "Answered": "tools",
    "ToolStarted": "tools",
    "ToolOutput": "tools",
    "Offloading": "results",
    "ToolFinished": "results",
    "TodosChanged": "tools",
    "Trimmed": "room",
    "CompactionStarted": "compaction",
    "CompactionDone": "compaction",
    "RunEnded": "ended",
}


@dataclass(slots=True, kw_only=True)
class Life:
    """A session that is killed again and again."""

    program: Program
    chance: random.Random
    acknowledged: list[Json] = field(default_factory=list[Json])
    asked: int = 0
    session: str | None = None
    phases: Counter[str] = field(default_factory=Counter[str])

    def begin(self) -> None:
        """A new session from now on."""
        self.acknowledged, self.asked, self.session = [], 0, None

    def kill_once(self, model: str) -> None:
        """Runs on, and is killed at some moment."""
        out, debug = self.program.scripts.parent / "out", self.program.scripts.parent / "debug"
        debug.write_text("")
        args = ("-m", model, "--yolo", "--context-window", "8000", "--output-format", "stream-json", "--debug", debug)
        resume = ("-c",) if self.session else ()
        with out.open("wb") as file, self.program.start(*resume, *args, "-p", f"Go on. {_NOISE}", stdout=file) as run:
            self._wait(run, debug)
            run.kill()
            assert run.stderr
            errors = run.stderr.read().decode()
        self.program.end_children()
        assert run.returncode == -9, errors
        self._acknowledge(out.read_bytes())
        self.phases[_phase(debug)] += 1

    def _wait(self, process: Popen[bytes], debug: Path) -> None:
        """Waits until something has happened for the nth time, and a random moment more."""
        event, most = self.chance.choice(_MOMENTS)
        times, seen = self.chance.randint(1, most), ""
        with debug.open(errors="replace") as file:
            while event and seen.count(f" {event}(") < times and process.poll() is None:
                seen += file.read()
                time.sleep(0.002)
        time.sleep(min(0.05, self.chance.expovariate(100)) if event else self.chance.uniform(0.2, 1.0))

    def _acknowledge(self, out: bytes) -> None:
        """Takes what standard output has; a torn last line is nothing that anybody could read."""
        for text in out[: out.rfind(b"\n") + 1].splitlines():
            line = cast(Json, json.loads(text))
            assert line["type"] != "result", line
            if line.get("subtype") == "init":
                assert self.session in (None, line["session_id"]), "another session was continued"
                self.session = str(line["session_id"])
            elif line["type"] != "context":
                self.acknowledged.append(line)

    def check(self) -> None:
        """Nothing that was acknowledged is lost, and nothing is there twice."""
        if self.session is None:
            assert self.acknowledged == []
            return
        log = self.program.log(self.session)
        assert_well_formed(log)
        messages = messages_of(log.entries)
        answers = {m.id: m for m in messages if isinstance(m, AssistantMessage)}
        calls = {c.id: c for m in answers.values() for c in m.calls}
        results = {m.call_id: m for m in messages if isinstance(m, ToolMessage)}
        compactions = [entry for entry in log.entries if isinstance(entry, Compacted)]
        for line in self.acknowledged:
            match line["type"]:
                case "assistant":
                    answer = answers[line["id"]]
                    thoughts = "".join(part.text for part in answer.content if isinstance(part, Reasoning))
                    assert (line["text"], line["thinking"]) == (answer.text, thoughts)
                case "tool_use":
                    found = calls[line["id"]]
                    assert (line["name"], line["input"]) == (found.name, dict(found.arguments))
                case "tool_result":
                    assert line["content"] == text_of(results[line["tool_use_id"]])
                case _:
                    assert line["tokens_after"] in [entry.tokens_after for entry in compactions]
        self._check_offloads(messages, log.entries)
        if compactions:
            self._check_archive(messages, compactions)

    def _check_offloads(self, messages: Sequence[Message], entries: Sequence[Entry]) -> None:
        """Every offloaded text is whole."""
        pointers = [b.pointer for e in entries if isinstance(e, Offloaded) for b in e.blocks]
        for message in messages:
            pointers += [part for part in message.content if isinstance(part, Pointer)]
        for pointer in pointers:
            data = self.program.storage.read(pointer.path.removeprefix(".deepagents/"))
            assert sha256(data).hexdigest() == pointer.sha256

    def _check_archive(self, messages: Sequence[Message], compactions: Sequence[Compacted]) -> None:
        """Every message that left the view is in the archive, once, as the log has it."""
        assert self.session
        sections = parse(self.program.storage.read(archive_name(self.session))).sections
        archived = [message for section in sections for message in section.messages]
        ids = {message.id for message in archived}
        assert len(ids) == len(archived), "a message was archived twice"
        logged = {message.id: message for message in messages}
        assert all(logged[message.id] == message for message in archived)
        places = {(section.start, section.end) for section in sections}
        assert all((entry.archive_start, entry.archive_end) in places for entry in compactions)
        kept = [message.id for message in messages].index(compactions[-1].first_kept or "")
        assert {message.id for message in messages[:kept]} <= ids, "a message left the view and is in no archive"

    def go_on(self, model: str) -> None:
        """What follows a crash ends well, in the same session where there is one."""
        options = ("-m", model, "--context-window", "8000", "--output-format", "json")
        done = self.program.inside("-c", "-p", "And now?", *options)
        if self.session is None:  # nothing was acknowledged, so there may be nothing to go on with
            assert done.code == 0 or "there is no session" in done.err
            return
        assert (done.code, done.result["result"]) == (0, "Went on."), done.err
        assert done.result["session_id"] == self.session
        self.asked += 1
        requests = [m for m in self.program.messages(self.session) if isinstance(m, UserMessage)]
        assert sum(text_of(message) == "And now?" for message in requests) == self.asked
        storage = self.program.storage
        for name in (log_name(self.session), archive_name(self.session)):
            assert not storage.path(name).exists() or storage.path(name).read_bytes() == storage.read(name)


def _phase(debug: Path) -> str:
    """What the run was doing, from the last event that it wrote down."""
    events = re.findall(r"^ *[\d.]+ (\w+)\(", debug.read_text() if debug.exists() else "", re.MULTILINE)
    return next((_PHASES[event] for event in reversed(events) if event in _PHASES), "starting")


def _kill_often(program: Program, seed: int, times: int) -> Counter[str]:
    """Kills a run so many times, a new session after each dozen; gives the phases that were hit."""
    life = Life(program=program, chance=random.Random(seed))
    summary = {"text": "## SUMMARY\nOne file was written after the other.", "delay": 0.05}
    branch = {"when": [{"where": "last", "contains": "large_tool_results"}], "steps": [_AFTER_OFFLOAD]}
    working = program.script(_STEP, branches=[branch], summaries=[summary] * 50, usage="estimate")
    last = program.script({"text": "Went on.", "repeat": 5_000}, usage="estimate")
    for number in range(times):
        if number % 12 == 0:
            life.begin()
        life.kill_once(working)
        life.check()
        life.go_on(last)
        life.check()
    assert all(line.startswith("?? out/") for line in program.status.splitlines()), "our own files appear in git"
    return life.phases


def test_killed_at_a_few_moments_it_goes_on(program: Program) -> None:
    _kill_often(program, seed=20, times=2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_many_moments_it_goes_on(program: Program, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    _kill_and_tell(program, seed, capsys)


@pytest.mark.long
def test_killed_where_files_are_copied_it_goes_on(
    program: Program, small_disk: Callable[[Path, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    small_disk(program.repo / ".deepagents", 200 * 1024)  # another file system: no links
    _kill_and_tell(program, 4, capsys)


def _kill_and_tell(program: Program, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills, and prints how often in which phase; those that last must be among them."""
    phases = _kill_often(program.full, seed, times=55)
    with capsys.disabled():
        print(f"\nseed {seed}: " + ", ".join(f"{phase} {count}" for phase, count in phases.most_common()))
    assert {"model", "tools", "compaction"} <= set(phases)
