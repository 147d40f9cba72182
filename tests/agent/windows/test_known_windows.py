"""What is kept of windows from one session to the next."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deepagent.agent.known_windows import KnownWindow, KnownWindows
from deepagent.agent.model.types import Model

WINDOW = KnownWindow(tokens=8_192, source="server")


@dataclass
class Named:
    """A model as the file knows it."""

    name: str
    endpoint: str = ""


def model(name: str, endpoint: str = "http://127.0.0.1:8000/v1") -> Model:
    return Named(name, endpoint)  # pyright: ignore[reportReturnType] - only name and address are read


def test_windows_are_kept_per_address_and_model(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "windows.json"
    KnownWindows(path).put(model("openai/m"), WINDOW)
    KnownWindows(path).put(model("gpt-x", ""), KnownWindow(tokens=100_000, source="overflow"))
    known = KnownWindows(path)
    assert known.of(model("openai/m")) == WINDOW
    assert known.of(model("gpt-x", "")) == KnownWindow(tokens=100_000, source="overflow")
    assert known.of(model("openai/n")) is None
    assert known.of(model("openai/m", "http://127.0.0.1:8001/v1")) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_the_newest_figure_counts_and_old_ones_end(tmp_path: Path) -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    known = KnownWindows(tmp_path / "w.json", clock=lambda: now)
    known.put(model("m"), WINDOW)
    known.put(model("m"), KnownWindow(tokens=4_096, source="overflow"))
    found = known.of(model("m"))
    assert found is not None
    assert found.tokens == 4_096
    now += timedelta(days=31)
    assert known.of(model("m")) is None


def test_the_file_stays_small(tmp_path: Path) -> None:
    known = KnownWindows(tmp_path / "w.json")
    for number in range(210):
        known.put(model(f"m{number}"), WINDOW)
    assert known.of(model("m0")) is None
    assert known.of(model("m209")) == WINDOW
    assert len(json.loads((tmp_path / "w.json").read_text())["windows"]) == 200


def test_no_password_of_an_address_is_written(tmp_path: Path) -> None:
    KnownWindows(tmp_path / "w.json").put(model("m", "https://me:hunter22@models.example/v1?key=hunter22"), WINDOW)
    assert "hunter22" not in (tmp_path / "w.json").read_text()


ROW = {"tokens": 8_192, "source": "server", "time": "2999-01-01T00:00:00.000Z"}


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"null", b"[1]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"windows": 3}'),
        *(
            json.dumps({"windows": {"http://127.0.0.1:8000/v1 m": row}}).encode()
            for row in (
                3,
                {},
                ROW | {"tokens": "8192"},
                ROW | {"tokens": -1},
                ROW | {"tokens": True},
                ROW | {"source": "user"},
                ROW | {"time": None},
            )
        ),
    ],
)
def test_rubbish_is_as_good_as_nothing_and_is_written_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.json"
    path.write_bytes(content)
    known = KnownWindows(path)
    assert known.of(model("m")) is None
    known.put(model("m"), WINDOW)
    assert known.of(model("m")) == WINDOW


def test_a_place_that_cannot_be_written_fails_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    known = KnownWindows(tmp_path / "file" / "w.json")
    known.put(model("m"), WINDOW)
    assert known.of(model("m")) is None
