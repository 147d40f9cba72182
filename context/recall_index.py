"""The index of a project's passages: an SQLite file that answers fast, and that can be thrown away at any time.

Two FTS5 tables over chunks of the passages: `words`, for ranked search, and `grams`, the sets of trigrams, for literal
search. Neither holds a text: what is shown is read from the files, which stay the truth. Anything that does not fit
(another version, a file that shrank or was replaced, damage) makes the whole index stale, and it is made anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from time import monotonic

from .recall_passages import RECALL_TOOL, Passage, Role
from .recall_query import Query, file_fits, spaced
from .recall_sources import Place, Source, Sources
from .recall_store import INDEX_NAME, Stale, discard, open_database

CHUNK, OVERLAP = 4_000, 128
"""Characters of a chunk, and how many of the next one it has as well, so that what lies across an edge is found."""
MOST = 4_000
"""Chunks that a search takes from the index, the best or the newest ones."""
MOST_FILTERED = 50_000
"""The same before filters that only passages can answer: who wrote it, with which tool, about which file."""
_DELETE_WORDS = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
_DELETE_GRAMS = "INSERT INTO grams (grams, rowid, text) VALUES ('delete', ?, ?)"
_TIDY = ("INSERT INTO words (words) VALUES ('optimize')", "INSERT INTO grams (grams) VALUES ('optimize')")

_COLUMNS = "p.source, p.start, p.end, p.at, p.message, p.part, p.role, p.tool, p.file, p.time, p.digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A passage that may answer, as the index knows it."""

    source: Source
    place: Place
    message: str
    part: int
    role: Role
    tool: str
    file: str
    time: str
    chunk: int
    """The character of the text at which the chunk begins that may answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a search of the index gave, the first of each passage only, in order."""

    rows: tuple[Row, ...]
    complete: bool
    """There are no more."""


