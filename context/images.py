"""Images: what a file's first bytes say of one, and about how many tokens it is for a model.

The image itself lies beside the log under its hash; messages hold an `Image` block that names it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

IMAGE_BYTES = 5 * 1024 * 1024
"""Bytes of the largest image that is sent: Anthropic's limit, the lowest of the large providers."""
IMAGE_SIDE = 8_000
"""Pixels of the longest side, from the same source."""
_PIXELS_PER_TOKEN = 750
"""Anthropic's figure. OpenAI's (85 and 170 for each tile of 512 pixels) gives about the same up to its limit."""
_MOST = 1_600
"""Tokens above which providers make an image smaller (Anthropic: about 1,600; OpenAI: 1,445 at 2,048 × 1,024)."""
_LEAST = 85
_MARKERS_WITH_SIZE = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What an image's header says."""

    media: str
    """Its media type, such as `image/png`."""
    width: int
    """Pixels."""
    height: int


def image_facts(data: bytes) -> ImageFacts | None:
    """What kind of image `data` begins, and its size; None for what providers do not take, or what is damaged."""
    try:
        found = _png(data) or _gif(data) or _webp(data) or _jpeg(data)
    except (struct.error, IndexError):
        return None
    return found if found and found.width > 0 and found.height > 0 else None


def image_tokens(width: int, height: int) -> int:
    """About how many tokens an image is; providers differ, and the session learns by how much."""
    return max(_LEAST, min(_MOST, width * height // _PIXELS_PER_TOKEN))


def _png(data: bytes) -> ImageFacts | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", data[16:24])
    return ImageFacts(media="image/png", width=width, height=height)


def _gif(data: bytes) -> ImageFacts | None:
    if not data.startswith((b"GIF87a", b"GIF89a")):
        return None
    width, height = struct.unpack("<HH", data[6:10])
    return ImageFacts(media="image/gif", width=width, height=height)


def _webp(data: bytes) -> ImageFacts | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    match data[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        case b"VP8L":
            (bits,) = struct.unpack("<I", data[21:25])
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = (value & 0x3FFF for value in struct.unpack("<HH", data[26:30]))
        case _:
            return None
    return ImageFacts(media="image/webp", width=width, height=height)


def _jpeg(data: bytes) -> ImageFacts | None:
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    for marker, at in _segments(data):
        if marker in _MARKERS_WITH_SIZE:
            height, width = struct.unpack(">HH", data[at + 3 : at + 7])
            return ImageFacts(media="image/jpeg", width=width, height=height)
    return None


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Marker and place of each segment of a JPEG file before its picture; the length stands at that place."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        yield marker, at + 2
        if marker == 0xDA:
            return
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
