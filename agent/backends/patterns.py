"""Glob patterns for paths, as tools take them and as ignore files write them.

Of paths relative to a folder, with slashes. Matching alone: what is walked and what is ignored is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate

_TOKEN = re.compile(r"(?<![^/])\*\*/|/\*\*$|\*+|\?|\[[!^]?\]?(?:\\.|[^]/\\])*\]|\\.|.", re.DOTALL)


def matcher(pattern: str) -> re.Pattern[str]:
    """An expression whose `fullmatch` takes the paths that match a tool's pattern.

    `*`, `?`, `[…]` and `{a,b}` stay within a name, `**` crosses folders. A pattern without a slash looks at the name in
    any folder. A bracket also stands for itself, because folders are called `[id]` or `[...slug]` in some projects.
    """
    pattern = pattern.removeprefix("./")
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    return re.compile(f"{anywhere}(?:{_translated(pattern, _tool_token)})", re.DOTALL)


def name_part(pattern: str) -> str | None:
    """The last part of a tool's pattern if it is plain enough for ripgrep to filter names by, else None."""
    last = pattern.rpartition("/")[2]
    return last if last and re.fullmatch(r"[\w.*?-]+", last, re.ASCII) and "**" not in last else None


def _translated(pattern: str, translate: Callable[[str], str]) -> str:
    tokens = _TOKEN.findall(pattern)
    depths = list(accumulate({"{": 1, "}": -1}.get(token, 0) for token in tokens))
    braces = not depths or (min(depths) >= 0 and depths[-1] == 0)
    parts: list[str] = []
    for token, depth in zip(tokens, depths, strict=True):
        match token:
            case "{" if braces:
                parts.append("(?:")
            case "}" if braces:
                parts.append(")")
            case "," if braces and depth:
                parts.append("|")
            case _:
                parts.append(translate(token))
    return "".join(parts)


def _tool_token(token: str) -> str:
    bracket = token.startswith("[") and len(token) > 1
    return f"(?:{_token(token)}|{re.escape(token)})" if bracket else _token(token)


def _token(token: str) -> str:
    match token:
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "/.*"
        case "?":
            return "[^/]"
        case _ if token.startswith("*"):
            return "[^/]*"
        case _ if token.startswith("[") and len(token) > 1:
            return _bracket(token)
        case _:
            return re.escape(token[1:] if token.startswith("\\") and len(token) > 1 else token)


def _bracket(token: str) -> str:
    negated = token[1] in "!^"
    members = token[2:-1] if negated else token[1:-1]
    if not members:
        return re.escape(token)
    escaped = re.sub(r"[\[\]&|~^]|\\(?=[A-Za-z0-9])|\\$", lambda m: "" if m[0] == "\\" else f"\\{m[0]}", members)
    body = f"[{'^' if negated else ''}{escaped}]"
    try:
        re.compile(body)
    except re.error:  # such as a range that runs backwards: it matches nothing
        return "(?!)"
    return f"(?!/){body}"


def ignore_rule(line: str) -> tuple[bool, bool, str] | None:
    """One line of an ignore file: whether it ignores (or takes back), whether it means only folders, and an expression
    for the whole path of an entry. None for a blank line or a comment. Braces are alternatives, as ripgrep has it."""
    line = line.rstrip("\r\n")
    line = re.sub(r"(?<!\\)[ \t]+$", "", line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    line = line if ignores else line[1:]
    folders = line.endswith("/")
    line = line.rstrip("/") if folders else line
    if not line:
        return None
    line, anchored = line.removeprefix("/"), "/" in line.removeprefix("**/")
    body = ".*" if line == "**" else _translated(line, _token)
    return ignores, folders, body if anchored else f"(?:.*/)?{body}"
