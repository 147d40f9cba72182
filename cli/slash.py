"""Slash commands, as data: help, completion and dispatch read them here. What they do is the screen's business."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slash:
    """A command of the prompt."""

    name: str
    help: str
    argument: str = ""
    """How the argument is written in help: `[focus]`."""
    aliases: tuple[str, ...] = ()
    at_once: bool = False
    """It may run while the agent works."""


SLASH: tuple[Slash, ...] = (
    Slash(name="help", help="keys and commands", at_once=True),
    Slash(
        name="compact",
        argument="[focus] | undo | preview | at 60%",
        help="archive the older talk and go on with a summary; undo takes it back",
        aliases=("compact_conversation",),
    ),
    Slash(name="pin", argument="[text]", help="keep a text word for word; alone: list the pins", at_once=True),
    Slash(name="unpin", argument="number", help="let a pin go", at_once=True),
    Slash(name="drop", argument="[id]", help="send a result out of the view; alone: list them"),
    Slash(name="restore", argument="id", help="bring a dropped result back"),
    Slash(name="recall", argument="words", help="search everything that was said in this project", at_once=True),
    Slash(name="archive", help="what each compaction moved out of view", at_once=True),
    Slash(name="context", help="what fills the window", at_once=True),
    Slash(name="clear", help="begin a new session", aliases=("new",)),
    Slash(name="model", argument="[name]", help="show or change the model"),
    Slash(name="login", help="set up a model: key, local server, demo"),
    Slash(name="resume", argument="[id]", help="go on with an earlier session", aliases=("continue",)),
    Slash(name="sessions", help="all sessions of this workspace"),
    Slash(name="skills", help="skills that the model is told of", at_once=True),
    Slash(name="agents", help="sub-agents that work can be handed to", at_once=True),
    Slash(name="memory", help="AGENTS.md files in the prompt", at_once=True),
    Slash(name="doctor", help="what the agent finds here, and what would help", at_once=True),
    Slash(name="trust", help="settings that this folder brings: read them, let them take effect or not"),
    Slash(name="mode", argument="[mode]", help="what runs without being asked about", at_once=True),
    Slash(
        name="diff",
        argument="[turn | session | worktree]",
        help="what the last turn changed, this session, or what is uncommitted",
        at_once=True,
    ),
    Slash(name="undo", help="take back what the last turn did to files, its commands included"),
    Slash(name="redo", help="take an undo back"),
    Slash(name="rewind", argument="[id]", help="go back to before a message: talk, files, or both"),
    Slash(
        name="jobs", argument="[number | end number]", help="commands in the background: look, or end one", at_once=True
    ),
    Slash(name="copy", help="copy the last answer", at_once=True),
    Slash(
        name="export", argument="[file]", help="write the session as Markdown, or as JSON for a file.json", at_once=True
    ),
    Slash(name="quit", help="leave", aliases=("exit",), at_once=True),
)


def parse_slash(text: str) -> tuple[Slash, str] | None:
    """The command that `text` names exactly, and its argument; None where it names none."""
    word, _, argument = text.strip().partition(" ")
    if not word.startswith("/") or "\n" in word:
        return None
    name = word[1:]
    found = next((slash for slash in SLASH if name == slash.name or name in slash.aliases), None)
    return (found, argument.strip()) if found else None


def complete_slash(text: str) -> tuple[Slash, ...]:
    """Commands that may be meant by what was typed after `/`: exact first, then by beginning, then by letters."""
    typed = text.removeprefix("/").casefold()
    ranked = [(_rank(typed, slash), at, slash) for at, slash in enumerate(SLASH)]
    return tuple(slash for rank, _, slash in sorted(ranked, key=lambda item: item[:2]) if rank < _NO)


_NO = 9


def _rank(typed: str, slash: Slash) -> int:
    names = (slash.name, *slash.aliases)
    if typed in names:
        return 0
    if slash.name.startswith(typed):
        return 1
    if any(name.startswith(typed) for name in names):
        return 2
    return 3 if _subsequence(typed, slash.name) else _NO


def _subsequence(typed: str, name: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in typed)
