"""What fills the window: rows that add up to the figure that the gauge shows, remainder included.

Counting is `context.tokens`' business, the figure itself `context.meter`'s; which row is shown how, the screen's.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .facts import ADDED, COMMAND, PATH
from .messages import AssistantMessage, Message, Pointer, ToolMessage, UserMessage, shown
from .meter import Meter, Source
from .tokens import Counter
from .trim import stale_reads
from .view import View

_OWN_PARTS = frozenset({"memory", "skills"})
"""Parts of the prompt that have rows of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Something that takes tokens. `parts` add up to `tokens`, or are empty."""

    name: str
    tokens: int
    note: str = ""
    """A few words on its state: `pointer, whole 7,212`, `3 reads`."""
    parts: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The rows add up to `used`."""

    used: int
    source: Source
    rows: tuple[Row, ...]


@dataclass(slots=True)
class _Pile:
    """Rows of one kind, while they are gathered."""

    name: str
    rows: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    many: str = ""
    """What was done several times with one key."""

    def add(self, key: str, tokens: int, note: str = "") -> None:
        self.rows.setdefault(key, []).append((tokens, note))

    def row(self) -> Row:
        """One row with its parts, the largest first."""
        parts = [self._joined(key, items) for key, items in self.rows.items()]
        parts.sort(key=lambda part: -part.tokens)
        count = sum(map(len, self.rows.values()))
        return Row(name=f"{self.name}, {count}", tokens=sum(part.tokens for part in parts), parts=tuple(parts))

    def _joined(self, key: str, items: Sequence[tuple[int, str]]) -> Row:
        tokens = sum(tokens for tokens, _ in items)
        if len(items) == 1:
            return Row(name=key, tokens=tokens, note=items[0][1])
        notes = Counts(note.partition(",")[0] for _, note in items if note)
        words = [f"{self.many} {len(items)}×" if self.many else f"{len(items)}×"]
        words += [f"{number} {note}" for note, number in notes.items()]
        return Row(name=key, tokens=tokens, note=", ".join(words))


def account(
    *,
    prompt: Sequence[tuple[str, str]],
    tools: Mapping[str, str],
    view: View,
    counter: Counter,
    meter: Meter,
    items: Callable[[str, str], Mapping[str, str]] = lambda _name, _text: {},
) -> Account:
    """The rows. `prompt` are the parts' names and texts, `tools` the schemas' texts by name; `items` gives what a part
    of the prompt is made of, by name: memory files, skills."""
    used = meter.used(view.messages)
    rows = [row for row in (*_fixed(prompt, tools, counter, items), *_talk(view, counter)) if row.tokens]
    rest = used.tokens - sum(row.tokens for row in rows)
    word = "reported − counted" if used.source == "reported" else "margin"
    return Account(used=used.tokens, source=used.source, rows=(*rows, Row(name=f"Remainder ({word})", tokens=rest)))


def _fixed(
    prompt: Sequence[tuple[str, str]],
    tools: Mapping[str, str],
    counter: Counter,
    items: Callable[[str, str], Mapping[str, str]],
) -> Iterable[Row]:
    """What every request begins with."""
    parts = tuple(Row(name=name, tokens=counter.text(text)) for name, text in prompt)
    own = tuple(part for part in parts if part.name not in _OWN_PARTS)
    yield Row(name="System prompt", tokens=sum(part.tokens for part in own), parts=own)
    schemas = tuple(Row(name=name, tokens=counter.text(text)) for name, text in tools.items())
    yield Row(name=f"Tools, {len(schemas)}", tokens=sum(row.tokens for row in schemas), parts=schemas)
    for part, (name, text) in zip(parts, prompt, strict=True):
        if name in _OWN_PARTS:
            inner = [Row(name=item, tokens=counter.text(whole)) for item, whole in items(name, text).items()]
            rest = part.tokens - sum(row.tokens for row in inner)
            inner.sort(key=lambda row: -row.tokens)
            lines = (*inner, Row(name="what is said about them", tokens=rest)) if inner else ()
            yield Row(name=name.capitalize(), tokens=part.tokens, parts=lines)


def _talk(view: View, counter: Counter) -> Iterable[Row]:
    """The messages, by what they are."""
    reads, results = _Pile("Files read", many="read"), _Pile("Results")
    asked, notes = _Pile("Your messages"), _Pile("Notes on memory and skills")
    said, thought, head = 0, 0, 0
    stale = set(stale_reads(view.tail))
    for message in view.messages:
        tokens = counter.message(message)
        match message:
            case UserMessage() if view.head is not None and message.id == view.head.id:
                head = tokens
            case UserMessage(part=str(part)):
                notes.add(part, tokens)
            case UserMessage():
                asked.add(_first_line(message), tokens, "pointer" if _pointers(message) else "")
            case AssistantMessage():
                said += tokens
                thought += counter.reasoning(message)
            case ToolMessage():
                _result(message, tokens, reads, results, stale=message.id in stale)
    if view.head is not None:
        kept = len(view.head.requests)
        name = f"Summary, with {kept} request{'' if kept == 1 else 's'} word for word"
        yield Row(name=name, tokens=head, note=view.head.archive)
    yield notes.row()
    yield asked.row()
    yield reads.row()
    yield results.row()
    yield Row(name="Answers and calls", tokens=said, note=f"reasoning {thought:,}" if thought else "")


def _result(message: ToolMessage, tokens: int, reads: _Pile, results: _Pile, *, stale: bool) -> None:
    path, command = message.log.get(PATH), message.log.get(COMMAND)
    pointers = _pointers(message)
    note = f"pointer, whole {sum(p.tokens for p in pointers):,}" if pointers else "stale" if stale else ""
    if isinstance(path, str) and ADDED not in message.log and not message.is_error:
        reads.add(path, tokens, note)
    else:
        results.add(f"$ {command}" if isinstance(command, str) else message.tool, tokens, note)


def _pointers(message: Message) -> list[Pointer]:
    if isinstance(message, AssistantMessage):
        return []
    return [block for block in message.content if isinstance(block, Pointer)]


def _first_line(message: UserMessage) -> str:
    text = next((shown(block) for block in message.content if not isinstance(block, Pointer)), "(in a file)")
    return text.strip().split("\n")[0][:60]
