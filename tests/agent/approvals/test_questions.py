"""Approvals in a run: several questions at once, what only reads, and paths that commands name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.approvals.policy import Mode, Policy
from deepagent.agent.approvals.rules import parse_rules
from deepagent.agent.backends.local import LocalBackend
from deepagent.agent.events import Approval, ApprovalAsked, Denied, Event
from deepagent.agent.middleware.approvals import UNANSWERED, Approvals
from deepagent.agent.middleware.base import RunState
from deepagent.agent.sandbox.bounds import Grant
from deepagent.agent.tool import Tool, ToolResult
from deepagent.agent.tools import builtin_tools
from deepagent.context.messages import ToolCall
from hard_inputs import hard_input

TOOLS = {tool.name: tool for tool in builtin_tools()}
Answer = Callable[[ApprovalAsked], Approval | None]


class Desk:
    """An agent's approvals, with somebody who answers."""

    def __init__(self, folder: Path, answer: Answer, *, session: Any = None) -> None:
        self.folder = folder
        self.answer = answer
        self.asked: list[ApprovalAsked] = []
        self.denied: list[Denied] = []
        self.ran: list[ToolCall] = []
        self.run = RunState(session=session, emit=self.emit)

    def approvals(
        self, *, mode: Mode = "default", allow: Sequence[str] = (), deny: Sequence[str] = (), **more: Any
    ) -> Approvals:
        policy = Policy(mode=mode, allow=parse_rules(allow), deny=parse_rules(deny))
        backend = LocalBackend(self.folder, self.folder, data=self.folder / ".deepagents", environ=os.environ)
        self.of = Approvals(policy, backend, interactive=True, root=self.folder, **more)
        return self.of

    def emit(self, event: Event) -> None:
        if isinstance(event, Denied):
            self.denied.append(event)
        if isinstance(event, ApprovalAsked):
            self.asked.append(event)
            asyncio.get_running_loop().call_later(0.01, self.decide, event)

    def decide(self, event: ApprovalAsked) -> None:
        answer = self.answer(event)
        event.answer.cancel() if answer is None else event.answer.set_result(answer)

    async def call(self, approvals: Approvals, id: str, tool: str, **arguments: Any) -> ToolResult:
        async def handle(call: ToolCall) -> ToolResult:
            self.ran.append(call)
            return ToolResult(text="ran")

        call = ToolCall(id=id, name=tool, arguments=arguments)
        return await approvals.wrap_tool(self.run, call, TOOLS.get(tool, _tool(tool)), handle)


def _tool(name: str) -> Tool:
    return Tool(schema=TOOLS["execute"].schema, run=TOOLS["execute"].run, access="execute")


def yes(_: ApprovalAsked) -> Approval:
    return Approval(allowed=True)


@hard_input(
    "Approvals",
    "several calls that ask at once, of sub-agents too",
    "one question at a time, in order, with its origin",
)
async def test_questions_come_in_order_and_say_who_asks(tmp_path: Path) -> None:
    desk = Desk(tmp_path, yes)
    approvals = desk.approvals(origin="tester")
    calls = [desk.call(approvals, str(number), "execute", command=f"a {number}") for number in range(4)]
    assert [result.text for result in await asyncio.gather(*calls)] == ["ran"] * 4
    assert [(event.call.id, event.origin) for event in desk.asked] == [(str(number), "tester") for number in range(4)]
    assert [call.id for call in desk.ran] == ["0", "1", "2", "3"]


async def test_two_agents_ask_at_once_and_both_are_answered(tmp_path: Path) -> None:
    desk = Desk(tmp_path, lambda event: Approval(allowed=event.origin == "one"))
    one, two = (desk.approvals(origin=origin) for origin in ("one", "two"))
    calls = (desk.call(one, "1", "execute", command="a"), desk.call(two, "2", "execute", command="a"))
    first, second = await asyncio.wait_for(asyncio.gather(*calls), 5)
    assert (first.text, second.is_error) == ("ran", True)


async def test_always_holds_for_what_waits_behind_it(tmp_path: Path) -> None:
    def always(event: ApprovalAsked) -> Approval:
        for rule in event.rules:
            desk.of.allow(rule)
        return Approval(allowed=True)

    desk = Desk(tmp_path, always)
    approvals = desk.approvals()
    await asyncio.gather(*(desk.call(approvals, id, "execute", command="make a") for id in "abc"))
    assert len(desk.asked) == 1
    assert len(desk.ran) == 3


