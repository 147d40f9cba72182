"""Headless runs over HTTP: the real program against a model server on this machine, on both lanes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from http_program import KEY, Done, Place
from schemas import check
from server import Answer

USAGE = {"prompt_tokens": 2_000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 400}}
COST = (1_600 * 0.15 + 400 * 0.075 + 50 * 0.6) / 1e6
"""US dollars for `USAGE` at the table's prices of gpt-4o-mini."""
TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
    "Please reduce the length of the messages."
)
Run = Callable[..., Done]
ONE_TRY = {"DEEPAGENT_PROVIDER_RETRIES": "0"}


def call(name: str, /, **arguments: object) -> dict[str, Any]:
    """A call of an answer."""
    return {"name": name, "arguments": arguments}


def refusal(status: int, message: str, **more: object) -> Answer:
    """An answer with an error, as OpenAI words it."""
    return {"status": status, "body": {"error": {"message": message, **more}}}


FIX: list[Answer] = [
    {"text": "I look at it.", "calls": [call("read_file", path="adding.py")], "usage": USAGE},
    {"text": "It is wrong, as far as I can see.", "cut": 3},
    {
        "thinking": "It subtracts.",
        "calls": [call("edit_file", path="adding.py", old_string="a - b", new_string="a + b")],
        "usage": USAGE,
    },
    {"calls": [call("execute", command="python3 -m unittest")], "usage": USAGE},
    {"text": "`add` subtracted; it adds now.", "usage": USAGE},
]
"""A whole piece of work; the second answer breaks off."""


@pytest.mark.parametrize("lane", ["lean", pytest.param("litellm", marks=pytest.mark.long)])
def test_a_bug_is_fixed_and_its_test_run(lane: str, place: Place) -> None:
    place.server.answers += FIX
    done = place.run("--yolo", "--output-format", "json", "fix add", DEEPAGENT_PROVIDER_LANE=lane)
    assert done.code == 0, done.err
    assert (place.repo / "adding.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert place.git("status", "--porcelain") == " M adding.py\n"
    assert len(done.lines) == 1
    result = done.result
    assert (result["subtype"], result["is_error"], result["error"]) == ("success", False, None)
    assert result["result"] == "`add` subtracted; it adds now."
    assert (result["num_turns"], result["compactions"], result["denials"]) == (4, 0, [])
    assert result["usage"] == {
        "input_tokens": 8_000,
        "output_tokens": 200,
        "cache_read_tokens": 1_600,
        "cache_write_tokens": 0,
    }
    assert result["total_cost_usd"] == pytest.approx(4 * COST)
    assert result["session_id"] in str(next((place.repo / ".deepagents" / "sessions").iterdir()))
    assert "trying again" in done.err
    _check_requests(place)


def _check_requests(place: Place) -> None:
    """What the server got: the key, growing conversations, and the test's own words."""
    bodies = place.server.bodies
    assert len(bodies) == len(FIX)
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in place.server.requests)
    assert bodies[1] == bodies[2]  # the attempt that broke off, and the one after it
    for before, now in pairwise(bodies):
        assert now["messages"][: len(before["messages"])] == before["messages"]
        assert now["tools"] == before["tools"]
    assert "OK" in bodies[-1]["messages"][-1]["content"]
    assert bodies[-1]["messages"][-1]["role"] == "tool"
    assert bodies[0]["stream_options"] == {"include_usage": True}


def test_each_line_of_a_stream_is_what_the_schema_says(place: Place) -> None:
    place.server.answers += FIX
    done = place.run("--yolo", "--output-format", "stream-json", "fix add")
    assert done.code == 0, done.err
    for line in done.lines:
        check("stream", line)
    kinds = [line["type"] for line in done.lines if line["type"] != "context"]
    assert kinds == ["system", *["assistant", "tool_use", "tool_result"] * 3, "assistant", "result"]
    said = [line for line in done.lines if line["type"] == "assistant"]
    assert [line["text"] for line in said] == ["I look at it.", "", "", "`add` subtracted; it adds now."]
    assert said[1]["thinking"] == "It subtracts."
    assert done.lines[0]["session_id"] == done.result["session_id"]
    uses = [line["id"] for line in done.lines if line["type"] == "tool_use"]
    assert [line["tool_use_id"] for line in done.lines if line["type"] == "tool_result"] == uses
    context = [line for line in done.lines if line["type"] == "context"][-1]
    assert {key: context[key] for key in done.result["context"]} == done.result["context"]


