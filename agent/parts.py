"""What an agent is made of: put together by `agent.build`, used by `agent.agent`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from ..context.budget import Budget, Window
from ..context.cache import CacheTerms
from ..context.messages import Image
from ..context.session import Session
from ..context.storage import StorageError
from ..context.tokens import Counter
from .backends.protocol import Backend
from .checkpoints.files import Files
from .config import PermissionMode, Settings
from .known_windows import KnownWindows
from .middleware.base import Middleware
from .model.types import Completed, Model
from .prompt_source import PromptSource
from .sandbox.sandbox import Sandbox
from .secrets import Masker
from .tool import Tool
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an agent is made of."""

    workspace: Workspace
    session: Session
    model: Model
    summary_model: Model
    summary_window: Window
    known_windows: KnownWindows
    """What was found out of windows in earlier sessions."""
    summary_prompt: str
    """What a summary is to hold, in the user's words; ours where empty."""
    cache: CacheTerms
    """The terms of the model's prompt cache."""
    budget: Budget
    settings: Settings
    backend: Backend
    sandbox: Sandbox
    """What holds shell commands to their bounds."""
    tools: tuple[Tool, ...]
    middleware: tuple[Middleware, ...]
    """The first is the outermost; the context layer comes inside all of them."""
    files: Files
    """What the session did to files, to be shown and taken back."""
    masker: Masker
    counter: Counter
    prompt: PromptSource
    price: Callable[[Completed], float | None]
    summary_price: Callable[[Completed], float | None]
    max_output: int | None = None
    sees: bool = False
    """The model is shown images."""
    context: object = None
    """The caller's own data for tools; never written to disk."""
    notices: tuple[str, ...] = ()
    set_mode: Callable[[PermissionMode], None]
    """Makes another mode decide what runs without being asked about."""
    allow: Callable[[str], None]
    """Takes a further rule for what is not asked about."""
    on_close: Callable[[], None] = lambda: None
    lent: bool = False
    """The models are somebody else's, who closes them."""

    def image(self, image: Image) -> bytes | None:
        """An image's data, as it was when it joined; None where its file is gone or is not what it was."""
        try:
            data = self.session.storage.read(image.name)
        except (OSError, StorageError):
            return None
        return data if hashlib.sha256(data).hexdigest() == image.sha256 else None
