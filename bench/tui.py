"""What the screen costs, measured in a real terminal: first frame, keys, streaming, a long session, idleness.

    .venv/bin/python bench/tui.py [start] [keys] [stream] [messages] [context] [idle] [--tokens 2000]

Without names all parts run, in about five minutes; most of them is `stream`, which plays 20,000 tokens at 100 a second
(`--tokens` shortens it). A part prints its figures beside what is aimed at. Ratios and per cent can be compared between
machines; seconds cannot. PYTHONPATH may name the folder above another checkout that is to be measured.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter

from deepagent.agent.workspace import find_workspace
from deepagent.context.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage, new_id
from deepagent.context.messages import timestamp as now
from deepagent.context.session import Session
from loopback import Answer, serve
from terminal import Terminal
from turns import WORDS

PROGRAM = str(Path(sys.executable).with_name("deepagent"))
PROMPT, LOADED, END = "❯".encode(), b" tokens", "∎".encode()
"""What stands on the screen: with the first frame, once the start panel is full, at the end of what is played."""
MODEL = ("-m", "openai/gpt-4.1", "--context-window", "2000000")
BARE = """
from textual.app import App
from textual.widgets import Static, TextArea

class Bare(App):
    def compose(self):
        yield Static("❯")
        yield TextArea()

Bare().run()
"""
MESSAGES = 5_000
IN_CONTEXT = 1_000
KEY_EVERY = 0.04
"""Seconds: 25 keys a second, faster than anybody types."""


class Bench:
    """A workspace of its own, and the rounds and tokens asked for."""

    def __init__(self, folder: Path, *, rounds: int, tokens: int) -> None:
        self.rounds = rounds
        self.tokens = tokens
        self.home = folder / "home"
        self.work = folder / "work"
        for made in (self.home, self.work):
            made.mkdir()
        inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self.env = {
            **inherited,
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "DEEPAGENT_MODEL": MODEL[1],
            "OPENAI_API_KEY": "bench-key-without-value",
            "ANTHROPIC_API_KEY": "bench-key-without-value",
        }

    def open(self, *command: str, **env: str) -> Terminal:
        """A program in a terminal."""
        return Terminal(command, cwd=self.work, env={**self.env, **env})

    def ready(self, terminal: Terminal) -> None:
        """Waits until all is loaded and the screen rests."""
        terminal.until(LOADED)
        terminal.quiet(2)


def show(name: str, value: float, unit: str = "", aim: str = "") -> None:
    """Prints a figure: three digits are enough."""
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    print(f"  {name:44}{value:>10,.{digits}f} {unit:8}{aim}")


def show_times(name: str, seconds: Sequence[float], aim: str) -> None:
    """Prints how long keys took."""
    times = sorted(1000 * time for time in seconds)
    show(f"{name}: median of {len(times)}", median(times), "ms")
    show(f"{name}: 95 %", quantiles(times, n=20)[-1], "ms", aim)
    show(f"{name}: longest", times[-1], "ms")


def start(bench: Bench) -> None:
    """The first frame, in turn with a bare app's; the first round only warms up."""
    bare = bench.work.parent / "bare.py"
    bare.write_text(BARE)
    commands = {"deepagent": (PROGRAM,), "bare Textual app": (sys.executable, str(bare))}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(bench.rounds + 1):
        for name, command in commands.items():
            with bench.open(*command) as terminal:
                seconds = terminal.until(PROMPT) - terminal.began
            if number:
                times[name].append(seconds)
    for name, seconds in times.items():
        show(f"{name}: start to first frame", median(seconds), "s")
    ours, theirs = (median(seconds) for seconds in times.values())
    show("ratio", ours / theirs, aim="≤ 1.3")


