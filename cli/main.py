"""The program's entry point: looks at the first word, and loads no more than that word needs.

`--version` needs nothing. A sub-command's name goes to `cli.commands`, everything else is a run (`cli.run`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .. import __version__
from .streams import drop_output, prepare_streams
from .words import COMMANDS, nearest_command

FAILED, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes: `USAGE` for a command line that makes no sense."""


def main() -> None:
    """Runs the command line and exits with its code."""
    prepare_streams()
    try:
        code = dispatch(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # as with `| head`: nobody wants to read about it
        drop_output()
        code = FAILED
    sys.exit(code)


def dispatch(argv: Sequence[str]) -> int:
    """The exit code of a command line without the program's name."""
    first = argv[0] if argv else ""
    if first in ("--version", "-V"):
        print(f"deepagent {__version__}")
        return 0
    if first in COMMANDS:
        from .commands import run_command

        return run_command(argv)
    meant = nearest_command(first)
    if meant is not None:
        print(
            f"deepagent: {first!r} is no command; did you mean {meant!r}?\n"
            f"To send it as a prompt: deepagent -p -- {first}",
            file=sys.stderr,
        )
        return USAGE
    from .run import run_prompt

    return run_prompt(argv)
