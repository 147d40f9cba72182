"""The flags of a run, read by typer: they become `RunOptions`. What is done with these is `cli.run`'s business."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Exit, Option, Typer

from .. import __version__
from .options import NEWEST, PICK, OutputFormat, RunOptions
from .words import COMMANDS

_SESSION = re.compile(r"\d{8}(-\d{0,6}(-\w{0,4})?)?")
"""A session's id, or its beginning."""

_Mode = Literal["default", "accept-edits", "plan", "yolo"]
_Words = Annotated[list[str] | None, Argument(metavar="PROMPT", help="What to do.", show_default=False)]
_Print = Annotated[bool, Option("-p", "--print", help="Run without the screen and print the answer.")]
_Model = Annotated[str | None, Option("-m", "--model", metavar="NAME", help="A litellm name, scripted:FILE, or demo.")]
_Continue = Annotated[bool, Option("-c", "--continue", help="Go on with the newest session of this workspace.")]
_Resume = Annotated[str | None, Option("-r", "--resume", metavar="[ID]", help="Go on with a session.")]
_Fork = Annotated[bool, Option("--fork", help="Go on in a copy of the session.")]
_Cwd = Annotated[Path | None, Option("-C", "--cwd", metavar="DIR", help="Work in this folder.")]
_AddDir = Annotated[list[Path] | None, Option("--add-dir", metavar="DIR", help="A further folder for the file tools.")]
_Output = Annotated[OutputFormat, Option("--output-format", metavar="FORMAT", help="text, json or stream-json.")]
_Turns = Annotated[int | None, Option("--max-turns", min=1, metavar="N", help="Stop after so many model calls.")]
_Tokens = Annotated[
    int | None, Option("--max-tokens", min=1, metavar="N", help="Stop after so many tokens, sent and received.")
]
_Cost = Annotated[float | None, Option("--max-cost", metavar="USD", help="Stop after so many dollars.")]
_Timeout = Annotated[float | None, Option("--timeout", metavar="S", help="Stop after so many seconds.")]
_Permission = Annotated[
    _Mode | None, Option("--permission-mode", metavar="MODE", help="default, accept-edits, plan or yolo.")
]
_Sandbox = Annotated[
    Literal["auto", "off", "strict"] | None,
    Option("--sandbox", metavar="MODE", help="Confine commands: auto, off or strict."),
]
_Yolo = Annotated[bool, Option("--yolo", help="The same as --permission-mode yolo.")]
_Allow = Annotated[list[str] | None, Option("--allow", metavar="RULE", help="Do not ask: tool, or tool(pattern).")]
_Deny = Annotated[list[str] | None, Option("--deny", metavar="RULE", help="Refuse: tool, or tool(pattern).")]
_Window = Annotated[int | None, Option("--context-window", metavar="N", help="The model's window in tokens.")]
_CompactAt = Annotated[
    float | None, Option("--compact-at", metavar="SHARE", help="Share of the window where compaction starts [0.85].")
]
_TrimAt = Annotated[
    float | None, Option("--trim-at", metavar="SHARE", help="Share from which old results leave the view [0.60].")
]
_Keep = Annotated[
    float | None, Option("--keep", metavar="SHARE", help="Share that stays word for word in a compaction [0.10].")
]
_NoAuto = Annotated[bool, Option("--no-auto-compact", help="Compact only when asked, or after an overflow.")]
_Effort = Annotated[str | None, Option("--effort", metavar="LEVEL", help="How hard the model thinks.")]
_Append = Annotated[str | None, Option("--append-system-prompt", metavar="TEXT", help="Put before the system prompt.")]
_NoPersist = Annotated[bool, Option("--no-session-persistence", help="Keep nothing of the session.")]
_Trust = Annotated[bool, Option("--trust", help="Let the project's own settings take effect, for this run.")]
_Debug = Annotated[Path | None, Option("--debug", metavar="FILE", help="Write what happens to a file.")]


