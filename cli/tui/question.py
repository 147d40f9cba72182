"""What a question about a call says: what would run, why it is asked, and what each key would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from .diffs import diff_rows
from .lines import Row, rows_of
from .text import MUTED, one_line

if TYPE_CHECKING:
    from ...agent.sandbox.bounds import Refusal
    from ...context.messages import ToolCall


@dataclass(slots=True, kw_only=True)
class Question:
    """What is asked."""

    call: ToolCall
    rules: tuple[str, ...] = ()
    """The rules that "always" would keep, as `--allow` takes them."""
    reason: str = ""
    """Why it is asked, as half a sentence."""
    warning: str = ""
    """What to know before saying yes."""
    origin: str = ""
    """Who asks, where it is not the agent itself."""
    kept: str = ""
    """Where "always" would keep its rules, as half a sentence."""
    waiting: int = 0
    """How many more questions wait behind this one."""
    refused: Sequence[Refusal] = ()
    """What the sandbox kept the call from."""
    before: str | None = None
    """The file that it would change, as it is; None where it is new or unknown."""

    @property
    def wants_network(self) -> bool:
        """The sandbox kept the call from the network."""
        return any(refusal.kind == "network" for refusal in self.refused)

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that the sandbox kept the call from writing."""
        found = (refusal.folder for refusal in self.refused if refusal.kind == "write" and refusal.folder is not None)
        return tuple(dict.fromkeys(map(str, found)))

    @property
    def keys(self) -> frozenset[str]:
        """The letters that mean something."""
        keys = {"y", "n", "r", "t", "o", *("w" if self.wants_network else ""), *("f" if self.folders else "")}
        if not self.refused:
            keys |= {"e", *("a" if self.rules else "")}
        return frozenset(keys)


def heading(question: Question) -> Content:
    """What is asked, by whom, and why."""
    name = one_line(question.call.name)
    asked = f"Allow {name} what the sandbox kept from it?" if question.refused else f"Allow {name}?"
    behind = f"  1 of {question.waiting + 1} questions" if question.waiting else ""
    origin = f"{one_line(question.origin)} asks: " if question.origin else ""
    parts: list[tuple[str, str] | Content] = [(origin, MUTED), (asked, "bold"), (behind, MUTED)]
    if question.warning:
        parts.append((f"\n{one_line(question.warning)}", "bold $text-warning"))
    elif question.reason and not question.refused:
        parts.append((f"\n{one_line(question.reason)}", MUTED))
    parts += [(f"\nrefused: {_refusal(refusal)}", "$text-warning") for refusal in question.refused]
    return Content.assemble(*parts)


def subject(call: ToolCall, before: str | None = None) -> Iterable[Row]:
    """What the call would do: the command, the change of a file, or the arguments as they are."""
    arguments = call.arguments
    match call.name, arguments:
        case "execute", {"command": str(command)}:
            first, *others = command.split("\n")
            yield Row(f"$ {first}")
            yield from (Row(f"  {line}") for line in others)
        case _, {"path": str(path)} if rows := diff_rows(call.name, arguments, limit=None, before=before):
            yield Row(path)
            yield from rows
        case _:
            for name, value in arguments.items():
                yield from rows_of(f"{name}: {value}")


def choices(question: Question) -> Content:
    """The keys; "always" says which rules it would keep, and where."""
    if question.refused:
        pairs = [
            ("y", "again without the sandbox, once"),
            ("n", "no"),
            ("r", "no, and say why"),
            ("t", "tell the model"),
        ]
        pairs += [("\nw", "again with network")] if question.wants_network else []
        pairs += (
            [("\nf", f"again, with {', '.join(map(one_line, question.folders))} writable")] if question.folders else []
        )
    else:
        pairs = [("y", "allow once"), ("e", "edit first"), ("n", "no"), ("r", "no, and say why")]
        pairs += [("t", "answer instead"), ("Esc", "no")]
    parts: list[tuple[str, str]] = []
    for key, words in pairs:
        parts += [(key, "bold $text-accent"), (f" {words}   ", MUTED)]
    if "a" in question.keys:
        parts += [("\na", "bold $text-accent"), (f" always, {one_line(question.kept)}:", MUTED)]
        parts += [(f"\n  {one_line(rule)}", "") for rule in question.rules]
    return Content.assemble(*parts)


def _refusal(refusal: Refusal) -> str:
    verb = {"write": "writing", "read": "reading", "network": "the network", "other": ""}[refusal.kind]
    return " ".join(filter(None, (verb, one_line(refusal.subject))))
