"""Finds the calls that a model wrote as text, in the form that it was trained on instead of its provider's.

Reads form only, and strictly: the calls are the whole answer or its end, stand in no code and no quotation, and can be
read in exactly one way. Whether they mean anything is the business of `agent.model.meant`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from .call_forms import FORMS, MARK, Form
from .call_readers import Call, NoCall, read_calls, read_python


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A call in an answer's text."""

    name: str
    """As the model wrote it."""
    arguments: Mapping[str, JsonValue]
    """Where the form has texts alone, all values are texts."""
    start: int
    """Where it begins in the text; it goes on to where the next one begins, or to the end."""


_THOUGHT = re.compile(r"</?think(?:ing)?>")
_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>", "</s>", "<end_of_turn>")
"""Tokens that end an answer and that some servers pass on."""
_FENCE = re.compile(r"```([\w-]*)[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_PYTHON = frozenset({"tool_code", "python"})
_LANGUAGES = _PYTHON | {"", "json", "tool_call"}
_CODE = re.compile(r"^ {0,3}(?P<fence>```+|~~~+).*?(?:^ {0,3}(?P=fence)|\Z)|(?P<tick>`+)[^`\n]+(?P=tick)", re.M | re.S)


def written_calls(text: str) -> tuple[WrittenCall, ...]:
    """The calls that `text` is or ends with, in order; none where that is in doubt."""
    start, text = _behind_thoughts(text), _without_end(text)
    if start is None or not text[start:].strip():
        return ()
    begin = len(text) - len(text[start:].lstrip())
    readings = [*_bare(text, begin), *_marked(text, start)]
    return readings[0] if len(readings) == 1 else ()


def _behind_thoughts(text: str) -> int | None:
    """Where the answer begins behind what was thought aloud in it; None where the thoughts do not end."""
    marks = list(_THOUGHT.finditer(text))
    if not marks:
        return 0
    return marks[-1].end() if marks[-1][0].startswith("</") else None


def _without_end(text: str) -> str:
    text = text.rstrip()
    while end := next((end for end in _ENDS if text.endswith(end)), None):
        text = text.removesuffix(end).rstrip()
    return text


def _bare(text: str, begin: int) -> list[tuple[WrittenCall, ...]]:
    """The readings of an answer that is nothing but JSON or a list of calls in Python, plain or in one fence."""
    fence = _FENCE.fullmatch(text, begin)
    language, body = (fence[1], fence[2].strip()) if fence else ("", text[begin:])
    if language not in _LANGUAGES:
        return []
    try:
        calls = _calls_in(body, language)
    except NoCall:
        return []
    return [tuple(WrittenCall(name=name, arguments=arguments, start=begin) for name, arguments in calls)]


def _calls_in(body: str, language: str) -> Sequence[Call]:
    if language in _PYTHON or re.match(r"\[\s*[A-Za-z_]", body):
        return read_python(body, alone=language == "tool_code")
    calls, end = read_calls(body, 0)
    if end != len(body):
        raise NoCall
    return calls


def _marked(text: str, start: int) -> list[tuple[WrittenCall, ...]]:
    """The readings of an answer whose end, from the first mark on that stands in no code, is calls."""
    code = [match.span() for match in _CODE.finditer(text, start)]
    mark = next((m for m in MARK.finditer(text, start) if not any(a <= m.start() < b for a, b in code)), None)
    if mark is None:
        return []
    before = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
    if mark["tag"] and before not in ("", " ", "  ", "   ") and mark.start() != start:
        return []
    readings: list[tuple[WrittenCall, ...]] = []
    for form in FORMS:
        try:
            reading = _sequence(text, mark.start(), form)
        except NoCall:
            continue
        if reading not in readings:
            readings.append(reading)
    return readings


def _sequence(text: str, place: int, form: Form) -> tuple[WrittenCall, ...]:
    """The calls of one form from `place` to the end. Raises `NoCall` where anything else stands there."""
    start, found = place, list[WrittenCall]()
    place = _behind(form.opening, text, place)[0] if form.opening else place
    while place < len(text):
        if found and form.closing and (closing := form.closing.fullmatch(text, place)):
            place = closing.end()
            break
        place, name = _behind(form.begin, text, place)
        calls, place = form.read(text, place, name)
        place = _behind(form.end, text, place)[0]
        found += [WrittenCall(name=name, arguments=arguments, start=start) for name, arguments in calls]
        place += len(text[place:]) - len(text[place:].lstrip())
        start = place
    if not found:
        raise NoCall
    return tuple(found)


def _behind(pattern: re.Pattern[str], text: str, place: int) -> tuple[int, str]:
    """The place behind `pattern`, which must stand at `place`, and the name in it."""
    match = pattern.match(text, place)
    if match is None:
        raise NoCall
    return match.end(), match.groupdict().get("name") or ""