async def test_nobody_answers(tmp_path: Path) -> None:
    desk = Desk(tmp_path, lambda _: None)
    result = await desk.call(desk.approvals(), "1", "execute", command="a")
    assert (result.summary, result.is_error, desk.ran) == ("unanswered", True, [])
    assert UNANSWERED in result.text
    assert [event.reason for event in desk.denied] == [UNANSWERED]
    assert desk.run.denied


async def test_a_run_that_is_cancelled_while_it_asks_ends(tmp_path: Path) -> None:
    desk = Desk(tmp_path, lambda _: None)
    desk.decide = lambda event: None
    task = asyncio.create_task(desk.call(desk.approvals(), "1", "execute", command="a"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (desk.ran, desk.denied) == ([], [])


async def test_a_question_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path, yes)
    approvals = desk.approvals(mode="yolo", deny=["execute(rm *)"])
    await desk.call(approvals, "1", "execute", command="git clean -fdx")
    await desk.call(approvals, "2", "write_file", path=".git/config", content="x")
    await desk.call(approvals, "3", "execute", command="$x")
    await desk.call(approvals, "4", "execute", command="make")
    first, second, third = desk.asked
    assert first.rules == ("execute(git clean -fdx)",)
    assert first.warning == "git clean -x removes files that git cannot bring back"
    assert second.warning == "what git finds in .git may run as a program"
    assert (third.warning, "execute(rm *) may deny it" in third.reason) == ("", True)


@hard_input(
    "Approvals",
    "a command that only reads, in a sandbox",
    "runs without a question, with nothing writable and no network",
)
async def test_what_only_reads_is_confined_to_that(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    desk = Desk(tmp_path, yes)
    approvals = desk.approvals(confined=lambda: True)
    await desk.call(approvals, "1", "execute", command="cat a | head -1")
    assert (desk.asked, desk.run.grants) == ([], {"1": Grant(reading=True)})
    await desk.call(approvals, "2", "execute", command="make")
    assert len(desk.asked) == 1
    assert list(desk.run.grants) == ["1"]
    await desk.call(desk.approvals(), "3", "execute", command="cat a")
    assert len(desk.asked) == 2


async def test_a_reading_command_does_not_go_through_a_link_out_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "work/link").symlink_to(tmp_path)
    desk = Desk(tmp_path / "work", yes)
    approvals = desk.approvals(confined=lambda: True)
    await desk.call(approvals, "1", "execute", command="cat link/secret")
    await desk.call(approvals, "2", "execute", command="ls link")
    await desk.call(approvals, "3", "execute", command="cd link; cat secret")
    assert len(desk.asked) == 3


async def test_a_grant_is_handed_on(tmp_path: Path) -> None:
    grant = Grant(network=True)
    desk = Desk(tmp_path, lambda _: Approval(allowed=True, grant=grant))
    await desk.call(desk.approvals(), "1", "execute", command="make")
    assert desk.run.grants == {"1": grant}


@hard_input("Approvals", "a redirection through a link into .git", "asked about, in yolo too")
async def test_a_redirection_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "link").symlink_to(".git/hooks")
    desk = Desk(tmp_path, yes)
    approvals = desk.approvals(mode="yolo")
    await desk.call(approvals, "1", "execute", command="echo x > link/pre-commit")
    await desk.call(approvals, "2", "execute", command=f"echo x > {tmp_path}/.git/config")
    await desk.call(approvals, "3", "execute", command=f"rm -rf {tmp_path}")
    await desk.call(approvals, "4", "execute", command=f"rm -rf {tmp_path.parent}")
    assert len(desk.asked) == 4
    assert desk.asked[0].rules == ("write_file(.git/hooks/pre-commit)",)
    await desk.call(approvals, "5", "execute", command=f"echo x > {tmp_path}/out; rm -rf {tmp_path}/build /tmp/x")
    assert len(desk.asked) == 4


async def test_what_is_edited_is_judged_anew(tmp_path: Path) -> None:
    desk = Desk(tmp_path, lambda _: Approval(allowed=True, arguments={"path": "secret", "content": "x"}))
    approvals = desk.approvals(deny=["write_file(secret)"])
    result = await desk.call(approvals, "1", "write_file", path="a", content="x")
    assert "Not allowed: the rule write_file(secret) denies it" in result.text
    assert (desk.ran, desk.run.denied) == ([], True)

    def leads_out(_: ApprovalAsked) -> Approval:
        return Approval(allowed=True, arguments={"path": "../out", "content": "x"})

    desk.answer = leads_out
    result = await desk.call(approvals, "2", "write_file", path="a", content="x")
    assert desk.ran[0].arguments == {"path": "../out", "content": "x"}  # the tool says that it cannot be reached
    assert result.text == 'The user changed this call before it ran.\npath: "../out" instead of "a"\n\nran'
