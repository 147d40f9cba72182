"""`/trust`: what a folder's own settings would do, to be read before anybody says that they may."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from ...agent.errors import ConfigError
from ..trust import distrust, is_trusted, project_files, trust
from .list_screen import ListScreen

if TYPE_CHECKING:
    from ...agent.workspace import Workspace
    from .desk import Desk

_LONGEST = 400
"""Lines of one file that are shown."""


class TrustScreen(ListScreen):
    """The files, as they are; `t` trusts exactly these bytes, `u` takes trust back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "decide(True)", show=False),
        Binding("u", "decide(False)", show=False),
    ]

    def __init__(self, app: Desk, workspace: Workspace, files: dict[Path, bytes], *, trusted: bool) -> None:
        lines = [line for path, data in files.items() for line in _lines(path.relative_to(workspace.root), data)]
        said = "Trusted: they take effect." if trusted else "Not trusted: they do nothing."
        about = (
            "They can allow tools and commands, choose the model and send it elsewhere. Asked again when they change."
        )
        keys = "u: take trust back" if trusted else "t: trust them as they are now"
        super().__init__("Settings of this folder", [f"{said} {about}", "", *lines], keys=keys)
        self._deepagent, self._workspace, self._files = app, workspace, files

    def action_decide(self, trusted: bool) -> None:
        """Keeps the decision, and opens the session anew by it."""
        try:
            if trusted:
                trust(self._workspace, self._files)
            else:
                distrust(self._workspace)
        except ConfigError as error:
            self._deepagent.presenter.notice(str(error))
            self.dismiss(None)
            return
        self.dismiss(None)
        self._deepagent.open_again()


def show_trust(app: Desk) -> None:
    """Opens the screen, or says that there is nothing to decide."""
    opened = app.conversation.opened
    if opened is None:
        return
    try:
        files = project_files(opened.workspace)
        trusted = is_trusted(opened.workspace, files)
    except ConfigError as error:
        app.presenter.notice(str(error))
        return
    if files:
        app.push_screen(TrustScreen(app, opened.workspace, files, trusted=trusted))
    else:
        app.presenter.notice("This folder brings no settings of its own: there is nothing to trust")


def _lines(path: Path, data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").splitlines()
    more = [f"… and {len(lines) - _LONGEST:,} more lines"] if len(lines) > _LONGEST else []
    return [f"{path}  {len(data):,} bytes", *(f"│ {line}" for line in lines[:_LONGEST]), *more, ""]
