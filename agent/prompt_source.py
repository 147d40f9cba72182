"""The system prompt of one session: memory and skills are looked at anew for each run, the rest stays as it began."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ..context.budget import Budget
from ..context.entries import SessionStarted
from ..context.session import Session
from ..skills.catalogue import catalogue
from ..skills.discover import discover, standard_roots
from ..skills.skill import SkillRoot, Skills
from .config import PermissionMode, Settings
from .memory import LIMIT, Memory, load_memory, memory_text
from .prompt import PromptPart, build_prompt, environment_of
from .workspace import Workspace


def skill_roots(workspace: Workspace) -> tuple[SkillRoot, ...]:
    """Where skills may lie."""
    project = workspace.root if workspace.project is not None else None
    return standard_roots(workspace=project, home=Path.home(), user_folder=workspace.user)


def find_skills(workspace: Workspace) -> Skills:
    """The skills of the project and of the user."""
    return discover(skill_roots(workspace))


def find_memory(workspace: Workspace, listed: tuple[str, ...], *, limit: int = LIMIT) -> Memory:
    """The AGENTS.md files and the `listed` ones, together at most `limit` bytes."""
    project = workspace.root if workspace.project is not None else None
    return load_memory(
        workspace=project, cwd=workspace.cwd, user_folder=workspace.user, listed=listed, limit_bytes=limit
    )


@dataclass(slots=True, kw_only=True)
class PromptSource:
    """Makes the prompt's parts."""

    settings: Settings
    workspace: Workspace
    session: Session
    tools: tuple[str, ...]
    budget: Budget
    mode: PermissionMode
    """The mode of the approvals; it may change between runs."""
    custom: str | Callable[[object], str] = ""
    context: object = None

    def parts(self) -> tuple[PromptPart, ...]:
        """The parts as they are now."""
        started = self.session.entries[0]
        assert isinstance(started, SessionStarted)
        return build_prompt(
            environment=environment_of(self.workspace, date.fromisoformat(started.time[:10])),
            tools=self.tools,
            mode=self.mode,
            context=self.context,
            custom=self.custom or self.settings.prompt.append,
            memory=memory_text(self._memory().files),
            skills=catalogue(find_skills(self.workspace).skills, base=self.workspace.cwd).text,
        )

    def notices(self) -> tuple[str, ...]:
        """What is wrong with memory and skills."""
        skills = find_skills(self.workspace)
        return (*self._memory().notices, *(str(problem) for problem in skills.problems))

    def _memory(self) -> Memory:
        """Memory within a tenth of the budget, at four bytes a token."""
        limit = min(LIMIT, self.budget.tokens // 10 * 4)
        return find_memory(self.workspace, self.settings.memory, limit=limit)
