"""What `read_file` answers for an image: the image itself to a model that sees, else what is known of it."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from ...context.facts import PATH
from ...context.images import IMAGE_BYTES, IMAGE_SIDE, ImageFacts, image_facts
from ...context.storage import StorageError
from ..backends.paths import printable
from ..backends.protocol import FileInfo
from ..runtime import ToolRuntime
from ..tool import ToolResult
from .answers import failure

_HEADER = 256 * 1024
"""Bytes in which a JPEG names its size; before that stand previews and colour profiles."""
_SIGNS = (b"\x89PNG", b"GIF8", b"RIFF", b"\xff\xd8\xff")


async def read_image(path: str, info: FileInfo, head: bytes, runtime: ToolRuntime[Any]) -> ToolResult | None:
    """The answer for an image that models may be shown; None for every other file. Raises `BackendError`."""
    if not head.startswith(_SIGNS):
        return None
    facts = image_facts(await runtime.backend.read(path, size=_HEADER))
    if facts is None:
        return None
    words = f"image {printable(info.path)}: {_kind(facts)}, {info.size:,} bytes"
    if reason := _why_not(info, facts, runtime):
        return ToolResult(text=f"[{words}; {reason}]", summary=_kind(facts))
    try:
        image = runtime.session.keep_image(await runtime.backend.read(path), f"[{words}]")
    except (StorageError, ValueError) as error:
        return failure(f"{printable(info.path)} cannot be shown: {error}")
    log: dict[str, JsonValue] = {PATH: runtime.backend.resolve(path)}
    return ToolResult(text="The image follows.", summary=_kind(facts), log=log, images=(image,))


def _kind(facts: ImageFacts) -> str:
    return f"{facts.media.partition('/')[2].upper()} {facts.width}×{facts.height}"


def _why_not(info: FileInfo, facts: ImageFacts, runtime: ToolRuntime[Any]) -> str:
    if not runtime.session.sees:
        return "the model in use is not known to see images (`provider.images` in the configuration says that it does)"
    if info.size > IMAGE_BYTES or max(facts.width, facts.height) > IMAGE_SIDE:
        most = f"{IMAGE_BYTES:,} bytes and {IMAGE_SIDE:,} pixels a side"
        return f"too large to be shown, {most} are the most; make a smaller copy"
    return ""
