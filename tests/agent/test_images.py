"""Images: read by a tool, kept beside the log, shown to models that see, counted, and taken out of view again."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from context_samples import assert_valid
from deepagent.agent.model.quirks import profile_of
from deepagent.agent.model.types import ModelRequest
from deepagent.agent.model.wire import BRIDGE, OF_RESULTS, Wire
from deepagent.context.archive_text import read_messages, write_message
from deepagent.context.images import image_facts, image_tokens
from deepagent.context.messages import AssistantMessage, Image, Text, ToolCall, ToolMessage, UserMessage
from hypothesis import given
from hypothesis import strategies as st
from stage import Stage

Make = Callable[..., Stage]


def png(width: int = 32, height: int = 16) -> bytes:
    """A real picture, all black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" * (width + 1) for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xfe\x00\x04ab"
    b"\xff\xc2\x00\x0b\x08\x00\x21\x00\x42\x01\x01\x11\0"
)
KINDS = [
    (png(32, 16), ("image/png", 32, 16)),
    (b"GIF89a" + struct.pack("<HH", 7, 9) + b"\0\0\0", ("image/gif", 7, 9)),
    (JPEG, ("image/jpeg", 0x42, 0x21)),
    (b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x09\0\0\x13\0\0", ("image/webp", 10, 20)),
    (b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 9 | 19 << 14), ("image/webp", 10, 20)),
    (b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 10, 20), ("image/webp", 10, 20)),
]


@pytest.mark.parametrize(("data", "facts"), KINDS)
def test_the_header_tells_kind_and_size(data: bytes, facts: tuple[str, int, int]) -> None:
    found = image_facts(data)
    assert found is not None
    assert (found.media, found.width, found.height) == facts


@given(st.binary(max_size=60), st.sampled_from([data for data, _ in KINDS]), st.integers(0, 60))
def test_damaged_images_are_none_or_have_a_size(noise: bytes, data: bytes, cut: int) -> None:
    for damaged in (noise, data[:cut], data[:cut] + noise):
        found = image_facts(damaged)
        assert found is None or (found.width > 0 and found.height > 0)


def test_tokens_stay_within_what_providers_make_of_an_image() -> None:
    assert [image_tokens(*size) for size in ((1, 1), (1_000, 750), (8_000, 8_000))] == [85, 1_000, 1_600]


def _image(data: bytes = b"x", name: str = "sessions/s.media/abc") -> Image:
    return Image(name=name, sha256="0" * 64, media="image/png", bytes=len(data), width=32, height=16, shown="[image a]")


def test_an_image_is_in_the_archive_with_its_words() -> None:
    message = UserMessage(id="u", time="", content=(Text(text="see ```"), _image()))
    text = write_message(message)
    assert read_messages(text) == (message,)
    assert "[image a]" in text and "sessions/s.media/abc" in text


def _talk() -> tuple[Any, ...]:
    calls = tuple(ToolCall(id=f"c{n}", name="read_file", arguments={}) for n in range(2))
    results = tuple(
        ToolMessage(id=f"t{n}", time="", call_id=f"c{n}", tool="read_file", content=(Text(text="So."), _image()))
        for n in range(2)
    )
    asked = UserMessage(id="u", time="", content=(Text(text="look"), _image()))
    answer = AssistantMessage(id="a", time="", content=calls, model="m", stop="tool_calls")
    return (asked, answer, *results)


@pytest.mark.parametrize(
    ("provider", "model", "bridge"),
    [("openai", "gpt-5", False), ("mistral", "pixtral-large", True), ("", "qwen2.5-vl", True)],
)
def test_images_of_results_follow_all_results(provider: str, model: str, *, bridge: bool) -> None:
    wire = Wire(model, profile_of(provider, model, "lean"))
    body = wire.body(ModelRequest(system="", messages=_talk(), image=lambda _: b"data"))
    messages = cast(list[dict[str, Any]], body["messages"])
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(b'data').decode()}"}}
    assert messages[0]["content"] == [{"type": "text", "text": "look\n[image a]"}, part]
    between = [BRIDGE] if bridge else []
    assert [m["content"] for m in messages[4:-1]] == between
    assert messages[-1]["role"] == "user"
    assert messages[-1]["content"] == [{"type": "text", "text": OF_RESULTS}, part, part]


def test_who_sees_none_gets_words() -> None:
    body = Wire("m", profile_of("openai", "gpt-5", "lean")).body(ModelRequest(system="", messages=_talk()))
    messages = cast(list[dict[str, Any]], body["messages"])
    assert [m["content"] for m in messages if "content" in m] == ["look\n[image a]", *["So.\n[image a]"] * 2]


def _steps(*paths: str) -> list[dict[str, Any]]:
    return [{"calls": [{"name": "read_file", "arguments": {"path": path}}]} for path in paths]


async def test_a_tool_brings_it_in_and_it_stays_as_it_was(stage: Make, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "shot.png").write_bytes(png(1_000, 750))
    play = stage(*_steps("shot.png"), {"text": "Black."}, folder=folder, settings={"provider": {"images": True}})
    await play.run("what is on it?")
    result = next(m for m in play.agent.session.view.tail if isinstance(m, ToolMessage))
    image = next(block for block in result.content if isinstance(block, Image))
    assert image.shown == f"[image shot.png: PNG 1000×750, {len(png(1_000, 750)):,} bytes]"
    assert play.agent.parts.counter.message(result) > 1_000
    full = play.agent.gauge().used
    (folder / "shot.png").unlink()
    assert play.agent.parts.image(image) == png(1_000, 750)
    assert_valid(play.agent.session.view.messages)
    entry = play.agent.control.drop(result.id)
    assert entry.blocks[-1].pointer.path == f".deepagents/{image.name}"
    assert full - play.agent.gauge().used > 900
    assert play.agent.parts.session.storage.read(image.name) == png(1_000, 750)


async def test_a_model_that_sees_none_is_told_what_it_is(stage: Make, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "shot.png").write_bytes(png())
    play = stage(*_steps("shot.png"), {"text": "I cannot see it."}, folder=folder)
    await play.run("what is on it?")
    result = next(m for m in play.agent.session.view.tail if isinstance(m, ToolMessage))
    (text,) = result.content
    assert isinstance(text, Text)
    assert text.text.startswith(
        f"[image shot.png: PNG 32×16, {len(png()):,} bytes; the model in use is not known to see"
    )


async def test_what_is_too_large_is_not_sent(stage: Make, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "wide.png").write_bytes(png(9_000, 1))
    play = stage(*_steps("wide.png"), {"text": "Too wide."}, folder=folder, settings={"provider": {"images": True}})
    await play.run("what is on it?")
    result = next(m for m in play.agent.session.view.tail if isinstance(m, ToolMessage))
    assert "too large to be shown, 5,242,880 bytes and 8,000 pixels a side are the most" in result.content[0].text  # pyright: ignore
