"""The request for a summary, what counts as one, and the one without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from context_samples import SUMMARY, answer, call, no_tables, result, step, user
from deepagent.context.entries import Todo
from deepagent.context.facts import Facts, gather
from deepagent.context.messages import Message, Reasoning
from deepagent.context.summary import (
    EARLIER,
    HEADINGS,
    NoSummary,
    Summarizer,
    cut_text,
    is_summary,
    summarize,
    summary_without_model,
    transcript,
)
from deepagent.context.tokens import Counter
from hypothesis import given, settings
from hypothesis import strategies as st

NO_FACTS = Facts(read=(), changed=(), check=None)
ESTIMATES = Counter(no_tables)


class Scripted:
    """A model for summaries that records what it is asked."""

    def __init__(self, *answers: str | Callable[[str], str], window: int = 8_000) -> None:
        self.answers = answers
        self.prompts: list[str] = []
        self.limits: list[int] = []
        self.model = Summarizer(ask=self.ask, window=window)

    async def ask(self, prompt: str, limit: int) -> str:
        self.prompts.append(prompt)
        self.limits.append(limit)
        made = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        return made if isinstance(made, str) else made(prompt)


async def ask(
    model: Scripted,
    messages: Sequence[Message],
    *,
    previous: str | None = None,
    focus: str | None = None,
    limit: int = 348,
) -> str:
    return await summarize(messages, previous=previous, focus=focus, limit=limit, by=model.model, counter=ESTIMATES)


def long_history(count: int = 200) -> list[Message]:
    """`count` messages; the second holds a fact."""
    made: list[Message] = [user("build it")]
    for number in range(count // 2):
        fact = " the secret word is XYLOPHONE-4711 " if number == 0 else ""
        made += [answer(f"step {number}{fact} " + "words " * 150), user("go on " * 60)]
    return made[:count]


async def test_a_fact_of_the_second_message_of_200_reaches_the_model() -> None:
    model = Scripted(SUMMARY)
    await ask(model, long_history())
    assert len(model.prompts) > 3
    assert sum("XYLOPHONE-4711" in prompt for prompt in model.prompts) == 1
    told = "\n".join(model.prompts)
    assert all(f"step {number} " in told for number in range(99))


async def test_each_part_is_merged_into_the_record_of_those_before() -> None:
    model = Scripted(*(f"{SUMMARY} part {number} was merged" for number in range(40)))
    record = await ask(model, long_history())
    assert record.endswith(f"part {len(model.prompts) - 1} was merged")
    for number, prompt in enumerate(model.prompts[1:]):
        assert f"part {number} was merged" in prompt


def echo(prompt: str) -> str:
    """A model that gives its prompt back."""
    return prompt


@pytest.mark.parametrize("window", [4_000, 8_000, 200_000])
@pytest.mark.parametrize("limit", [43, 2_000])
@pytest.mark.parametrize("reply", [SUMMARY, echo, "x" * 100_000, "word " * 20_000])
async def test_no_prompt_leaves_the_models_window(window: int, limit: int, reply: str | Callable[[str], str]) -> None:
    model = Scripted(reply, window=window)
    messages = [*long_history(30), *step("y" * 50_000, content="z" * 50_000), user("no line end " * 3_000)]
    record = await ask(model, messages, previous="earlier " * 3_000, focus="focus " * 3_000, limit=limit)
    for prompt, output in zip(model.prompts, model.limits, strict=True):
        assert ESTIMATES.text(prompt) + output <= window
    assert ESTIMATES.text(record) <= limit


@pytest.mark.parametrize(
    "empty", ["", " \n\t", "## SESSION INTENT\n## SUMMARY\n\n## ARTIFACTS\n", "# a\n---\n***", "ok."]
)
async def test_what_says_nothing_is_asked_for_once_more_and_then_no_summary(empty: str) -> None:
    assert not is_summary(empty)
    model = Scripted(empty)
    with pytest.raises(NoSummary):
        await ask(model, [user("hello")])
    assert len(model.prompts) == 2
    second = Scripted(empty, SUMMARY)
    assert await ask(second, [user("hello")]) == SUMMARY.strip()


async def test_the_request_is_text_without_places_to_fill() -> None:
    material = "def f(): return {limit} + '{focus}' % {} {0} {{x}}"
    model = Scripted(SUMMARY)
    await ask(model, [user(material)], previous="{limit} {previous}", focus="{limit}", limit=1_000)
    (prompt,) = model.prompts
    assert material in prompt
    assert "{limit} {previous}" in prompt
    assert "at most 700 words." in prompt
    assert "The user wants attention to: {limit}" in prompt
    assert all(f"## {name}" in prompt for name in HEADINGS)


def test_calls_and_results_are_told_as_text() -> None:
    made = call("write_file", path="src/x.py", content="c" * 9_000)
    told = [
        transcript(message)
        for message in (user("do it"), answer("I write", Reasoning(text="hm"), made), result(made, "r" * 9_000))
    ]
    assert told[0] == "[user] do it"
    assert "[assistant] I write" in told[1]
    assert "[assistant calls write_file]" in told[1]
    assert '"path": "src/x.py"' in told[1]
    assert "hm" not in told[1]
    assert told[2].startswith("[result of write_file] rrr")
    assert all("characters in the archive" in text and len(text) < 5_000 for text in told[1:])


async def test_a_lone_surrogate_in_the_answer_does_not_reach_the_log() -> None:
    assert (await ask(Scripted(SUMMARY + "\udc97"), [user("x")])).endswith("\ufffd")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400), st.integers(20, 300))
def test_a_cut_text_is_within_its_limit_and_says_so(text: str, limit: int) -> None:
    cut = cut_text(text, limit, ESTIMATES)
    if ESTIMATES.text(text) <= limit:
        assert cut == text
    else:
        kept, _, words = cut.rpartition("\n")
        assert text.startswith(kept)
        assert "longer than its limit" in words
        assert ESTIMATES.text(cut) <= limit + 20


def test_a_summary_of_one_long_line_is_cut_and_not_thrown_away() -> None:
    cut = cut_text("decided to use sqlite, " * 2_000, 300, ESTIMATES)
    assert 200 < ESTIMATES.text(cut) <= 300
    assert cut.startswith("decided to use sqlite, decided")


def harness(messages: Sequence[Message], previous: str | None = None, limit: int = 2_000) -> str:
    todos = (Todo(text="write the docs", status="pending"), Todo(text="done that", status="completed"))
    return summary_without_model(
        messages, previous=previous, facts=gather(messages), todos=todos, limit=limit, counter=ESTIMATES
    )


def test_without_a_model_the_log_gives_the_same_four_sections_each_time() -> None:
    messages = [user("go"), *step("ok", "write_file"), *step("ok", "execute"), answer("the parser is done")]
    text = harness(messages)
    assert text == harness(messages)
    assert [line.removeprefix("## ") for line in text.split("\n") if line.startswith("## ")] == list(HEADINGS)
    for part in ("execute 1x, write_file 1x", "the parser is done", "- [pending] write the docs"):
        assert part in text
    assert "done that" not in text


def test_without_a_model_the_last_record_of_a_model_is_carried_along() -> None:
    text = harness([user("go")], previous=SUMMARY)
    assert text.partition(EARLIER)[2] == SUMMARY
    short = harness([user("go"), answer("words " * 900)], previous="a fact. " * 3_000, limit=348)
    assert ESTIMATES.text(short) <= 360
    assert "a fact." in short