def keys(bench: Bench) -> None:
    """Keys while all is loaded: from the first frame until the processor rests, then, after a pause, for four seconds.

    The pause is as long as what waits for one needs to begin.
    """
    for name, model in (("lean lane", "openai/gpt-4.1"), ("litellm lane", "anthropic/claude-sonnet-4-5")):
        first: list[float] = []
        later: list[float] = []
        for number in range(bench.rounds + 1):
            with bench.open(PROGRAM, "-m", model) as terminal:
                terminal.until(PROMPT)
                typed = terminal.type_keys(every=KEY_EVERY, done=_rested(terminal))
                terminal.bytes_in(1.1)
                after = terminal.type_keys(every=KEY_EVERY, done=_after(4))
                terminal.until(LOADED)
            if number:
                first += typed
                later += after
        show_times(f"{name}, key to echo", first, "≤ 50")
        show_times(f"{name}, after a pause", later, "≤ 50")


def _rested(terminal: Terminal) -> Callable[[], bool]:
    """Tells whether the last second took less than half of a core."""
    samples: list[tuple[float, float]] = []

    def done() -> bool:
        time = perf_counter()
        samples.append((time, terminal.cpu))
        before = next((cpu for at, cpu in reversed(samples) if time - at >= 1), None)
        return before is not None and samples[-1][1] - before < 0.5

    return done


def _after(seconds: float) -> Callable[[], bool]:
    """Tells whether so many seconds have passed since now."""
    end = perf_counter() + seconds
    return lambda: perf_counter() > end


def stream(bench: Bench) -> None:
    """One long answer at 100 tokens a second; meanwhile a key a second is typed."""
    text = "".join(_markdown(bench.tokens)) + END.decode()
    with (
        serve(lambda _request, _number: Answer(text=text, pace=0.01)) as server,
        bench.open(PROGRAM, *MODEL, OPENAI_BASE_URL=server.url) as terminal,
    ):
        bench.ready(terminal)
        terminal.write("Play.\r")
        terminal.until(b"Section")
        began, cpu, written = perf_counter(), terminal.cpu, len(terminal.raw)
        times = terminal.type_keys(every=1, done=lambda: END in terminal.raw)
        seconds, cpu, written = perf_counter() - began, terminal.cpu - cpu, len(terminal.raw) - written
        holds, peak = terminal.memory
    show(f"{bench.tokens:,} tokens: played in", seconds, "s")
    show("processor time", cpu, "s")
    show("processor, share of a core", 100 * cpu / seconds, "%", "≤ 25")
    show("written to the terminal", written / 1024, "KiB")
    show("memory at the end", holds, "MiB")
    show("memory at most", peak, "MiB")
    show_times("key to echo meanwhile", times, "≤ 50")


def _markdown(tokens: int) -> Iterable[str]:
    """Sections of prose, code and a list: a token is a word, a space before it."""
    chance = random.Random(1)
    count = number = 0
    while count < tokens:
        number += 1
        prose = " ".join(chance.choices(WORDS, k=120))
        code = "\n".join(f"    {a} = {b} + {c}" for a, b, c in (chance.choices(WORDS, k=3) for _ in range(6)))
        items = "\n".join(f"- **{a}** and `{b}`" for a, b in (chance.choices(WORDS, k=2) for _ in range(4)))
        section = f"## Section {number}\n\n{prose}.\n\n```python\ndef part_{number}():\n{code}\n```\n\n{items}\n\n"
        count += len(section.split())
        yield section


def messages(bench: Bench) -> None:
    """A session of 5,000 messages: resuming it, and keys in it."""
    session = write_session(bench, MESSAGES)
    frames: list[float] = []
    usable: list[float] = []
    times: list[float] = []
    pages: list[float] = []
    holds = peak = 0.0
    for _ in range(3):
        with bench.open(PROGRAM, *MODEL, "-r", session) as terminal:
            frames.append(terminal.until(PROMPT) - terminal.began)
            usable.append(terminal.until(END) - terminal.began)
            terminal.quiet(2)
            times += terminal.type_keys(every=KEY_EVERY * 2, done=_after(3))
            pages += [_page(terminal) for _ in range(20)]
            holds, peak = terminal.memory
    show("start to first frame", median(frames), "s")
    show("start to the session's end on the screen", median(usable), "s")
    show_times("key to paint", times, "≤ 30")
    show_times("Page Up to paint", pages, "≤ 50")
    show("memory", holds, "MiB")
    show("memory at most", peak, "MiB")


