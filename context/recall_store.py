"""The index's file: made, opened, locked against those who would throw it away, and thrown away.

What is in it is the business of `context.recall_index`.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

INDEX_NAME = "conversation_history/index.sqlite"
VERSION = 1
_PATIENCE = 2.0
"""Seconds to wait for another process that writes."""
_NOT_BROKEN = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_NOMEM,
    )
)
"""What an index that is whole may say as well."""
_SCHEMA = f"""
CREATE TABLE sources (id INTEGER PRIMARY KEY, name TEXT UNIQUE, session TEXT, kind TEXT, bytes INTEGER, head TEXT,
    tail TEXT);
CREATE TABLE passages (id INTEGER PRIMARY KEY, source INTEGER, start INTEGER, end INTEGER, at INTEGER, message TEXT,
    part INTEGER, role TEXT, tool TEXT, file TEXT, time TEXT, digest INTEGER);
CREATE INDEX passages_of_source ON passages (source);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, passage INTEGER, start INTEGER, source INTEGER, time TEXT);
CREATE INDEX chunks_of_passage ON chunks (passage);
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE grams USING fts5 (text, content='', detail=none, columnsize=0,
    tokenize='trigram case_sensitive 1');
PRAGMA user_version = {VERSION};
"""


class Stale(Exception):
    """The index does not fit the files."""


class Unusable(Exception):
    """There is no index to be had; the text says why."""


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """The index, made where it is missing. Raises `Stale` or `Unusable`, also from inside."""
    try:
        with _in_use(path.parent):
            db = _connect(path)
            try:
                yield db
            finally:
                db.close()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        raise (Unusable if code in _NOT_BROKEN else Stale)(str(error)) from error
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from error


def discard(path: Path) -> bool:
    """Throws the index away; False where another process uses it or it cannot be removed."""
    try:
        with _in_use(path.parent, alone=True):
            for file in (path, *(path.with_name(path.name + end) for end in ("-journal", "-wal", "-shm"))):
                file.unlink(missing_ok=True)
    except OSError:
        return False
    return True


@contextmanager
def _in_use(folder: Path, *, alone: bool = False) -> Generator[None]:
    """Holds the folder's lock, so that nobody throws an index away that another process writes."""
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _connect(path: Path) -> sqlite3.Connection:
    """Opens the file; a new one is for the user alone. Raises `Stale` for another version's."""
    with suppress(FileExistsError, PermissionError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute("PRAGMA secure_delete = ON")
        if version == 0:
            _make(db)
        elif version != VERSION:
            raise Stale(f"it has version {version}")
    except BaseException:
        db.close()
        raise
    return db


def _make(db: sqlite3.Connection) -> None:
    """Makes the tables, unless another process has just done so."""
    db.execute("BEGIN IMMEDIATE")
    if db.execute("PRAGMA user_version").fetchone()[0] == 0:
        for statement in _SCHEMA.strip().rstrip(";").split(";"):
            db.execute(statement)
    db.execute("COMMIT")
