"""The built-in tools, one module a family; each a plain async function."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..tool import Tool


def builtin_tools() -> tuple[Tool, ...]:
    """The tools that every agent has unless told otherwise, in the order in which models are told of them."""
    from . import edit, read, recall, search, session, shell

    return (
        read.ls,
        read.read_file,
        edit.write_file,
        edit.edit_file,
        search.glob,
        search.grep,
        shell.execute,
        shell.jobs,
        session.write_todos,
        session.compact_conversation,
        recall.recall,
    )
