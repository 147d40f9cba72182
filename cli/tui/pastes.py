"""What is pasted: cleaned, and folded to a token in the input line when it is large.

The token (`[paste 1: 1,204 lines]`) stands for the text until the prompt is sent. The widget is `prompt`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FOLD_CHARACTERS = 4_000
"""A paste with more characters than this is folded."""
FOLD_LINES = 40
"""A paste with more lines than this is folded."""
HUGE_CHARACTERS = 50_000
"""A text from elsewhere (history, editor) is shown in full up to this many characters: the widget gets slow beyond."""

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` with newline as its one line end and without control characters but newline and tab.

    Marks that turn the direction of writing and halves of surrogate pairs go too: neither can be shown as it is.
    """
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))


class Pastes:
    """The folded pastes of one prompt."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._tokens: re.Pattern[str] | None = None

    def fold(self, text: str) -> str:
        """What to show for a paste: the text itself, or a token if it is large."""
        large = len(text) > FOLD_CHARACTERS or text.count("\n") >= FOLD_LINES
        return self._token(text) if large else text

    def fold_huge(self, text: str) -> str:
        """What to show for a text that was written here before: a token only where the widget could not cope."""
        return self._token(text) if len(text) > HUGE_CHARACTERS else text

    def expand(self, shown: str) -> str:
        """The text that `shown` stands for, with each token replaced by its paste."""
        return self._tokens.sub(lambda token: self._texts[token[0]], shown) if self._tokens else shown

    def within(self, shown: str) -> dict[str, str]:
        """The pastes that `shown` still holds, by token."""
        return {token: text for token, text in self._texts.items() if token in shown}

    def restore(self, texts: Mapping[str, str]) -> None:
        """Adds pastes by their tokens, as `within` gave them."""
        self._texts |= texts
        self._tokens = re.compile("|".join(map(re.escape, self._texts))) if self._texts else None

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where tokens stand in a line of the input: columns of first character and end."""
        return [token.span() for token in self._tokens.finditer(line)] if self._tokens else []

    def around(self, line: str, column: int) -> tuple[int, int]:
        """The span of the token that `column` lies inside, not at its edge; else `column` twice."""
        return next((span for span in self.spans(line) if span[0] < column < span[1]), (column, column))

    def clear(self) -> None:
        """Forgets every paste: the prompt was sent."""
        self._texts.clear()
        self._tokens = None

    def _token(self, text: str) -> str:
        lines = text.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        number = len(self._texts) + 1
        while (token := f"[paste {number}: {size}]") in self._texts:
            number += 1
        self.restore({token: text})
        return token
