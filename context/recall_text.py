"""What recall found as a text for a model: bounded, with ids and prices, and always with how to go on.

The same hits become JSON in `cli.archive`; nothing here knows how they were found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .recall import Found, Hit
from .recall_passages import Passage
from .recall_query import Query
from .recall_read import Count, Page, Row, fitting

LIMIT = 1_500
"""Tokens of an answer, unless the window asks for less."""
HEAD = 160
"""Tokens kept for what stands above and below the hits, or above and below a page."""
_MOST, _LEAST = 400, 60
"""Tokens of a snippet."""
_LABEL = 70
"""Tokens of a hit's first line, about."""
_WIDTH = 300
"""Characters that a snippet shows of a line."""
_AROUND = 2
"""Lines that it shows above and below the hit's."""
_PARTS = 12
"""Texts of a message that are listed."""
_SAMPLE = 4_000
InView = Callable[[Passage], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model gets."""

    text: str
    summary: str
    """The same in a few words, for a person."""
    is_error: bool = False


def found_text(found: Found, query: Query, *, this: str | None, in_view: InView, tokens: int, count: Count) -> str:
    """Hits as a text of at most `tokens`. `this` is the session whose messages need no session in their ids."""
    head = _heading(found, query)
    lines = [*(f"({notice})" for notice in found.notices[:3])]
    if not found.hits:
        lines += [] if query.session is None else ['sessions="all" searches the other sessions of this project, too.']
        return "\n".join([head, *lines])
    left = tokens - HEAD - count("\n".join(lines))
    share = max(_LEAST, min(_MOST, left // len(found.hits) - _LABEL))
    blocks: list[str] = []
    for hit in found.hits:
        block = _hit(hit, this=this, seen=in_view(hit.passage), tokens=share, count=count)
        cost = count(block) + 1
        if cost > left:
            break
        blocks.append(block)
        left -= cost
    shown = f" {len(blocks)} shown, {'best' if query.by_rank else 'newest'} first."
    first = found.hits[0]
    onward = f'Read on: recall(id="{hit_id(first, this)}", lines="{_line(first)}-"); no lines: from its beginning.'
    return "\n".join([head + shown, *lines, *blocks, onward])


def _heading(found: Found, query: Query) -> str:
    number = f"{found.total:,}" if found.exact else f"At least {found.total:,}"
    noun = "passage" if found.total == 1 and found.exact else "passages"
    where = "this session" if query.session is not None else "all sessions"
    match query.mode:
        case "words" if found.partly:
            return f"No passage has all the words close together; {number} {noun} in {where} with some of them."
        case "words":
            return f"{number} {noun} in {where} with all the words."
        case "literal":
            return f"{number} {noun} in {where} with this text."
        case "regex":
            return f"{number} {noun} in {where} that fit."


def hit_id(hit: Hit, this: str | None) -> str:
    """The id that reads a hit's passage back."""
    session = "" if hit.session == this else f"{hit.session}/"
    return f"{session}{hit.passage.message}#{hit.passage.part}"


def _hit(hit: Hit, *, this: str | None, seen: bool, tokens: int, count: Count) -> str:
    rows = snippet(hit, tokens, count)
    text = "\n".join(_shown_row(row, hit.passage.text) for row in rows)
    price = f"shown {count(text):,}, whole {price_of(hit.passage.text, count):,} tokens"
    words = [hit_id(hit, this), *_about(hit.passage), price, *(["in view"] if seen else [])]
    return f"{' · '.join(words)}\n{text}"


def _about(passage: Passage) -> list[str]:
    """Whose text it is, of which tool and file, and when."""
    kind = "" if passage.kind in ("text", "result") else f" {passage.name[:40]}"
    words = [f"{passage.role}{kind}", passage.tool[:40], passage.file[-80:], passage.time[:16]]
    return [word for word in words if word]


def price_of(text: str, count: Count) -> int:
    """About how many tokens a text has, from its beginning where it is long."""
    sample = text[:_SAMPLE]
    return round(count(sample) * len(text) / len(sample)) if sample else 0


def _line(hit: Hit) -> int:
    return hit.passage.text.count("\n", 0, hit.span[0]) + 1


def snippet(hit: Hit, tokens: int, count: Count) -> tuple[Row, ...]:
    """The line of the hit, cut around it if it is long, and lines above and below as far as they fit."""
    lines, number = hit.passage.text.split("\n"), _line(hit)
    begins = hit.passage.text.rfind("\n", 0, hit.span[0]) + 1
    rows = {number: _cut(hit, lines[number - 1], hit.span[0] - begins, tokens, count)}
    left = tokens - count(rows[number].text)
    for distance in range(1, _AROUND + 1):
        for other in (number + distance, number - distance):
            if 1 <= other <= len(lines):
                text = lines[other - 1][:_WIDTH]
                left -= count(text) + 4
                if left < 0:
                    break
                whole = text == lines[other - 1]
                rows[other] = Row(part=hit.passage.part, line=other, column=1, text=text, whole=whole)
        if left < 0:
            break
    return tuple(rows[at] for at in sorted(rows))


def _cut(hit: Hit, line: str, at: int, tokens: int, count: Count) -> Row:
    """The hit's line, or what is around the hit; `at` is where it begins in the line."""
    length = hit.span[1] - hit.span[0]
    start = 0 if len(line) <= _WIDTH else max(0, min(at - _WIDTH // 4, len(line) - _WIDTH))
    text = line[start : max(start + _WIDTH, min(at + length, start + 2 * _WIDTH))]
    if count(text) > tokens:
        start, text = at, line[at : at + fitting(line[at : at + _WIDTH], tokens, count)]
    whole = start + len(text) == len(line)
    return Row(part=hit.passage.part, line=_line(hit), column=start + 1, text=text, whole=whole)


def _shown_row(row: Row, text: str = "") -> str:
    """A line as `read_file` shows it: number, an arrow, and only then what is in the text."""
    place = f"{row.line}@{row.column}" if row.column > 1 else str(row.line)
    return f"{place}→{row.text}" + ("" if row.whole or not text else "…")


def page_text(passages: Sequence[Passage], page: Page, *, name: str, count: Count) -> str:
    """A page as a text. `name` is the id without a part."""
    first = passages[page.rows[0].part - 1] if page.rows else passages[0]
    words = [name, *_about(first)] if len(passages) == 1 else [name, first.role, first.time[:16]]
    lines = [" · ".join(words)]
    if len(passages) > 1:
        lines.append(f"It has {len(passages)} texts: {_listed(passages, count)}")
    part = 0
    for row in page.rows:
        if row.part != part:
            part = row.part
            lines.append(_part_heading(passages[part - 1], row, page))
        lines.append(_shown_row(row))
    if page.next is not None:
        number, rest = page.next
        further = number < len(passages)
        hint = f' Then: recall(id="{name}#{number + 1}").' if further else ""
        lines.append(f'There is more: recall(id="{name}#{number}", lines="{rest}").{hint}')
    return "\n".join(lines)


def _part_heading(passage: Passage, first: Row, page: Page) -> str:
    mine = [row for row in page.rows if row.part == passage.part]
    total = passage.text.count("\n") + 1
    last = mine[-1]
    where = f"lines {first.line}-{last.line} of {total:,}"
    if first.column > 1 or not last.whole:
        length = len(passage.text.split("\n")[last.line - 1])
        end = last.column + len(last.text) - 1
        where += f", from character {first.column:,} to {end:,} of {length:,} in line {last.line}"
    return f"[#{passage.part} {passage.name[:40]}, {where}]"


def _listed(passages: Sequence[Passage], count: Count) -> str:
    listed = [_one(passage, count) for passage in passages[:_PARTS]]
    more = len(passages) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")


def _one(passage: Passage, count: Count) -> str:
    tool = f"{passage.tool[:40]} " if passage.kind == "argument" else ""
    return f"#{passage.part} {tool}{passage.name[:40]} ({price_of(passage.text, count):,} tokens)"
