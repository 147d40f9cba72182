"""Recall: searching and reading back everything that ever was in the conversations of a project.

The files are the truth: logs, archives whose logs are gone, offloaded texts. The index only says where to look; without
it (read-only, locked, damaged, an SQLite without FTS5) the files themselves are gone through, with a notice. How a
message falls into passages is told in `context.recall_passages`, reading back in `context.recall_read`, and the answer
as a model gets it in `context.recall_text`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from .recall_index import (
    CHUNK,
    OVERLAP,
    Index,
    Row,
    Rows,
    discard_index,
    open_index,
    quoted,
)
from .recall_passages import Passage
from .recall_query import Find, Query, Span, find_literal, find_words, pieces, spaced
from .recall_regex import RegexSearch, TooSlow
from .recall_sources import Place, Source, Sources
from .recall_store import INDEX_NAME, Stale, Unusable
from .storage import Storage

_LOOKED = 50
"""Texts that are looked at for the number of hits alone, once there are enough to show."""
_BATCH = 200
"""Passages that a regular expression gets together."""
_AT_LEAST = 2.0
"""Seconds for looking at what the index found."""
SECONDS = 20.0
"""What a search may take, the making of the index included, unless the caller says otherwise."""
Progress = Callable[[int, int], None]
"""Told the bytes that are done, and all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that answers."""

    session: str
    passage: Passage
    span: Span
    """Where in its text the hit is, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came to."""

    hits: tuple[Hit, ...]
    total: int
    """How many passages answer; at least so many where it is not `exact`."""
    exact: bool
    partly: bool = False
    """No passage has all the words; these have some of them."""
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class _Run:
    """A search while it goes on."""

    query: Query
    limit: int
    until: float
    progress: Progress
    wanted: tuple[Source, ...]


def _quiet(_done: int, _all: int) -> None:
    """For callers whom no progress interests."""


class Recall:
    """The conversations of one project. For one thread at a time; what it does may take seconds, so keep it off the
    loop's thread."""

    def __init__(self, storage: Storage) -> None:
        self._notices: dict[str, None] = {}
        self.sources = Sources(storage, self._notice)

    def _notice(self, text: str) -> None:
        if len(self._notices) < 20:
            self._notices[text] = None

    @property
    def notices(self) -> tuple[str, ...]:
        """What was odd about the files since the last search began."""
        return tuple(self._notices)

    def search(self, query: Query, *, limit: int = 10, seconds: float = SECONDS, progress: Progress = _quiet) -> Found:
        """At most `limit` passages that answer a query. Never raises for what is wrong with files."""
        self._notices.clear()
        wanted = self.sources.all() if query.session is None else self.sources.of(query.session)
        run = _Run(query=query, limit=limit, until=monotonic() + seconds, progress=progress, wanted=wanted)
        found = self._by_regex(run) if query.mode == "regex" else self._by_index(run)
        return replace(found, notices=self.notices)

    def forget(self, session: str) -> None:
        """Takes the texts of a session out of the index, before its files are removed."""
        try:
            if self.sources.storage.size(INDEX_NAME) >= 0:
                with open_index(self.sources) as index:
                    for source in self.sources.of(session):
                        index.forget(source)
        except FileNotFoundError:
            return
        except (Stale, Unusable) as error:
            if not discard_index(self.sources):
                self._notice(f"the index still has words of {session}: {error}")

    def _by_index(self, run: _Run) -> Found:
        """With the index, which is made anew once if it is stale; else without."""
        for attempt in (1, 2):
            try:
                with open_index(self.sources) as index:
                    behind = index.update(run.wanted, until=run.until, progress=run.progress)
                    found = self._indexed(index, run)
                if behind:
                    self._notice(f"time was over with {len(behind)} of {len(run.wanted)} files: search again for more")
                return replace(found, exact=found.exact and not behind)
            except Stale as error:
                if attempt == 2 or not discard_index(self.sources):
                    self._notice(f"the index cannot be used ({error}): the files were searched without it")
                    break
            except Unusable as error:
                self._notice(f"the index cannot be used ({error}): the files were searched without it")
                break
        return self._streamed(run)

    def _indexed(self, index: Index, run: _Run) -> Found:
        query = run.query
        words = pieces(query.text) if query.mode == "words" else ()
        if words:
            terms = [quoted(spaced(word)) for word in words]
            found = index.words(" AND ".join(terms), query, run.wanted)
            every = bool(found.rows)
            if not every and len(words) > 1:
                found = index.words(" OR ".join(terms), replace(query, order="rank"), run.wanted)
            hits = self._read(found.rows[: run.limit], find_words(words, every=False))
            return Found(
                hits=tuple(hits), total=len(found.rows), exact=found.complete, partly=bool(found.rows) and not every
            )
        if len(query.text) < 3 or len(query.text.casefold()) < 3:
            return self._streamed(run)
        return self._verified(index.grams(query.text, query, run.wanted), run)

    def _read(self, rows: Sequence[Row], find: Find) -> Iterator[Hit]:
        """What words found, as the files have it. Raises `Stale` if they have something else."""
        for row, passage in self._passages(rows):
            part = passage.text[row.chunk : row.chunk + CHUNK + OVERLAP]
            start, end = find(part) or (0, 0)
            yield Hit(session=row.source.session, passage=passage, span=(row.chunk + start, row.chunk + end))

    def _verified(self, rows: Rows, run: _Run) -> Found:
        """The rows whose texts really hold the literal."""
        find = find_literal(run.query.text)
        hits: list[Hit] = []
        total = extra = 0
        until = max(run.until, monotonic() + _AT_LEAST)  # the making of the index may have taken all of the time
        for row, passage in self._passages(rows.rows):
            if (span := find(passage.text)) is not None:
                total += 1
                if len(hits) < run.limit:
                    hits.append(Hit(session=row.source.session, passage=passage, span=span))
            extra += len(hits) == run.limit
            if extra > _LOOKED or monotonic() > until:
                return Found(hits=tuple(hits), total=total, exact=False)
        return Found(hits=tuple(hits), total=total, exact=rows.complete)

    def _passages(self, rows: Sequence[Row]) -> Iterator[tuple[Row, Passage]]:
        last: tuple[Source, Place] | None = None
        passages: tuple[Passage, ...] = ()
        for row in rows:
            if (row.source, row.place) != last:
                message = self.sources.message(row.source, row.place)
                if message is None or message.id != row.message:
                    if self.sources.size(row.source):
                        raise Stale(f"{row.source.name} has changed")
                    continue
                passages, last = self.sources.passages(message), (row.source, row.place)
            if row.part > len(passages):
                raise Stale(f"{row.source.name} has changed")
            yield row, replace(passages[row.part - 1], file=row.file)

    def _streamed(self, run: _Run) -> Found:
        """Through all texts, without an index."""
        words = pieces(run.query.text) if run.query.mode == "words" else ()
        find = find_words(words, every=True) if words else find_literal(run.query.text)
        found = self._collect(run, lambda texts: [find(text) for text in texts])
        if words and not found.total and len(words) > 1:
            find = find_words(words, every=False)
            found = replace(self._collect(run, lambda texts: [find(text) for text in texts]), partly=True)
        return found

    def _by_regex(self, run: _Run) -> Found:
        with RegexSearch(run.query.text, run.until) as search:
            return self._collect(run, search.search)

    def _collect(self, run: _Run, search: Callable[[Sequence[str]], Sequence[Span | None]]) -> Found:
        """The newest hits of all texts, newest session first, and how many there are."""
        hits: list[Hit] = []
        seen: set[tuple[str, int, int]] = set()
        for session, batch in self._batches(run):
            newest: deque[Hit] = deque(maxlen=run.limit)
            stopped = False
            try:
                spans = search([passage.text for passage in batch])
            except TooSlow as slow:
                at = batch[min(slow.done, len(batch) - 1)]
                self._notice(
                    f"stopped: time is over, at {session}/{at.message}#{at.part}; what is older was not searched"
                )
                spans, stopped = list[Span | None](), True
            for passage, span in zip(batch, spans, strict=False):
                key = (passage.message, passage.part, hash(passage.text))
                if span is not None and key not in seen:
                    seen.add(key)
                    newest.appendleft(Hit(session=session, passage=passage, span=span))
            hits = sorted([*newest, *hits], key=lambda hit: hit.passage.time, reverse=True)[: run.limit]
            if stopped or monotonic() > run.until:
                if not stopped:
                    self._notice(f"stopped: time is over, in {session}; what is older was not searched")
                return Found(hits=tuple(hits), total=len(seen), exact=False)
        return Found(hits=tuple(hits), total=len(seen), exact=True)

    def _batches(self, run: _Run) -> Iterator[tuple[str, list[Passage]]]:
        sizes = {source: self.sources.size(source) for source in run.wanted}
        total, done = sum(sizes.values()), 0
        for source in run.wanted:
            files: dict[str, str] = {}
            batch: list[Passage] = []
            if not self.sources.readable(source):
                continue
            for position, located in self.sources.messages(source):
                if located is not None:
                    passages = self.sources.passages(located.message, files)
                    batch += [passage for passage in passages if passage.text and run.query.fits(passage)]
                if len(batch) >= _BATCH or (located is None and batch):
                    yield source.session, batch
                    batch = []
                if located is None:
                    run.progress(done + position, total)
            if batch:
                yield source.session, batch
            done += sizes[source]

    def message(self, session: str, message: str) -> tuple[Passage, ...] | None:
        """The texts of a message by its id, those of sub-agents of the session included; None if there is none."""
        self._notices.clear()
        for source in self.sources.of(session):
            if (found := self.sources.with_id(source, message)) is not None:
                return self.sources.passages(found)
        return None