def read_flags(argv: Sequence[str]) -> RunOptions | int:
    """What the arguments of a run say, or the exit code where they say nothing that can be run."""
    found: list[RunOptions] = []
    code = _parse(_with_resume_value(argv), found.append)
    return found[0] if found else code


def _with_resume_value(argv: Sequence[str]) -> list[str]:
    """The arguments with a value for a bare `--resume`, as its id may be left out."""
    result: list[str] = []
    for position, word in enumerate(argv):
        if word == "--":
            return [*result, *argv[position:]]
        result.append(word)
        following = argv[position + 1] if position + 1 < len(argv) else ""
        if word in ("-r", "--resume") and not _SESSION.fullmatch(following):
            result.append(PICK)
    return result


def _parse(argv: Sequence[str], take: Callable[[RunOptions], None]) -> int:
    """Hands the options to `take`; where it does not, the exit code says why."""
    app = Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(epilog=_epilog())(_command(take))
    try:
        app(args=list(argv), prog_name="deepagent")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _epilog() -> str:
    """The sub-commands as a table; `\b` keeps the help page from filling its lines."""
    return "\b\nSub-commands:\n" + "\n".join(f"  {name:<10}{text}" for name, text in COMMANDS.items())


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"deepagent {__version__}")
        raise Exit


_Version = Annotated[bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")]


def _command(take: Callable[[RunOptions], None]) -> Callable[..., None]:
    """The command whose parameters are the flags."""

    def run(
        *,
        prompt: _Words = None,
        print_: _Print = False,
        model: _Model = None,
        continue_: _Continue = False,
        resume: _Resume = None,
        fork: _Fork = False,
        cwd: _Cwd = None,
        add_dir: _AddDir = None,
        output_format: _Output = "text",
        max_turns: _Turns = None,
        max_tokens: _Tokens = None,
        max_cost: _Cost = None,
        timeout: _Timeout = None,
        permission_mode: _Permission = None,
        yolo: _Yolo = False,
        sandbox: _Sandbox = None,
        allow: _Allow = None,
        deny: _Deny = None,
        context_window: _Window = None,
        compact_at: _CompactAt = None,
        trim_at: _TrimAt = None,
        keep: _Keep = None,
        no_auto_compact: _NoAuto = False,
        effort: _Effort = None,
        append_system_prompt: _Append = None,
        no_session_persistence: _NoPersist = False,
        trust: _Trust = False,
        debug: _Debug = None,
        version: _Version = False,
    ) -> None:
        """A coding agent in your terminal that keeps its context small and loses nothing."""
        take(_options(locals()))

    return run


_SETTINGS = {
    "model": "model",
    "effort": "effort",
    "max_turns": "limits.max_turns",
    "max_tokens": "limits.max_tokens",
    "max_cost": "limits.max_cost",
    "timeout": "limits.timeout",
    "permission_mode": "permissions.mode",
    "sandbox": "sandbox.mode",
    "allow": "permissions.allow",
    "deny": "permissions.deny",
    "context_window": "context.window",
    "compact_at": "context.compact_at",
    "trim_at": "context.trim_at",
    "keep": "context.keep",
    "append_system_prompt": "prompt.append",
}
"""Flags that are settings, by the settings' keys; a flag that was not given is None."""


def _options(said: Mapping[str, Any]) -> RunOptions:
    """The options that the parameters of `run` stand for."""
    flags: dict[str, object] = {key: said[name] for name, key in _SETTINGS.items()}
    if said["yolo"]:
        flags["permissions.mode"] = "yolo"
    if said["no_auto_compact"]:
        flags["context.auto_compact"] = False
    return RunOptions(
        prompt=" ".join(said["prompt"]) if said["prompt"] else None,
        print=said["print_"],
        output=said["output_format"],
        cwd=said["cwd"],
        add_dirs=tuple(said["add_dir"] or ()),
        session=said["resume"] or (NEWEST if said["continue_"] else None),
        fork=said["fork"],
        persist=not said["no_session_persistence"],
        trust=said["trust"],
        debug=said["debug"],
        flags=flags,
    )
