"""Opens the checkpoints of a session: where states are kept, what is looked at, and what is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...context.session import Session
from ..git.repository import excludes, tracked_though_ignored
from ..git.shadow import Limits, Shadow
from ..workspace import DATA_FOLDERS, Workspace
from .files import Files
from .keeper import Keeper
from .places import Places
from .states import FILE_BYTES
from .store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The checkpoints of one session."""

    store: Store
    keeper: Keeper
    files: Files


def open_checkpoints(
    workspace: Workspace, session: Session, folder: Path, *, mask: Callable[[str], str], limits: Limits | None = None
) -> Opened:
    """Opens the checkpoints that are kept in `folder`. Nothing is written, and no git runs, before a tool does."""
    store = Store(folder)
    places = Places(workspace.root, stays=workspace.cwd)
    keeper = Keeper(
        store=store,
        places=places,
        root=workspace.root,
        open_shadow=partial(_open_shadow, workspace, folder, limits or Limits(file_bytes=FILE_BYTES)),
        off=_why_not(workspace),
    )
    files = Files(session, Store(folder), places, root=workspace.root, git=workspace.git, mask=mask)
    files.off = lambda: keeper.off
    return Opened(store=store, keeper=keeper, files=files)


def _open_shadow(workspace: Workspace, folder: Path, limits: Limits) -> Shadow:
    ours = tuple(f"/.deepagents/{name}/" for name in DATA_FOLDERS)
    root = workspace.root
    return Shadow(
        folder,
        root,
        ignored=ours,
        excludes=excludes(root) if workspace.git else None,
        also=tracked_though_ignored(root) if workspace.git else (),
        limits=limits,
    )


def _why_not(workspace: Workspace) -> str:
    """Why the workspace as a whole is not looked at, or nothing."""
    root = workspace.root
    if root == root.parent:
        return "the workspace is the whole file system"
    if workspace.project is None or workspace.user.is_relative_to(root):
        return "the workspace is your home folder, or holds the agent's own"
    if not workspace.git and all(os.path.exists(root / name) for name in ("HEAD", "objects", "refs")):  # noqa: PTH110
        return "this is a repository without a work tree"
    return ""
