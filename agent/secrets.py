"""Known secret values are replaced by their names when a text enters: before model, log and archive see it.

What runs is never masked: a tool gets its arguments as they are. Nothing is guessed; a secret that is not known by
name is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import cast

from pydantic import JsonValue

MIN_LENGTH = 8
"""Characters; anything shorter would also be found where it is no secret."""
MARK = "[secret {}]"
"""What stands in a secret's place. Files must never be written with it: see `Masker.marked`."""
_CLOUD = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_AD_TOKEN", "ANTHROPIC_AUTH_TOKEN", "HF_TOKEN")
"""Provider keys that do not end in `_API_KEY`."""


def secret_values(environ: Mapping[str, str], stored: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Values to mask by their names: stored keys, the environment's provider keys, and the variables `names`."""
    wanted = {*names, *_CLOUD, *(name for name in environ if name.endswith("_API_KEY"))}
    values = {name: environ[name] for name in sorted(wanted) if environ.get(name)}
    return {**values, **{f"{name}_STORED" if name in values else name: value for name, value in stored.items()}}


class Masker:
    """Replaces secret values. The same text always becomes the same text, and a masked text stays as it is."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values` are secrets by name; blanks around them do not count, and short ones are left out."""
        marks = tuple(MARK.format(name) for name in values)
        stripped = {name: value.strip() for name, value in values.items()}
        self._marks: dict[str, str] = {}
        for name, value in stripped.items():
            if len(value) >= MIN_LENGTH and not any(value in mark for mark in marks):
                self._marks.setdefault(value, MARK.format(name))

    @property
    def longest(self) -> int:
        """Characters of the longest known secret, at least 1."""
        return max(map(len, self._marks), default=1)

    def __repr__(self) -> str:
        return f"Masker({len(self._marks)} values)"

    def mask(self, text: str) -> str:
        """`text` with `[secret NAME]` in place of each value; the longest wins where one holds another."""
        present = [value for value in self._marks if value in text]
        if not present:
            return text
        pattern = "|".join(re.escape(value) for value in sorted(present, key=len, reverse=True))
        return re.sub(pattern, lambda match: self._marks[match[0]], text)

    def mask_json(self, value: JsonValue) -> JsonValue:
        """`value` with every text in it masked, keys included."""
        match value:
            case str():
                return self.mask(value)
            case list():
                return [self.mask_json(item) for item in value]
            case dict():
                return {self.mask(key): self.mask_json(item) for key, item in cast(dict[str, JsonValue], value).items()}
            case _:
                return value

    def marked(self, text: str) -> str | None:
        """The first mark of a known secret in `text`, or None. Writing such a text would destroy the secret."""
        return next((mark for mark in self._marks.values() if mark in text), None)
