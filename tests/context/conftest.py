"""Fixtures of the context layer's tests: real files, the real tokenizer, and a session with its ladder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from context_samples import Rig
from deepagent.agent.storage import DiskStorage
from deepagent.agent.tokenizer import load_encoder
from deepagent.context.session import Session
from deepagent.context.tokens import Counter


@pytest.fixture(scope="session")
def tables() -> Counter:
    """A counter with the real tables, shared: loading them takes half a second."""
    counter = Counter(load_encoder)
    counter.prepare()
    assert counter.exact
    return counter


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[DiskStorage]:
    """Files in a project and their twins in a home; in memory where the system has such a place, as we sync a lot."""
    memory = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(prefix="deepagent-test-", dir=memory)) if os.access(memory, os.W_OK) else tmp_path
    yield DiskStorage(base / "project" / ".deepagents", base / "home" / "twins", prefix=".deepagents")
    if base != tmp_path:
        shutil.rmtree(base)


@pytest.fixture
def session(storage: DiskStorage) -> Iterator[Session]:
    """A new session."""
    session = Session.start(storage, workspace="/w", cwd="/w")
    yield session
    session.close()


@pytest.fixture
def rig(session: Session) -> Callable[..., Rig]:
    """Makes a ladder on the session: `rig(window=16_000, answers=["…"])`."""

    def make(**options: object) -> Rig:
        return Rig(session, **options)  # pyright: ignore[reportArgumentType] - a test passes what `Rig` takes

    return make


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes a file system with so many KiB: only root may."""
    if os.geteuid() != 0:
        pytest.skip("a small file system can be mounted by root only")
    mounted: list[Path] = []

    def mount(size: int) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)], check=False, capture_output=True
        )
        if done.returncode:
            pytest.skip(f"no small file system can be mounted here: {done.stderr.decode().strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)
