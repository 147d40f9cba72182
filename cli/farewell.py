"""What the scrollback keeps of a session: the last answer, the files that were changed, the cost, how to go on."""

from __future__ import annotations

from ..agent.agent import Agent
from ..context.facts import gather
from ..context.messages import AssistantMessage
from .terminal import plain

_FILES = 12


def farewell(agent: Agent) -> str:
    """The words; empty where nothing was said."""
    session = agent.session
    if not session.requests():
        return ""
    answers = [m.text for m in session.messages() if isinstance(m, AssistantMessage) and m.text.strip()]
    changed = gather(session.messages()).changed
    lines = [plain(answers[-1]).strip(), ""] if answers else []
    lines += [f"  {plain(file.path)}  +{file.added} −{file.removed}" for file in changed[:_FILES]]
    if len(changed) > _FILES:
        lines.append(f"  and {len(changed) - _FILES} more files")
    cost = "" if session.cost is None else f"${session.cost:.2f} · "
    lines.append(f"{cost}go on with: deepagent -r {session.id}")
    return "\n".join(lines)
