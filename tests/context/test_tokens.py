"""Counting: never failing, never slow, never over the network, each text once."""

from __future__ import annotations

import base64
import importlib.util
import os
import random
import string
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread

import pytest
from context_samples import any_texts, messages, no_tables, user
from deepagent.context.messages import Message
from deepagent.context.tokens import Counter, Encode, estimate
from hypothesis import given, settings

SPECIAL = ["<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|im_start|>"]
RANDOM = random.Random(7)
LONG = {
    "carets": "^" * 1_000_000,
    "letters a": "a" * 2_000_000,
    "random letters": "".join(RANDOM.choices(string.ascii_letters, k=1_000_000)),
    "base64": base64.b64encode(RANDOM.randbytes(375_000)).decode(),
    "spaces": " " * 1_000_000,
    "line ends": "\n" * 500_000,
}


@pytest.mark.parametrize("text", SPECIAL)
def test_special_tokens_are_ordinary_text(tables: Counter, text: str) -> None:
    assert tables.text(text) > 1
    assert tables.text(f"before {text} after {text}") > 4


@pytest.fixture(scope="module")
def slow_machine(tables: Counter) -> float:
    """Seconds that ordinary prose takes a character here, for bounds that hold on any machine."""
    prose = "".join(f"The {number}th word of an ordinary sentence, as people write it. " for number in range(20_000))
    began = time.perf_counter()
    tables.text(prose)
    return (time.perf_counter() - began) / len(prose)


@pytest.mark.parametrize("name", LONG)
def test_texts_that_stall_tokenizers_take_about_as_long_as_prose(
    tables: Counter, slow_machine: float, name: str
) -> None:
    text = LONG[name]
    began = time.perf_counter()
    count = tables.text(text)
    took = time.perf_counter() - began
    assert len(text) / 150 < count < len(text)
    assert took < max(0.3, 12 * slow_machine * len(text))


def test_each_text_is_counted_once(tables: Counter) -> None:
    counted: list[int] = []

    def encode(text: str) -> Sequence[int]:
        counted.append(len(text))
        return range(len(text))

    counter = Counter(lambda: encode)
    counter.prepare()
    text = "some text " * 5_000
    message = user(text)
    assert counter.text(text) == len(text) < counter.message(message)
    assert counter.text("some text " * 5_000) == len(text)
    counter.messages([message, message, user(text)])
    assert sum(counted) == len(text)


def test_counting_keeps_no_text_alive() -> None:
    counter = Counter(no_tables)
    text = "some text " * 100_000
    before = sys.getrefcount(text)
    counter.text(text)
    counter.about(text)
    assert sys.getrefcount(text) == before


class Panic(BaseException):
    """What a panic of the tokenizer's library looks like: no `Exception`."""


def test_a_panic_of_the_tokenizer_is_an_estimate() -> None:
    def encode(text: str) -> Sequence[int]:
        raise Panic("index out of bounds")

    counter = Counter(lambda: encode)
    counter.prepare()
    assert counter.exact
    assert counter.text("hello there") == estimate("hello there")


@pytest.mark.parametrize("error", [Panic, RuntimeError, FileNotFoundError])
def test_tables_that_cannot_be_loaded_are_an_estimate_and_asked_for_once(error: type[BaseException]) -> None:
    asked: list[int] = []

    def load() -> Encode:
        asked.append(1)
        raise error

    counter = Counter(load)
    for _ in range(3):
        counter.prepare()
    assert not counter.exact
    assert counter.text("hello there") == estimate("hello there")
    assert asked == [1]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_persons_interrupt_is_not_swallowed(stop: type[BaseException]) -> None:
    def encode(text: str) -> Sequence[int]:
        raise stop

    counter = Counter(lambda: encode)
    counter.prepare()
    with pytest.raises(stop):
        counter.text("hello")


