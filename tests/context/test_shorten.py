"""Old long arguments become stubs in the view, and only in the view."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from context_samples import Rig, answer, call, result, step, user
from deepagent.context.archive_text import write_message
from deepagent.context.entries import MessageLogged, Shortened
from deepagent.context.log import encode
from deepagent.context.messages import Message, ToolCall
from deepagent.context.shorten import LONG_ARGUMENT, plan_shortening
from deepagent.context.stubs import STUB_MARK
from deepagent.context.tokens import Counter

BODY = "".join(f"def function_{number}(): return {number}\n" for number in range(200))


def written(tool: str = "write_file", **arguments: object) -> ToolCall:
    return call(tool, **({"path": "src/x.py", "content": BODY} | arguments))


def history(*calls: ToolCall, failed: bool = False) -> list[Message]:
    """The calls, each answered, and newer messages after them."""
    made: list[Message] = [user("write them")]
    for one in calls:
        made += [answer(one), result(one, "done", is_error=failed)]
    return [*made, *step("newer " * 500)]


def test_a_stub_names_path_and_entry_and_looks_like_no_content(tables: Counter) -> None:
    one = written()
    messages = history(one)
    (stub,) = plan_shortening(messages, 100, tables).stubs
    assert (stub.message, stub.call_id, stub.argument) == (messages[1].id, one.id, "content")
    assert stub.shown.startswith(STUB_MARK)
    assert f"{len(BODY):,} characters" in stub.shown
    assert "src/x.py" in stub.shown
    assert messages[1].id in stub.shown
    assert "\n" not in stub.shown
    assert not any(line in stub.shown for line in BODY.splitlines())
    assert "..." not in stub.shown


def test_what_a_plan_saves_is_what_the_view_loses(rig: Callable[..., Rig], tables: Counter) -> None:
    made = rig(counter=tables)
    made.say(*history(written(), written("edit_file", old_string=BODY, new_string=BODY + "#")))
    plan = plan_shortening(made.session.view.tail, 100, tables)
    assert len(plan.stubs) == 4
    before = tables.messages(made.session.view.messages)
    made.session.append(Shortened(**made.session.header(), stubs=plan.stubs, tokens_saved=plan.tokens_saved))
    after = tables.messages(made.session.view.messages)
    assert before - after == pytest.approx(plan.tokens_saved, rel=0.25)
    assert plan_shortening(made.session.view.tail, 100, tables).stubs == ()


def test_a_list_of_edits_is_one_argument(tables: Counter) -> None:
    edits = [{"old_string": BODY, "new_string": BODY + "#"}]
    one = call("edit_file", path="src/x.py", edits=edits)
    (stub,) = plan_shortening(history(one), 100, tables).stubs
    assert (stub.argument, f"{len(str(edits)):,} characters of `edits`" in stub.shown) == ("edits", True)


def test_the_log_keeps_every_argument_whole(rig: Callable[..., Rig]) -> None:
    made = rig()
    content = "x = 1\n" * 3_000
    made.say(*history(*(written(content=content + str(n)) for n in range(4))))
    logged = [encode(entry) for entry in made.session.entries]
    made.ladder.trim()
    assert isinstance(made.session.entries[-1], Shortened)
    assert [encode(entry) for entry in made.session.entries[:-1]] == logged
    whole = [entry.message for entry in made.session.entries if isinstance(entry, MessageLogged)]
    for before, after in zip(whole, made.session.view.tail, strict=True):
        assert len(write_message(after)) <= len(write_message(before))
    assert sum(STUB_MARK in write_message(message) for message in made.session.view.tail) == 4
    assert not any(STUB_MARK in write_message(message) for message in whole)


@pytest.mark.parametrize(
    "kept",
    [
        written(content=BODY[:LONG_ARGUMENT]),
        written("execute", command=BODY),
        written(content=[BODY]),
        written(content=STUB_MARK + BODY),
    ],
)
def test_short_arguments_other_tools_and_stubs_stay(tables: Counter, kept: ToolCall) -> None:
    plan = plan_shortening(history(kept), 100, tables)
    assert [stub.argument for stub in plan.stubs if stub.call_id == kept.id] in ([], ["content"])
    assert not [stub for stub in plan.stubs if stub.argument == "command"]
    if kept.name == "write_file":
        assert plan.stubs == ()


def test_a_call_that_failed_keeps_its_argument_as_no_file_holds_it(tables: Counter) -> None:
    assert plan_shortening(history(written(), failed=True), 100, tables).stubs == ()


def test_a_call_without_a_result_keeps_its_argument(tables: Counter) -> None:
    messages = [answer(written()), user("stop"), *step("newer " * 500)]
    assert plan_shortening(messages, 100, tables).stubs == ()


def test_newer_arguments_stay(tables: Counter) -> None:
    messages = history(written())
    assert plan_shortening(messages, 10**6, tables).stubs == ()
    newest = [user("x " * 5_000), answer(one := written()), result(one, "done")]
    assert plan_shortening(newest, tables.messages(newest[1:]), tables).stubs == ()


def test_the_newest_message_stays_whatever_the_keep(tables: Counter) -> None:
    one = written()
    assert plan_shortening([answer(one)], 0, tables).stubs == ()
    assert plan_shortening([answer(one), result(one, "done")], 0, tables).stubs != ()


def test_a_stub_that_would_be_longer_is_not_made(tables: Counter) -> None:
    spaces = written(content=" " * 2_100, path="p" * 1_500)
    plan = plan_shortening(history(spaces), 100, tables)
    assert plan.stubs == ()
    assert plan.tokens_saved == 0


async def test_at_the_trigger_it_is_done_whatever_it_frees(rig: Callable[..., Rig]) -> None:
    made = rig()
    made.say(*history(written(content="y" * 2_010)), user("z " * 16_200))
    assert made.budget.trigger <= made.ladder.used.tokens < made.budget.trigger + 600
    await made.ladder.make_room()
    assert [step.kind for step in made.steps] == ["shortened"]
    assert made.ladder.used.tokens < made.budget.trigger
