"""The check on a new record: what the earlier one held by name is not lost without a word."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from context_samples import Rig, answer, no_tables, step, user
from deepagent.context.check import lost_lines, names_in
from deepagent.context.record import Ask
from deepagent.context.tokens import Counter
from hypothesis import given
from hypothesis import strategies as st

COUNTER = Counter(no_tables)
EARLIER = """## SUMMARY
- the limit is 4,200 requests an hour
- `parse_header` fails on a BOM
- nothing of note here
- retired: old_module.py

## ARTIFACTS
- src/billing/invoice.py, rounding
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see `a b` in src/x.py, 12.5 s", {"a b", "src/x.py", "12.5"}),
        ("call parse_header or parseHeader", {"parse_header", "parseHeader"}),
        ('it says "no such file"', {"no such file"}),
        ("https://example.org/a?b=1 (docs)", {"https://example.org/a?b=1"}),
        ("plain words, 7 of them. Done", frozenset[str]()),
    ],
)
def test_names(text: str, names: set[str]) -> None:
    assert names_in(text) == names


def test_lines_whose_names_are_gone_come_back_as_they_were() -> None:
    now = "the parser: `parse_header` fails on a BOM, in src/billing/invoice.py"
    assert lost_lines(EARLIER, now, limit=500, counter=COUNTER) == ("the limit is 4,200 requests an hour",)
    assert lost_lines(EARLIER, EARLIER, limit=500, counter=COUNTER) == ()
    assert lost_lines(EARLIER, "", limit=500, counter=COUNTER) == (
        "the limit is 4,200 requests an hour",
        "`parse_header` fails on a BOM",
        "src/billing/invoice.py, rounding",
    )


def test_the_last_lines_count_most_where_not_all_have_room() -> None:
    lines = [f"- fact number {number}" for number in range(10, 60)]
    kept = lost_lines("\n".join(lines), "", limit=60, counter=COUNTER)
    assert 3 < len(kept) < 50
    assert kept == tuple(line.removeprefix("- ") for line in lines[-len(kept) :])


@given(st.text(max_size=300), st.text(max_size=300))
def test_nothing_is_made_up(earlier: str, now: str) -> None:
    for line in lost_lines(earlier, now, limit=10_000, counter=COUNTER):
        assert line in earlier
        assert any(name not in now for name in names_in(line))


async def test_what_a_second_summary_forgot_is_in_the_head_and_reported(rig: Callable[..., Rig]) -> None:
    good = "## SUMMARY\nthe secret port is 48213, set in conf/server.toml\n"
    made = rig(answers=[good, "## SUMMARY\nwork went on and nothing else is to be said about it\n"])
    made.say(user("set it up"), *step("words " * 900), answer("done"))
    await made.ladder.compact(Ask(reason="user"))
    for _ in range(3):
        made.say(user("go on"), *step("words " * 900), answer("done"))
        entry = await made.ladder.compact(Ask(reason="user"))
        assert entry is not None
        assert entry.reattached == ("the secret port is 48213, set in conf/server.toml",)
        assert "the secret port is 48213, set in conf/server.toml" in made.head()


async def test_a_model_may_let_go_on_purpose(rig: Callable[..., Rig]) -> None:
    made = rig(
        answers=[
            "## SUMMARY\nthe port is 48213 for the time being\n",
            "## SUMMARY\nthe port has been given up, there is a socket\nretired: 48213\n",
        ]
    )
    made.say(user("set it up"), *step("words " * 900), answer("done"))
    await made.ladder.compact(Ask(reason="user"))
    made.say(user("go on"), *step("words " * 900), answer("done"))
    entry = await made.ladder.compact(Ask(reason="user"))
    assert entry is not None
    assert entry.reattached == ()
