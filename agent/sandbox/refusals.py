"""What the sandbox kept a command from, read from what the command said.

Tools report in words, so this is a reading, and a careful one: a path counts only if the bounds close it and the user
could write or read it otherwise; a refused connection only if somebody listens outside. Better to miss one than to
ask a person for something that would not help.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from .bounds import Bounds, Refusal, depth, enclosing

_TAIL = 64 * 1024
"""Bytes at the end of the output that are looked at: what failed stands there."""
_MOST = 8
"""So many refusals are told of at most."""
_LONGEST = 1024
"""Characters of a name; longer ones are no paths that a person would be asked about."""
_BEFORE = 3
"""So many lines before the reason a path may stand in."""
_NO_RIGHT = re.compile(
    r"read-only file ?system|permission denied|operation not permitted|access is denied|device or resource busy"
    r"|\bEROFS\b|\bEACCES\b|\bEPERM\b|\bEBUSY\b|cross-device link|not writable|could not lock config file",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"|`([^`'\n]+)[`']|‘([^’\n]+)’|«([^»\n]+)»")
_BARE = re.compile(r"(?:(?<=\s)|^)((?:~|\.{0,2})/[^\s'\"`:,;()]+|[\w.@+-]+(?:/[\w.@+-]+)+)")
_HOST = r"[\"'`‘]?([A-Za-z0-9_][\w.-]*\w)"
_NETWORK = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"could not resolve (?:host(?:name)?|proxy):? {_HOST}",
        rf"(?:temporary failure|failed|unable|error)(?: in| to)? resolv(?:e|ing) (?:host ?(?:address|name)? )?{_HOST}",
        rf"lookup {_HOST}(?: on [\w.:\[\]]+)?:",
        rf"getaddrinfo (?:EAI_AGAIN|ENOTFOUND) {_HOST}",
        rf"(?:EAI_AGAIN|ENOTFOUND) {_HOST}",
        rf"host={_HOST}.*(?:NameResolutionError|NewConnectionError|Max retries exceeded)",
        rf"https?://{_HOST}.*(?:dns error|network is unreachable|could(?: not|n't) connect|error sending request)",
    )
)
_NETWORK_WITHOUT_HOST = re.compile(
    r"network is unreachable|\bENETUNREACH\b|temporary failure in name resolution|name or service not known"
    r"|dns error|\bEAI_AGAIN\b|no address associated with hostname|could(?:n't| not) resolve host|NameResolutionError"
    r"|nodename nor servname",
    re.IGNORECASE,
)
_LISTENER = re.compile(r"(?:localhost|127\.0\.0\.1|\[?::1\]?)\D{1,12}?(\d{2,5})\b|port (\d{2,5})\b")
_REFUSED = re.compile(r"connection refused|ECONNREFUSED|failed to connect|could ?n(?:o|')t connect", re.IGNORECASE)
_NOT_HOSTS = {"in", "to", "host", "name", "the", "address", "on", "from"}
_OTHER = (
    (re.compile(r"(?:docker|podman|containerd|unix)\S*.*?(/\S+\.sock)", re.IGNORECASE), ""),
    (re.compile(r"sudo: .*(?:no new privileges|effective uid is not 0)", re.IGNORECASE), "sudo"),
)
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"


def refusals(output: bytes, bounds: Bounds, cwd: Path) -> tuple[Refusal, ...]:
    """What bounds kept a failed command from. `cwd` is where it ran; looks at the disk."""
    lines = output[-_TAIL:].decode("utf-8", "replace").splitlines()
    found: dict[Refusal, None] = {}
    for number, line in enumerate(lines):
        if len(found) >= _MOST:
            break
        if _NO_RIGHT.search(line):
            found.update(dict.fromkeys(_paths(lines[max(0, number - _BEFORE) : number + 1], bounds, cwd)))
            found.update(dict.fromkeys(_others(line)))
        if not bounds.network:
            found.update(dict.fromkeys(_hosts(lines[max(0, number - _BEFORE) : number + 1])))
    named = any(refusal.kind == "network" and refusal.subject for refusal in found)
    kept = [refusal for refusal in found if refusal.kind != "network" or refusal.subject or not named]
    return tuple(kept[:_MOST])


def _paths(lines: list[str], bounds: Bounds, cwd: Path) -> Iterator[Refusal]:
    """The first closed path, looked for in the line with the reason and then in those before it."""
    for line in reversed(lines):
        found = [refusal for name in _names(line) if (refusal := _judged(name, bounds, cwd))]
        if found:
            yield found[0]
            return
        if line is not lines[-1] and _NO_RIGHT.search(line):
            return  # that one has a reason of its own


def _names(line: str) -> Iterator[str]:
    """What in a line may be a path: quoted texts, what stands between colons, words with a slash."""
    yield from (found[found.lastindex or 0] for found in _QUOTED.finditer(line))
    yield from (part.strip() for part in re.split(r": |:$", line))
    yield from _BARE.findall(line)


def _judged(name: str, bounds: Bounds, cwd: Path) -> Refusal | None:
    """The refusal, if this is a path that the bounds close and that the user could otherwise reach."""
    if not name or len(name) > _LONGEST or "\0" in name or name.startswith("-"):
        return None
    try:
        given = cwd / os.path.expanduser(name)  # noqa: PTH111 - raises nothing
        path = (given if given.is_absolute() else cwd / given).resolve()
        place = given.parent.resolve() / given.name if given.name not in {"", ".."} else path
        if bounds.hides(path):
            return Refusal(kind="read", subject=name) if os.access(path, os.R_OK) else None
        if bounds.may_write(path) and bounds.may_write(place):
            return None
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
        if not os.access(existing, os.W_OK):
            return None
    except (OSError, RuntimeError, ValueError):
        return None
    if not os.path.isabs(name) and "/" not in name and not os.path.lexists(given) and bounds.may_write(cwd.resolve()):  # noqa: PTH117
        return None  # a word of the sentence
    closed = max(enclosing(bounds.read_only, path), key=depth, default=None)
    folder = closed or (existing if existing.is_dir() else existing.parent)
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - raises nothing
    return Refusal(kind="write", subject=name, folder=None if folder in {home, *home.parents} else folder)


def _hosts(lines: list[str]) -> Iterator[Refusal]:
    """What the last of these lines says about the network; the port that refused may stand in one before it."""
    line = lines[-1]
    for pattern in _NETWORK:
        if (found := pattern.search(line)) and found[1].lower() not in _NOT_HOSTS:
            yield Refusal(kind="network", subject=found[1])
            return
    if _NETWORK_WITHOUT_HOST.search(line):
        yield Refusal(kind="network")
    elif _REFUSED.search(line):
        ports = {int(port) for text in lines for found in _LISTENER.findall(text) for port in found if port}
        yield from (Refusal(kind="network", subject=f"localhost:{port}") for port in sorted(ports & _listening()))


def _listening() -> set[int]:
    """Ports of this machine at which somebody listens."""
    ports: set[int] = set()
    for table in _TABLES:
        try:
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
        except OSError:
            continue
        ports.update(int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == _LISTENING)
    return ports


def _others(line: str) -> Iterator[Refusal]:
    for pattern, subject in _OTHER:
        if found := pattern.search(line):
            yield Refusal(kind="other", subject=subject or found[1])
