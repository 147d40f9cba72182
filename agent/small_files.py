"""Small files: settings, keys, notes. Reading them never waits, writing is all or nothing and private.

The session's own files (log, archive, offloads) have a storage of their own (`agent.storage`).
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from secrets import token_hex

from .errors import ConfigError


def read_small(path: Path, limit: int) -> tuple[bytes, int]:
    """The first `limit` bytes of a regular file, and its whole size in bytes.

    Raises `OSError`, for folders, pipes and devices too: none of them is opened and waited for.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(limit), os.fstat(file.fileno()).st_size


def real_path(path: Path) -> Path:
    """`path` without links. Raises `OSError` for what is missing, and for loops and long chains of links."""
    path.stat()  # first: the kernel follows 40 links, `realpath` as many as the stack holds
    return Path(os.path.realpath(path, strict=True))


def expand(path: str) -> Path:
    """`path` with a leading `~` or `~name` resolved; as it is where there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - `Path.expanduser` raises for an unknown user


def write_private(path: Path, data: bytes) -> None:
    """Makes `data` the content of `path`, all or nothing: 0600, in folders 0700. A link is written through."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def parse_toml(data: bytes, path: Path) -> dict[str, object]:
    """The content of a TOML file. Raises `ConfigError` that names `path`, line and column, and never a value."""
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: is not valid UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        where = f"{found[1]}:{found[2]}" if found else str(data.count(b"\n") + 1)
        reason = re.sub(r" \(at [^)]*\)", "", str(error))
        raise ConfigError(f"{path}:{where}: is not valid TOML: {reason}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deeply") from error
