"""`deepagent archive search` and `read`: what was ever said in a project's conversations, for people and for scripts.

Searching is `context.recall`'s business; `list` and `show`, which print archives as they are, are `cli.listings`'.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..agent.errors import SessionError
from ..agent.sessions import pick_session
from ..agent.workspace import Workspace
from ..context.recall import Found, Hit, Recall
from ..context.recall_query import Query
from ..context.recall_read import Page, parse_reference, read_page
from ..context.recall_text import found_text, hit_id, price_of
from ..context.tokens import estimate

Json = dict[str, object]
_TOKENS = 4_000
"""Of what is printed of a search."""
_EVERYTHING = 1 << 40
_SECONDS = 120.0
"""A person sees the progress, and can stop it."""
_PROGRESS = 0.05
"""Part of the files after which progress is told again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A search and what it found."""

    query: Query
    found: Found


def search_archive(workspace: Workspace, query: Query, *, session: str | None, limit: int) -> Searched:
    """Searches one session, by the beginning of its id, or all of the workspace. Raises `SessionError`."""
    storage = workspace.storage()
    if session is not None:
        query = replace(query, session=pick_session(storage, session))
    return Searched(query=query, found=Recall(storage).search(query, limit=limit, seconds=_SECONDS, progress=_teller()))


def _teller() -> Callable[[int, int], None]:
    """Tells the progress of a long search where somebody sits in front of it."""
    told = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if sys.stderr.isatty() and total and done / total > told + _PROGRESS:
            told = done / total
            print(f"\r{told:.0%} searched", end="\r", file=sys.stderr, flush=True)

    return tell


def text_of_search(searched: Searched) -> str:
    """The hits for a person."""
    query = searched.query
    return found_text(searched.found, query, this=None, in_view=lambda _: False, tokens=_TOKENS, count=estimate)


def json_of_search(searched: Searched) -> Json:
    """The hits for a program."""
    found = searched.found
    return {
        "total": found.total,
        "exact": found.exact,
        "notices": list(found.notices),
        "hits": [_json_of_hit(hit) for hit in found.hits],
    }


def _json_of_hit(hit: Hit) -> Json:
    passage = hit.passage
    return {
        "id": hit_id(hit, None),
        "session": hit.session,
        "message": passage.message,
        "part": passage.part,
        "name": passage.name,
        "role": passage.role,
        "tool": passage.tool,
        "file": passage.file,
        "time": passage.time,
        "start": hit.span[0],
        "end": hit.span[1],
        "line": passage.text.count("\n", 0, hit.span[0]) + 1,
        "tokens": price_of(passage.text, estimate),
    }


def read_archive(workspace: Workspace, reference: str, lines: str) -> Page:
    """A message or a part of it by its id, `SESSION/MESSAGE[#PART]`. Raises `SessionError` or `QueryError`."""
    wanted = parse_reference(reference)
    storage = workspace.storage()
    session = pick_session(storage, wanted.session)
    passages = Recall(storage).message(session, wanted.message)
    if not passages:
        raise SessionError(f"there is no message {wanted.message!r} in {session}")
    return read_page(passages, wanted.part, lines, tokens=_EVERYTHING, count=lambda _: 0)


def text_of_page(page: Page) -> str:
    """The text itself, as it was."""
    text, last = "", (0, 0)
    for row in page.rows:
        text += ("\n" if last not in ((0, 0), (row.part, row.line)) else "") + row.text
        last = (row.part, row.line)
    return text
