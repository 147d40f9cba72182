"""The text of a file, such that nothing of the file is lost: what was not changed is written back byte for byte.

UTF-8 with or without a BOM, and UTF-16 with one. Bytes that are no UTF-8 are carried along as lone surrogates, which
stand in no other text, so that the rest of a file in Latin-1 can be changed. What is no text is told by `what_it_is`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ...context.messages import clean

UTF8_BOM = b"\xef\xbb\xbf"
SNIFF = 8192
"""Bytes of a file that are looked at to tell what it is."""
_UTF16: tuple[tuple[bytes, Literal["utf-16-le", "utf-16-be"]], ...] = (
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_UTF32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_PAIRS = 16
"""Pairs of bytes from which a text in UTF-16 is known without its BOM."""
_WIDE = re.compile(rb"(?:\0[^\0]){%d,}|(?:[^\0]\0){%d,}" % (_PAIRS, _PAIRS))
_FORMATS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF document", "`pdftotext FILE -` prints its text"),
    (
        b"PK\x03\x04",
        "a ZIP archive (also docx, xlsx, jar, whl)",
        "`unzip -l FILE` lists it, `unzip -p FILE NAME` prints",
    ),
    (b"\x1f\x8b", "gzip data", "`gzip -dc FILE` prints it, `tar -tzf FILE` lists an archive"),
    (b"BZh", "bzip2 data", "`bzip2 -dc FILE` prints it"),
    (b"\xfd7zXZ\0", "xz data", "`xz -dc FILE` prints it"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "`zstd -dc FILE` prints it"),
    (b"SQLite format 3\0", "an SQLite database", "`sqlite3 FILE .schema` shows its tables"),
    (b"\x7fELF", "a compiled program or library", ""),
    (b"\xfe\xed\xfa", "a compiled program or library", ""),
    (b"\xcf\xfa\xed\xfe", "a compiled program or library", ""),
    (b"\xca\xfe\xba\xbe", "compiled code", ""),
    (b"PAR1", "a Parquet table", ""),
)
"""Beginnings of files, what they are, and how to get at what is in them."""


def what_it_is(head: bytes) -> str | None:
    """What a file is that begins with `head`, and what helps, if it is no text; None for text."""
    for sign, name, advice in _FORMATS:
        if head.startswith(sign):
            return f"{name}; {advice}" if advice else name
    if head.startswith(_UTF32):
        return "UTF-32 text; `iconv -f UTF-32 -t UTF-8 FILE` prints it"
    if _utf16(head) or b"\0" not in head:
        return None
    if wide := _WIDE.match(head):
        order = "BE" if wide[0].startswith(b"\0") else "LE"
        return f"most likely UTF-16 text without a BOM; `iconv -f UTF-16{order} -t UTF-8 FILE` prints it"
    return "a binary file"


def is_utf16(head: bytes) -> bool:
    """Whether a file says by its BOM that it is UTF-16."""
    return _utf16(head) is not None


def _utf16(head: bytes) -> tuple[bytes, Literal["utf-16-le", "utf-16-be"]] | None:
    if head.startswith(_UTF32):
        return None
    return next((kind for kind in _UTF16 if head.startswith(kind[0])), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A file's text, and what it takes to make the file of it again."""

    text: str
    """Without BOM, with the file's own line ends; where they are all lone CR, with LF instead."""
    codec: Literal["utf-8", "utf-16-le", "utf-16-be"] = "utf-8"
    bom: bytes = b""
    cr: bool = False
    """Lines end with CR alone, as on old Macs."""

    @property
    def exact(self) -> bool:
        """All of it is text in its encoding: any character may be put into it."""
        return self.text == clean(self.text)

    def encoded(self, text: str) -> bytes:
        """The bytes of a file like this one with another text; what this text holds stays byte for byte."""
        text = text.replace("\n", "\r") if self.cr else text
        return self.bom + text.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")


def file_text(data: bytes) -> FileText | None:
    """The text of a file's content; None where a BOM says UTF-16 and the rest is none."""
    if kind := _utf16(data[:4]):
        bom, codec = kind
        try:
            return _with_ends(data[len(bom) :].decode(codec), codec, bom)
        except UnicodeDecodeError:
            return None
    bom = UTF8_BOM if data.startswith(UTF8_BOM) else b""
    return _with_ends(data[len(bom) :].decode("utf-8", "surrogateescape"), "utf-8", bom)


def _with_ends(text: str, codec: Literal["utf-8", "utf-16-le", "utf-16-be"], bom: bytes) -> FileText:
    cr = "\r" in text and "\n" not in text
    return FileText(text=text.replace("\r", "\n") if cr else text, codec=codec, bom=bom, cr=cr)
