"""The environment that commands run in, and where programs of ours are found.

A command never waits for a person: nothing asks for a password, opens an editor or a pager. It does not see the keys
that the agent itself works with.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

_SECRET = re.compile(
    r"\w*_API_KEY|DEEPAGENT_\w*(KEY|TOKEN|SECRET|PASSWORD)\w*"
    r"|(ANTHROPIC_AUTH|HF|HUGGING_FACE_HUB|HUGGINGFACEHUB_API|REPLICATE_API|AWS_BEARER|WATSONX|DATABRICKS|AZURE_AD"
    r"|CLOUDFLARE_API|SNOWFLAKE|PREDIBASE|GITHUB_COPILOT)_TOKEN\w*"
    r"|AWS_(SECRET_ACCESS_KEY|SESSION_TOKEN)|AZURE_OPENAI_\w*KEY|VERTEXAI_CREDENTIALS|WATSONX_APIKEY",
    re.IGNORECASE,
)
"""Names of variables that hold what model providers charge by."""
_SILENT = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "PIP_NO_INPUT": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
}
"""ssh is not told BatchMode: `GIT_SSH_COMMAND` would override the user's own. Without a terminal it cannot ask."""
_COLOURFUL = ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "COLORTERM")


def command_environment(environ: Mapping[str, str], hidden: Collection[str]) -> dict[str, str]:
    """What a command finds in its environment; `hidden` names variables to leave out besides the known keys."""
    kept = {k: v for k, v in environ.items() if k not in hidden and k not in _COLOURFUL and not _SECRET.fullmatch(k)}
    return {**kept, **_SILENT}


def program(name: str, environ: Mapping[str, str], workspace: Path) -> str | None:
    """The absolute path of a program, never one from the workspace or from a relative entry of PATH."""
    folders = [Path(folder) for folder in environ.get("PATH", os.defpath).split(os.pathsep)]
    trusted = [str(f) for f in folders if f.is_absolute() and workspace not in (f, *f.parents)]
    return shutil.which(name, path=os.pathsep.join(trusted))


def shell(environ: Mapping[str, str], workspace: Path) -> str:
    """The shell that commands are written for: bash where there is one."""
    return program("bash", environ, workspace) or "/bin/sh"
