"""The system prompt of a session as it would be now: memory and skills are looked at anew, the rest is as it began.

What of it the model is told, and when, is the business of `agent.head`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path

from ..context.budget import Budget
from ..context.entries import SessionStarted
from ..context.session import Session
from ..context.tokens import Counter, estimate
from ..skills.catalogue import LIMIT as CATALOGUE
from ..skills.catalogue import catalogue
from ..skills.discover import discover, standard_roots
from ..skills.skill import SkillRoot, Skills
from .brief import left_out
from .config import PermissionMode, Settings
from .memory import LIMIT, Measure, Memory, load_memory, memory_text
from .prompt import PromptPart, build_prompt, environment_of
from .watch import Watched
from .workspace import Workspace

_SEAMS = 10
"""Tokens for each file of memory: its size and the fence are longer once there is a text."""


def skill_roots(workspace: Workspace) -> tuple[SkillRoot, ...]:
    """Where skills may lie."""
    project = workspace.root if workspace.project is not None else None
    return standard_roots(workspace=project, home=Path.home(), user_folder=workspace.user)


def find_skills(workspace: Workspace) -> Skills:
    """The skills of the project and of the user."""
    return discover(skill_roots(workspace))


def find_memory(
    workspace: Workspace,
    listed: tuple[str, ...],
    *,
    touched: Iterable[Path] = (),
    limit: int = LIMIT,
    measure: Measure = estimate,
) -> Memory:
    """The AGENTS.md files and the `listed` ones, together at most `limit` tokens."""
    project = workspace.root if workspace.project is not None else None
    return load_memory(
        workspace=project,
        cwd=workspace.cwd,
        user_folder=workspace.user,
        listed=listed,
        touched=touched,
        limit=limit,
        measure=measure,
    )


@dataclass(slots=True, kw_only=True)
class PromptSource:
    """Makes the prompt's parts, and reads of files only those that have changed. One thread at a time."""

    settings: Settings
    workspace: Workspace
    session: Session
    tools: tuple[str, ...]
    counter: Counter
    budget: Budget
    """May be replaced: the parts then suit another window."""
    mode: PermissionMode
    """The mode of the approvals; it may change at any time."""
    custom: str | Callable[[object], str] = ""
    context: object = None
    _custom: str | None = None
    _memory: Watched[Memory] = field(default_factory=Watched[Memory])
    _skills: Watched[Skills] = field(default_factory=Watched[Skills])
    _last: Memory = field(default_factory=Memory)

    def begin(self) -> None:
        """A run begins: a custom prompt that is a function is called for it."""
        custom = self.custom or self.settings.prompt.append
        self._custom = custom if isinstance(custom, str) else custom(self.context)

    def parts(self, touched: Iterable[str] = ()) -> tuple[PromptPart, ...]:
        """The parts as they are now. `touched` are files that tools worked on, as the log calls them."""
        if self._custom is None:
            self.begin()
        started = self.session.entries[0]
        assert isinstance(started, SessionStarted)
        budget = self.budget
        absent = left_out(budget)
        memory = self._last = self._find_memory(touched)
        room = min(CATALOGUE, budget.tokens // 5) if budget.small else CATALOGUE
        return build_prompt(
            environment=environment_of(self.workspace, date.fromisoformat(started.time[:10])),
            tools=tuple(name for name in self.tools if name not in absent),
            mode=self.mode,
            context=self.context,
            small=budget.small,
            custom=self._custom or "",
            memory=memory_text(memory.files, small=budget.small),
            skills=catalogue(self._find_skills().skills, base=self.workspace.cwd, limit=room).text,
        )

    def notices(self) -> tuple[str, ...]:
        """What is wrong with memory and skills."""
        self._last = self._last if self._last.places else self._find_memory(())
        return (*self._last.notices, *(str(problem) for problem in self._find_skills().problems))

    def shown(self, path: str) -> str:
        """The path of a memory file as people are told of it."""
        root = self.workspace.root
        return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path

    def _find_skills(self) -> Skills:
        def make() -> tuple[Skills, Iterable[Path]]:
            skills = find_skills(self.workspace)
            return skills, skills.places

        return self._skills.get(None, make)

    def _find_memory(self, touched: Iterable[str]) -> Memory:
        folders = frozenset((self.workspace.root / path).parent for path in touched)

        def make() -> tuple[Memory, Iterable[Path]]:
            memory = self._load_memory(folders)
            return memory, memory.places

        return self._memory.get((folders, self.budget.memory_limit), make)

    def _load_memory(self, folders: frozenset[Path]) -> Memory:
        """Memory within its share of the budget: estimated where that shows that all fits, else counted."""
        find = partial(find_memory, self.workspace, self.settings.memory, touched=folders)
        bare = find(limit=0).files
        frame, limit = memory_text(bare), self.budget.memory_limit - _SEAMS * len(bare)
        memory = find(limit=max(0, limit - estimate(frame)))
        if not any(file.cut for file in memory.files):
            return memory
        self.counter.prepare()
        return find(limit=max(0, limit - self.counter.text(frame)), measure=self.counter.text)
