"""Headless output: every object is what the published schemas say, and denials name a rule that the shell takes."""

from __future__ import annotations

import io
import json
import shlex

import pytest
from deepagent.agent.events import (
    Answered,
    CompactionDone,
    Denied,
    Event,
    Gauge,
    GaugeChanged,
    RunEnded,
    RunStarted,
    ToolFinished,
)
from deepagent.cli.printers import Ending, JsonPrinter, StreamPrinter, TextPrinter, result_object, stream_objects
from deepagent.context.entries import Compacted, Usage
from deepagent.context.messages import AssistantMessage, Reasoning, Text, ToolCall, ToolMessage, UserMessage

from ..schemas import check

CALL = ToolCall(id="c", name="execute", arguments={"command": "it's"})
GAUGE = Gauge(used=5, source="counted", window=100, window_source="user", budget=90, trigger=85, cost=None)
ENDED = RunEnded(
    outcome="success", text="done\n[/b]", turns=2, usage=Usage(input=3, output=4), cost=None, compactions=1
)
EVENTS: list[Event] = [
    RunStarted(session="20261130-120000-abcd", message=UserMessage(id="u", time="t", content=(Text(text="hi"),))),
    GaugeChanged(gauge=GAUGE),
    Answered(
        message=AssistantMessage(
            id="a", time="t", content=(Reasoning(text="hm"), Text(text="ok"), CALL), model="m", stop="tool_calls"
        ),
        usage=None,
        cost=None,
    ),
    Denied(call=CALL, rules=("execute(it's)",), reason="asks"),
    ToolFinished(
        call=CALL,
        message=ToolMessage(id="r", time="t", call_id="c", tool="execute", content=(Text(text="no"),), is_error=True),
        summary="denied",
        seconds=0.1,
    ),
    CompactionDone(
        entry=Compacted(
            id="k",
            time="t",
            parent=None,
            first_kept="a",
            summary="s",
            by="model",
            shown="x",
            requests=(),
            archive=".deepagents/conversation_history/x.md",
            archive_start=0,
            archive_end=9,
            tokens_before=10,
            tokens_after=5,
            messages=3,
            files_read=(),
            files_changed=(),
            reason="trigger",
        ),
        archive="/x.md",
        seconds=1,
    ),
    ENDED,
]


def _result() -> dict[str, object]:
    ending = Ending()
    for event in EVENTS:
        ending.event(event)
    return dict(
        result_object(
            ending, session="20261130-120000-abcd", seconds=1.2345, archive="/x.md", trusted=False, error=None
        )
    )


def test_each_stream_line_is_in_the_schema() -> None:
    lines = [line for event in EVENTS for line in stream_objects(event)]
    for line in [*lines, _result()]:
        check("stream", line)
    assert [line["type"] for line in lines] == ["system", "context", "assistant", "tool_use", "tool_result", "system"]


def test_the_result_is_in_the_schema() -> None:
    result = _result()
    check("result", result)
    assert result["duration_ms"] == 1234
    assert result["denials"] == [
        {"tool": "execute", "input": {"command": "it's"}, "rules": ["execute(it's)"], "reason": "asks"}
    ]


def test_a_failure_before_the_run_is_in_the_schema() -> None:
    result = result_object(
        Ending(), session=None, seconds=0, archive=None, trusted=True, error={"kind": "auth", "message": "no key"}
    )
    check("result", result)
    assert (result["subtype"], result["is_error"]) == ("error", True)


def test_text_is_the_answer_and_one_newline(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    printer = TextPrinter(out)
    for event in EVENTS:
        printer.event(event)
    printer.result(result_object(Ending(ended=ENDED), session=None, seconds=0, archive=None, trusted=True, error=None))
    assert out.getvalue() == "done\n[/b]\n"
    error = capsys.readouterr().err
    rule = shlex.split(error.split("To allow it: ", 1)[1].splitlines()[0])
    assert rule == ["--allow", "execute(it's)"]


@pytest.mark.parametrize("printer_type", [JsonPrinter, StreamPrinter])
def test_json_is_one_object_a_line(printer_type: type[JsonPrinter | StreamPrinter]) -> None:
    out = io.StringIO()
    printer = printer_type(out)
    for event in EVENTS:
        printer.event(event)
    printer.result(result_object(Ending(ended=ENDED), session=None, seconds=0, archive=None, trusted=True, error=None))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[-1]["type"] == "result"
    assert (len(lines) == 1) is (printer_type is JsonPrinter)
