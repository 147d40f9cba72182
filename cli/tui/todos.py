"""The plan, a line a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from .text import MUTED, one_line

if TYPE_CHECKING:
    from ...context.entries import Todo

_SIGNS = {"pending": ("·", MUTED), "in_progress": ("▸", "$text-accent"), "completed": ("✓", MUTED)}


class TodoList(Static):
    """All steps, the one at hand marked; a plan that is done is one line."""

    DEFAULT_CSS = "TodoList { width: 1fr; height: auto; margin: 1 0; padding-left: 2; }"

    def __init__(self, items: tuple[Todo, ...]) -> None:
        super().__init__(_content(items), markup=False)


def _content(items: tuple[Todo, ...]) -> Content:
    done = sum(todo.status == "completed" for todo in items)
    if not items:
        return Content.assemble(("The plan is empty", MUTED))
    lines = [Content.assemble((f"Plan {done}/{len(items)}", MUTED))]
    if done < len(items):
        lines += [_line(todo) for todo in items]
    return Content("\n").join(lines)


def _line(todo: Todo) -> Content:
    sign, colour = _SIGNS[todo.status]
    text = "bold" if todo.status == "in_progress" else MUTED if todo.status == "completed" else ""
    return Content.assemble((f"{sign} ", colour), (one_line(todo.text), text))