def test_text_is_the_answer_and_a_newline_and_input_joins_the_prompt(place: Place) -> None:
    place.server.answers.append({"text": "Looks fine.\nReally."})
    done = place.run("review this", input="a diff")
    assert (done.code, done.out) == (0, "Looks fine.\nReally.\n")
    assert place.server.bodies[0]["messages"][-1]["content"] == "review this\n\na diff"


ENDS: dict[str, tuple[int, str, list[Answer], tuple[str, ...]]] = {
    "an unknown model": (1, "unknown_model", [refusal(404, "The model does not exist", code="model_not_found")], ()),
    "a refused request": (1, "bad_request", [refusal(400, "messages: invalid")], ()),
    "a rate limit": (75, "rate_limit", [refusal(429, "Rate limit reached")], ()),
    "a provider that is down": (75, "server", [refusal(503, "overloaded")], ()),
    "a stream that breaks": (75, "broken_stream", [{"text": "One two three four", "cut": 2}], ()),
    "too many calls": (3, "stopped", [{"calls": [call("ls")]}] * 2, ("--max-turns", "2")),
    "too many tokens": (3, "stopped", [{"calls": [call("ls")], "usage": USAGE}], ("--max-tokens", "900")),
    "too much money": (3, "stopped", [{"calls": [call("ls")], "usage": USAGE}], ("--max-cost", "0.0001")),
    "too long a time": (3, "timeout", [{"text": "late", "wait": 20}], ("--timeout", "1.5")),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_exit_code_says_how_it_ended(end: str, place: Place, here: Run) -> None:
    code, kind, answers, arguments = ENDS[end]
    place.server.answers += answers
    done = here("--output-format", "json", *arguments, "go", **ONE_TRY)
    assert done.code == code, done.err
    assert done.result["is_error"]
    assert done.result["error"]["kind"] == kind
    assert done.result["error"]["message"] in done.err
    assert KEY not in done.out + done.err
    assert len(place.server.bodies) == len(answers)
    assert "Traceback" not in done.err


def test_a_refused_key_ends_the_program(place: Place) -> None:
    place.server.answers.append(refusal(401, "Incorrect API key provided", code="invalid_api_key"))
    done = place.run("--output-format", "json", "go")
    assert (done.code, done.result["error"]["kind"]) == (1, "auth"), done.err
    assert len(place.server.bodies) == 1
    assert KEY not in done.out + done.err
    assert "Traceback" not in done.err


def test_a_server_that_is_not_there(here: Run) -> None:
    done = here("--output-format", "json", "go", OPENAI_BASE_URL="http://127.0.0.1:9/v1", **ONE_TRY)
    assert (done.code, done.result["error"]["kind"]) == (75, "connection")


def test_what_is_denied_is_named_with_the_rule_that_would_allow_it(place: Place, here: Run) -> None:
    write = call("write_file", path="new.txt", content="x")
    place.server.answers.extend([{"calls": [write, call("execute", command="touch -c x")]}, {"text": "I may not."}])
    done = here("--output-format", "json", "write it")
    assert done.code == 4
    assert [denial["rules"] for denial in done.result["denials"]] == [["write_file(new.txt)"], ["execute(touch -c x)"]]
    assert (done.result["subtype"], done.result["result"]) == ("success", "I may not.")
    assert "--allow 'execute(touch -c x)'" in done.err
    assert not (place.repo / "new.txt").exists()
    allowed = [f"--allow={rule}" for denial in done.result["denials"] for rule in denial["rules"]]
    place.server.answers.extend([{"calls": [write, call("execute", command="touch -c x")]}, {"text": "Done."}])
    assert here("--output-format", "json", *allowed, "write it").code == 0
    assert (place.repo / "new.txt").read_text() == "x"


def test_a_limit_in_dollars_needs_a_price(place: Place, here: Run) -> None:
    done = here("--max-cost", "1", "--output-format", "json", "go", model="openai/no-such-model-of-theirs")
    assert (done.code, done.result["error"]["kind"]) == (2, "config")
    assert place.server.requests == []


def test_usage_that_comes_in_pieces_is_counted_once(place: Place, here: Run) -> None:
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    place.server.answers.extend(
        [
            {"text": "One two three", "cut": 3, "usage": USAGE},
            {
                "chunks": [
                    {
                        **frame,
                        "choices": [{"index": 0, "delta": {"content": "Hi."}}],
                        "usage": {"prompt_tokens": 1_000},
                    },
                    {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
                    {**frame, "choices": [], "usage": USAGE},
                    "data: [DONE]\n\n",
                ]
            },
        ]
    )
    done = here("--output-format", "json", "go")
    assert (done.code, done.result["result"]) == (0, "Hi.")
    assert (done.result["usage"]["input_tokens"], done.result["usage"]["output_tokens"]) == (2_000, 50)
    assert done.result["total_cost_usd"] == pytest.approx(COST)


def test_too_long_is_answered_with_a_shorter_request_and_the_window_is_learned(place: Place, here: Run) -> None:
    (place.repo / "long.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 200)
    place.server.answers.extend(
        [
            {"calls": [call("execute", command="cat long.txt")]},
            refusal(400, TOO_LONG, code="context_length_exceeded", type="invalid_request_error"),
            {"text": "Foxes."},
        ]
    )
    done = here("--yolo", "--output-format", "json", "read it")
    assert (done.code, done.result["result"]) == (0, "Foxes."), done.err
    assert (done.result["context"]["window"], done.result["context"]["window_source"]) == (8_192, "overflow")
    refused, accepted = place.server.bodies[1:]
    assert len(str(accepted)) < len(str(refused)) - 5_000
    assert ".deepagents/large_tool_results/" in accepted["messages"][-1]["content"]


def test_the_newest_session_goes_on_with_the_same_bytes(place: Place, here: Run) -> None:
    place.server.answers.extend([{"text": "One."}, {"text": "Two."}])
    first = here("--output-format", "json", "first").result
    second = here("-c", "--output-format", "json", "second").result
    assert first["session_id"] == second["session_id"]
    before, now = place.server.bodies
    assert now["messages"][: len(before["messages"])] == before["messages"]
    assert [message["content"] for message in now["messages"][-3:]] == ["first", "One.", "second"]
    assert place.git("status", "--porcelain") == ""


def test_a_compaction_over_http_is_told_and_archived(place: Place, here: Run) -> None:
    words = "the quick brown fox jumps over the lazy dog " * 60
    place.server.answers.extend([{"text": f"{n} {words}", "calls": [call("glob", pattern=f"*{n}*")]} for n in range(9)])
    place.server.answers.extend([{"text": "Foxes were looked at, again and again, and dogs."}, {"text": "done"}])
    done = here("--context-window", "7000", "--output-format", "stream-json", "go")
    assert done.code == 0, done.err
    boundaries = [line for line in done.lines if line.get("subtype") == "compact_boundary"]
    assert [boundary["by"] for boundary in boundaries] == ["model"]
    check("stream", boundaries[0])
    assert boundaries[0]["tokens_after"] < boundaries[0]["tokens_before"]
    assert done.result["compactions"] == 1
    assert done.result["archive"] == boundaries[0]["archive"]
    summary = next(body for body in place.server.bodies if "tools" not in body)
    assert [message["role"] for message in summary["messages"]] == ["user"]
