"""Outside text on its way to the screen: the only module through which it becomes something to render.

Whatever a file, a model, a tool, an error or a name holds is shown as it is: never read as markup, never passed on as
control codes. Lengths are cells, the columns of a terminal; long text is the business of `lines`.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from ..terminal import plain

_HIDDEN = re.compile("[\u200b\u200e\u200f\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]")
"""What no terminal shows or no encoder takes: zero width spaces, direction marks, tags, halves of characters. The
joiners stay, since scripts and emoji need them."""
_SEPARATOR = re.compile("\r\n|[\u2028\u2029]")
"""What ends a line without being a newline."""
_BREAK = re.compile(r"\s*\n\s*")
MUTED = "$foreground 60%"
"""The style of what is said beside the matter; `$text-muted` comes out at full strength in a part of a line."""
FAINT = "$foreground 35%"
_FAR = 1_000
"""Characters from which one line is cut before it is looked at: no screen is that wide."""


def visible(text: str) -> str:
    """`text` with all that is not meant to be seen made visible, and line ends as newlines."""
    if all(line.isprintable() for line in text.split("\n")):
        return text
    return _HIDDEN.sub("\ufffd", plain(_SEPARATOR.sub("\n", text)))


def safe(text: str, style: str = "") -> Content:
    """`text` as something to render; `style` is ours, such as `MUTED`."""
    content = visible(text)
    return Content.styled(content, style) if style else Content(content)


def visible_line(text: str) -> str:
    """One line of code or output as it is shown: tabs as spaces, a line break within it as one."""
    return text if text.isprintable() else visible(text).replace("\n", " ").expandtabs(4)


def one_line(text: str, width: int | None = None) -> str:
    """`text` in one visible line, its line breaks as spaces, cut to `width` cells."""
    line = _BREAK.sub(" ", visible(text[: _FAR if width is None else max(_FAR, width)])).strip().replace("\t", " ")
    return line if width is None else cut(line, width)


def cut(text: str, width: int) -> str:
    """One visible line cut to `width` cells, with `…` where something is missing."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def spread(left: Content, right: str, width: int) -> Content:
    """`left` and, at the right edge of `width` cells, `right`, which is the last to be cut."""
    room = width - cell_len(right) - 1
    left = left.truncate(max(0, room if right else width), ellipsis=True)
    gap = max(1, width - left.cell_length - cell_len(right))
    return Content.assemble(left, " " * gap, (right, MUTED)) if right else left
