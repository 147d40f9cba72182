"""Outside text on its way to a terminal: no control codes, whatever a file, a model or a name holds."""

from __future__ import annotations

_KEPT = {"\n", "\t"}


def plain(text: str) -> str:
    """`text` with every control character but newline and tab made visible."""
    return "".join(_visible(c) if _is_control(c) else c for c in text)


def _is_control(c: str) -> bool:
    code = ord(c)
    direction = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    return c not in _KEPT and (code < 0x20 or 0x7F <= code <= 0x9F or direction)


def _visible(c: str) -> str:
    """Control pictures for the old codes, U+FFFD for the others."""
    code = ord(c)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