def context(bench: Bench) -> None:
    """`/context` in a session of 1,000 messages: from Enter to a screen, and to its figures."""
    session = write_session(bench, IN_CONTEXT)
    screens: list[float] = []
    figures: list[float] = []
    with bench.open(PROGRAM, *MODEL, "-r", session) as terminal:
        terminal.until(END)
        for _ in range(bench.rounds + 1):
            terminal.quiet(2)
            terminal.write("/context")
            terminal.quiet(0.3)
            start, began = len(terminal.raw), perf_counter()
            terminal.write("\r")
            screens.append(terminal.until(b"Esc back", start) - began)
            figures.append(terminal.until(b"Remainder", start) - began)
            terminal.quiet(0.3)
            terminal.write("\x1b")
    show("Enter to the screen: first", 1000 * screens[0], "ms", "≤ 200")
    show("Enter to the screen: median of the others", 1000 * median(screens[1:]), "ms", "≤ 200")
    show("Enter to the figures: first", 1000 * figures[0], "ms")
    show("Enter to the figures: median of the others", 1000 * median(figures[1:]), "ms", "≤ 200")


def _page(terminal: Terminal) -> float:
    """Seconds from Page Up on a resting screen until something is painted."""
    terminal.quiet(0.3)
    began = perf_counter()
    terminal.write("\x1b[5~")
    terminal.until(b"\x1b", len(terminal.raw))
    return perf_counter() - began


def write_session(bench: Bench, count: int) -> str:
    """The id of a new session with so many messages: a request, a read file, an answer, another request and so on."""
    place = find_workspace(bench.work, environ=bench.env)
    session = Session.start(place.storage(), workspace=str(place.root), cwd=str(place.cwd))
    chance = random.Random(1)
    for number in range(count // 4):
        for message in _turn(number, chance):
            session.say(message)
    session.say(UserMessage(id=new_id(), time=now(), content=(Text(text=f"Thank you. {END.decode()}"),)))
    session.close()
    return session.id


def _turn(number: int, chance: random.Random) -> tuple[Message, ...]:
    """Four messages, about 200 words."""
    call = ToolCall(id=f"c{number}", name="read_file", arguments={"path": f"part-{number}.txt"})
    lines = "\n".join(" ".join(chance.choices(WORDS, k=12)) for _ in range(8))
    prose = " ".join(chance.choices(WORDS, k=60))
    return (
        UserMessage(id=new_id(), time=now(), content=(Text(text=f"Read part {number}."),)),
        _answer(call),
        ToolMessage(id=new_id(), time=now(), call_id=call.id, tool=call.name, content=(Text(text=lines),)),
        _answer(Text(text=f"## Part {number}\n\n{prose}.\n\n- **one** `{number}`\n- two\n")),
    )


def _answer(part: Text | ToolCall) -> AssistantMessage:
    stop = "tool_calls" if isinstance(part, ToolCall) else "end"
    return AssistantMessage(id=new_id(), time=now(), content=(part,), model="bench", stop=stop)


def idle(bench: Bench) -> None:
    """A new screen on which nothing happens."""
    with bench.open(PROGRAM, *MODEL) as terminal:
        bench.ready(terminal)
        cpu = terminal.cpu
        written = terminal.bytes_in(10)
        cpu = terminal.cpu - cpu
        holds, peak = terminal.memory
    show("written in 10 s", written, "bytes", "0")
    show("processor, share of a core", 100 * cpu / 10, "%")
    show("memory", holds, "MiB")
    show("memory at most", peak, "MiB")


PARTS = {part.__name__: part for part in (start, keys, stream, messages, context, idle)}


def main() -> None:
    """Runs the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("-n", type=int, default=5, help="rounds of `start` and `keys` (default 5)")
    parser.add_argument("--tokens", type=int, default=20_000, help="tokens that `stream` plays (default 20000)")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for name in options.parts or PARTS:
        print(name, flush=True)
        with TemporaryDirectory() as folder:
            PARTS[name](Bench(Path(folder), rounds=options.n, tokens=options.tokens))


if __name__ == "__main__":
    main()