class Index:
    """An open index. Use `open_index`."""

    def __init__(self, db: sqlite3.Connection, sources: Sources) -> None:
        self._db = db
        self._sources = sources
        db.create_function("file_fits", 2, file_fits, deterministic=True)

    def update(
        self, wanted: Sequence[Source], *, until: float, progress: Callable[[int, int], None]
    ) -> tuple[Source, ...]:
        """Adds what came since; what could not be added before the moment `until` is returned. Raises `Stale`.

        `progress` is told the bytes that are done, and all.
        """
        known = self._known()
        if known.keys() - {source.name for source in self._sources.all()}:
            raise Stale("a file is gone")
        sizes = {source: self._sources.size(source) for source in wanted}
        begun = {source: self._checked(source, sizes[source], known.get(source.name)) for source in wanted}
        total, done = sum(sizes.values()), sum(begun.values())
        behind: list[Source] = []
        for source in wanted:
            if sizes[source] > begun[source] and (begun[source] or self._sources.readable(source)):
                for position in self._grow(source, until):
                    progress(done + position - begun[source], total)
                if monotonic() > until:
                    behind.append(source)
            done += sizes[source] - begun[source]
        return tuple(behind)

    def words(self, expression: str, query: Query, wanted: Sequence[Source]) -> Rows:
        """The passages with chunks that an FTS5 expression over words finds, the best or the newest first."""
        return self._search("words", expression, query, wanted)

    def grams(self, literal: str, query: Query, wanted: Sequence[Source]) -> Rows:
        """Passages that may hold a text of three characters or more; newest first."""
        folded = _folded(literal)[:OVERLAP]
        terms = {folded[at : at + 3] for at in range(len(folded) - 2)}
        return self._search("grams", " AND ".join(map(quoted, sorted(terms))), query, wanted)

    def forget(self, source: Source) -> None:
        """Takes every trace of a file's texts away, as long as the file is there to tell what they are."""
        known = self._known()
        if source.name not in known:
            return
        self._checked(source, self._sources.size(source), known[source.name])
        (number,) = self._db.execute("SELECT id FROM sources WHERE name = ?", (source.name,)).fetchone()
        with self._writing():
            for passage, texts in self._chunked(source, known[source.name][0]):
                found = self._db.execute(
                    "SELECT c.id FROM chunks c JOIN passages p ON p.id = c.passage WHERE p.source = ? AND p.message = ?"
                    " AND p.part = ? ORDER BY c.id",
                    (number, passage.message, passage.part),
                ).fetchall()
                if len(found) != len(texts):
                    raise Stale("other texts were indexed")
                for (chunk,), text in zip(found, texts, strict=True):
                    self._delete(chunk, text)
            self._db.execute(
                "DELETE FROM chunks WHERE passage IN (SELECT id FROM passages WHERE source = ?)", (number,)
            )
            self._db.execute("DELETE FROM passages WHERE source = ?", (number,))
            self._db.execute("DELETE FROM sources WHERE id = ?", (number,))
            for statement in _TIDY:
                self._db.execute(statement)

    def _delete(self, chunk: int, text: str) -> None:
        self._db.execute(_DELETE_WORDS, (chunk, spaced(text)))
        self._db.execute(_DELETE_GRAMS, (chunk, _folded(text)))

    def _known(self) -> dict[str, tuple[int, str, str]]:
        rows = self._db.execute("SELECT name, bytes, head, tail FROM sources")
        return {name: (size, head, tail) for name, size, head, tail in rows}

    def _checked(self, source: Source, size: int, known: tuple[int, str, str] | None) -> int:
        """The byte up to which a file is indexed. Raises `Stale` if what is indexed is not its beginning."""
        if known is None:
            return 0
        done, head, tail = known
        if size == 0 and done:
            return 0
        changed = size < done or (source.kind == "archive" and size != done)
        if changed or self._sources.head(source) != head or self._sources.tail(source, done) != tail:
            raise Stale(f"{source.name} was replaced")
        return done

    def _grow(self, source: Source, until: float) -> Iterator[int]:
        """Adds a file block by block, and gives the byte up to which it is done each time."""
        files: dict[str, str] = {}
        while monotonic() <= until:
            start = self._known().get(source.name, (0, "", ""))[0]
            batch: list[tuple[Place, Passage]] = []
            end = start
            for end, located in self._sources.messages(source, start):
                if located is None:
                    if end > start:
                        break
                    continue  # a line longer than a block: it ends in one of the next
                passages = self._sources.passages(located.message, files)
                batch += [(located.place, passage) for passage in passages if passage.text]
            if end == start:
                return
            if self._add(source, start, end, batch):
                yield end

    def _add(self, source: Source, start: int, end: int, batch: Sequence[tuple[Place, Passage]]) -> bool:
        """Writes a block; False if another process was faster."""
        with self._writing():
            if self._known().get(source.name, (0, "", ""))[0] != start:
                return False
            head, tail = self._sources.head(source), self._sources.tail(source, end)
            self._db.execute(
                "INSERT INTO sources (name, session, kind, bytes, head, tail) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes, tail = excluded.tail",
                (source.name, source.session, source.kind, end, head, tail),
            )
            (number,) = self._db.execute("SELECT id FROM sources WHERE name = ?", (source.name,)).fetchone()
            passages = zip(count(self._next("passages")), batch, strict=False)
            chunks = count(self._next("chunks"))
            for first, (place, passage) in passages:
                self._add_passage(first, number, place, passage, chunks)
        return True

    def _add_passage(self, number: int, source: int, place: Place, passage: Passage, chunks: Iterator[int]) -> None:
        self._db.execute(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(number, source, place.start, place.end, place.at, passage.message, passage.part),
                *(passage.role, passage.tool, passage.file, passage.time, _digest(passage.text)),
            ),
        )
        for at, text in _chunks(passage.text):
            chunk = next(chunks)
            self._db.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", (chunk, number, at, source, passage.time))
            self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (chunk, spaced(text)))
            self._db.execute("INSERT INTO grams (rowid, text) VALUES (?, ?)", (chunk, _folded(text)))

    def _chunked(self, source: Source, end: int) -> Iterator[tuple[Passage, list[str]]]:
        """The passages of the first `end` bytes of a file, with their chunks."""
        for position, located in self._sources.messages(source):
            if position > end:
                return
            if located is not None:
                for passage in self._sources.passages(located.message):
                    if passage.text:
                        yield passage, [text for _, text in _chunks(passage.text)]

    def _next(self, table: str) -> int:
        return (self._db.execute(f"SELECT max(id) FROM {table}").fetchone()[0] or 0) + 1  # noqa: S608 - our own names

    @contextmanager
    def _writing(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _search(self, table: str, expression: str, query: Query, wanted: Sequence[Source]) -> Rows:
        numbers = dict(self._db.execute("SELECT name, id FROM sources").fetchall())
        searched = {numbers[source.name]: source for source in wanted if source.name in numbers}
        order = "rank" if query.by_rank and table == "words" else "time DESC, id DESC"
        rank = ", rank" if order == "rank" else ""  # it is reckoned for every row that asks for it
        inner, bounds = _where((("c.time >= ?", query.after.rstrip("Z")), ("c.time < ?", query.before.rstrip("Z"))))
        if len(searched) < len(numbers):
            inner += f" AND c.source IN ({', '.join(map(str, searched))})"
        outer, values = _where(_conditions(query))
        most = MOST_FILTERED if query.role or query.tool or query.file else MOST
        matching = f"FROM {table} JOIN chunks c ON c.id = {table}.rowid WHERE {table} MATCH ?{inner}"
        statement = (
            f"WITH best AS (SELECT c.id, c.passage, c.start AS chunk, c.time{rank} {matching} ORDER BY {order}"  # noqa: S608 - values are bound
            f" LIMIT {most}) SELECT {_COLUMNS}, best.chunk, (SELECT count(*) FROM best) FROM best"
            f" JOIN passages p ON p.id = best.passage WHERE 1{outer} ORDER BY best.{order.replace(', ', ', best.')}"
        )
        found: dict[tuple[str, int, int], Row] = {}
        fetched = 0
        rows = self._db.execute(statement, (expression, *bounds, *values))
        for number, start, end, at, message, part, role, tool, file, time, digest, chunk, fetched in rows:  # noqa: B007 - the last one counts
            key = (message, part, digest)  # a copied session has the same messages
            if key not in found:
                found[key] = Row(
                    source=searched[number],
                    place=Place(start=start, end=end, at=at),
                    message=message,
                    part=part,
                    role=role,
                    tool=tool,
                    file=file,
                    time=time,
                    chunk=chunk,
                )
        if not found:  # the filters may have taken all that were looked at
            (fetched,) = self._db.execute(f"SELECT count(*) {matching}", (expression, *bounds)).fetchone()
        return Rows(rows=tuple(found.values()), complete=fetched < most)


def _conditions(query: Query) -> tuple[tuple[str, str], ...]:
    """What `Query.fits` asks of passages, as SQL."""
    return (
        ("p.role = ?", query.role or ""),
        ("p.tool = ?", query.tool),
        ("file_fits(p.file, ?)", query.file),
        ("p.message != ?", query.skip),
        ("p.tool != ?", "" if query.tool else RECALL_TOOL),
    )


def _where(tests: Iterable[tuple[str, str]]) -> tuple[str, list[str]]:
    """The tests whose values are not empty, and these values."""
    used = [(test, value) for test, value in tests if value]
    return "".join(f" AND {test}" for test, _ in used), [value for _, value in used]


def quoted(term: str) -> str:
    """A term as FTS5 takes it."""
    return '"' + term.replace('"', '""') + '"'


def _folded(text: str) -> str:
    return text.casefold().replace("\0", " ")


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    return ((at, text[at : at + CHUNK + OVERLAP]) for at in range(0, len(text), CHUNK))


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=7).digest(), "big")


@contextmanager
def open_index(sources: Sources) -> Generator[Index]:
    """The project's index, made where it is missing. Raises `Stale` or `Unusable`, also from inside."""
    with open_database(sources.storage.own(INDEX_NAME)) as db:
        yield Index(db, sources)


def discard_index(sources: Sources) -> bool:
    """Throws the index away; False where another process uses it or it cannot be removed."""
    return discard(sources.storage.own(INDEX_NAME))