@settings(max_examples=100, deadline=None)
@given(messages, any_texts)
def test_any_message_and_any_text_has_a_count(message: Message, text: str) -> None:
    counter = Counter(no_tables)
    assert counter.message(message) > 0
    assert (counter.text(text) > 0) == bool(text)


@settings(max_examples=100, deadline=None)
@given(messages, any_texts)
def test_the_tables_count_any_message_and_any_text(message: Message, text: str) -> None:
    counter = shared()
    assert counter.message(message) > 0
    assert (counter.text(text) > 0) == bool(text)


def shared(loaded: list[Counter] = []) -> Counter:  # noqa: B006 - kept from one example to the next
    if not loaded:
        from deepagent.agent.tokenizer import load_encoder

        loaded.append(Counter(load_encoder))
        loaded[0].prepare()
    return loaded[0]


def test_estimates_err_on_the_safe_side_for_prose_code_and_chinese(tables: Counter) -> None:
    source = Path(__file__).read_text()
    for text in (source, "The quick brown fox jumps over the lazy dog. " * 50, "春眠不觉晓处处闻啼鸟" * 50):
        assert tables.text(text) <= estimate(text) < 3 * tables.text(text)


def test_very_long_texts_are_counted_from_samples(tables: Counter) -> None:
    text = "".join(f"{number} is the number of line {number}\n" for number in range(60_000))
    counter = Counter(lambda: lambda part: sampled.append(len(part)) or range(tables.text(part)))
    sampled: list[int] = []
    counter.prepare()
    about = counter.about(text)
    assert sum(sampled) < len(text) // 3
    assert about == pytest.approx(tables.text(text), rel=0.05)
    assert tables.about("short") == tables.text("short")


class SlowTables:
    """A tokenizer whose tables arrive when the event is set."""

    def __init__(self) -> None:
        self.ready = Event()
        self.loads = 0
        self.counter = Counter(self._load)

    def _load(self) -> Encode:
        self.loads += 1
        assert self.ready.wait(10)
        return lambda text: range(7)


@pytest.fixture
def slow() -> Iterator[SlowTables]:
    """Tables that arrive when the test says so, and at its end."""
    made = SlowTables()
    yield made
    made.ready.set()


def test_counting_goes_on_while_the_tables_are_loaded(slow: SlowTables) -> None:
    counter = slow.counter
    thread = Thread(target=counter.prepare)
    thread.start()
    message = user("hello there, this is a message")
    assert counter.message(message) > 7
    assert not counter.exact
    slow.ready.set()
    thread.join()
    assert counter.exact
    assert counter.text("hello there, this is a message") == 7
    assert counter.message(message) == 11


def test_who_asks_a_second_time_waits_for_the_tables(slow: SlowTables) -> None:
    seen: list[bool] = []

    def prepare() -> None:
        slow.counter.prepare()
        seen.append(slow.counter.exact)

    threads = [Thread(target=prepare) for _ in range(3)]
    for thread in threads:
        thread.start()
    threads[-1].join(0.1)
    assert seen == []
    slow.ready.set()
    for thread in threads:
        thread.join()
    assert seen == [True] * 3
    assert slow.loads == 1


OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise SystemExit("the network was asked for")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from deepagent.agent.tokenizer import load_encoder
from deepagent.context.messages import Text, UserMessage
from deepagent.context.tokens import Counter
counter = Counter(load_encoder)
counter.prepare()
total = sum(counter.message(UserMessage(id="m", time="", content=(Text(text=f"message {n}"),))) for n in range(100))
print(counter.exact, total, "litellm" in sys.modules)
"""


def test_counting_asks_no_network_and_no_litellm(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    environ.pop("TIKTOKEN_CACHE_DIR", None)
    command = [sys.executable, "-c", OFFLINE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ, cwd=tmp_path)
    exact, total, litellm = done.stdout.split()
    assert (exact, litellm) == ("True", "False")
    assert int(total) > 500
    assert importlib.util.find_spec("litellm") is not None
    assert list(tmp_path.iterdir()) == []
