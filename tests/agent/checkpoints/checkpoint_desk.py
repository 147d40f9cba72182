"""What tests of checkpoints work at: a real folder, a real log, and calls as the middleware makes them."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from deepagent.agent.checkpoints.files import FilesReport
from deepagent.agent.checkpoints.opening import open_checkpoints
from deepagent.agent.checkpoints.states import Changes
from deepagent.agent.git import make_repository
from deepagent.agent.git.shadow import Limits
from deepagent.agent.workspace import find_workspace
from deepagent.context.entries import FilesChanged
from deepagent.context.messages import Text, UserMessage, new_id, timestamp
from deepagent.context.session import Session

State = dict[bytes, tuple[int, bytes]]


class Desk:
    """One session in one folder. `turn` begins a turn, `write` and `shell` are calls of it."""

    def __init__(self, folder: Path, *, git: bool = True, limits: Limits | None = None) -> None:
        self.folder = folder
        if not folder.exists():
            folder.mkdir()
            (folder / "a.txt").write_text("one\n")
            if git:
                make_repository(folder, "first")
        self.workspace = find_workspace(folder, environ=os.environ)
        self.session = Session.start(self.workspace.storage(), workspace=str(folder), cwd=str(folder))
        self._limits = limits
        self._open()

    def _open(self) -> None:
        opened = open_checkpoints(
            self.workspace, self.session, self.workspace.checkpoints, mask=str, limits=self._limits
        )
        self.keeper, self.files, self.store = opened.keeper, opened.files, opened.store
        self.message = ""

    def reopen(self) -> None:
        """The same session as another process would open it."""
        self.session.close()
        self.session = Session.resume(self.workspace.storage(), self.session.id)
        self._open()

    def close(self) -> None:
        self.session.close()

    def turn(self, text: str = "go") -> str:
        """Says something; what comes then belongs to it."""
        message = UserMessage(id=new_id(), time=timestamp(), content=(Text(text=text),))
        self.session.say(message)
        self.message = message.id
        return message.id

    def call(self, path: str | None, work: Callable[[], object]) -> Changes:
        """Does something as a call of a tool: of one that names its file, or of one that may change any."""
        if not self.message:
            self.turn()
        before = self.keeper.before(path)
        work()
        if before is None:
            return Changes()
        changes = self.keeper.after(before)
        if changes:
            kept = self.keeper.keep(changes, self.session.id)
            assert kept is not None
            self.session.append(
                FilesChanged(
                    **self.session.header(), message=self.message, call_id="c", changes=kept, files=len(changes.files)
                )
            )
        return changes

    def write(self, path: str, text: str) -> Changes:
        """As `write_file` does."""
        place = self.folder / path

        def work() -> None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

        return self.call(str(place.relative_to(self.workspace.root)), work)

    def shell(self, command: str) -> Changes:
        """As `execute` does."""
        return self.call(None, lambda: self.run(command))

    def run(self, command: str) -> str:
        """What somebody else does in a shell."""
        done = subprocess.run(
            ("bash", "-c", command),
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout

    def state(self) -> State:
        """Every file with its kind, permissions and content; `.git` and our own folder aside."""
        return state_of(self.folder)


def state_of(folder: Path) -> State:
    """Every file below a folder."""
    found: State = {}
    top = os.fsencode(folder)
    for place, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in (b".git", b".deepagents")]
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]  # noqa: PTH114, PTH118
        for name in (*files, *links):
            path = os.path.join(place, name)  # noqa: PTH118
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                data = os.readlink(path)  # noqa: PTH115
            else:
                with open(path, "rb") as file:  # noqa: PTH123
                    data = file.read()
            found[os.path.relpath(path, top)] = (status.st_mode, data)
    return found


def done(report: FilesReport) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    """What was written, what was removed, and what was left, and why."""
    return report.written, report.removed, {one.path: one.why for one in report.left}
