"""The window's arithmetic, in tokens."""

from __future__ import annotations

import pytest
from deepagent.context.budget import (
    HOSTED_WINDOW,
    LEAST_WINDOW,
    LOCAL_WINDOW,
    Budget,
    ContextSettings,
    Window,
    assumed_window,
    budget_for,
)
from hypothesis import given
from hypothesis import strategies as st


def budget(tokens: int, **settings: float) -> Budget:
    return budget_for(Window(tokens=tokens, source="table"), ContextSettings(**settings))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("window", "limits"),
    [
        (8_000, (1_040, 6_800, 1_740, 1_740, 1_740, 348, 696)),
        (16_000, (2_080, 13_600, 2_000, 3_480, 3_480, 696, 1_392)),
        (32_000, (4_160, 27_200, 2_784, 6_960, 6_960, 1_392, 2_784)),
        (128_000, (16_640, 108_800, 11_136, 27_840, 27_840, 2_000, 11_136)),
        (200_000, (26_000, 170_000, 17_400, 43_500, 43_500, 2_000, 17_400)),
        (1_000_000, (32_000, 850_000, 20_000, 242_000, 50_000, 2_000, 20_000)),
    ],
)
def test_the_limits_of_common_windows(window: int, limits: tuple[int, ...]) -> None:
    made = budget(window)
    reserve, trigger, *others = limits
    assert (made.reserve, made.tokens) == (reserve, window - reserve)
    assert made.trigger == min(trigger, int(0.98 * made.tokens))
    assert [made.result_limit, made.step_limit, made.user_limit, made.summary_limit, made.requests_limit] == others
    assert (made.trim, made.keep, made.head_limit) == (int(0.60 * window), made.tokens // 10, made.tokens // 5)


def test_an_unknown_hosted_window_triggers_at_170_000_and_keeps_six_messages() -> None:
    made = budget_for(assumed_window(local=False), ContextSettings())
    assert (made.window.tokens, made.trigger, made.keep_messages) == (HOSTED_WINDOW, 170_000, 6)
    assert budget_for(assumed_window(local=True), ContextSettings()).window.tokens == LOCAL_WINDOW == 32_000
    assert budget(200_000).keep_messages is None


def test_the_reserve_is_the_longest_answer_where_that_is_less() -> None:
    short = budget_for(Window(tokens=200_000, source="table", max_output=4_096), ContextSettings())
    assert (short.reserve, short.tokens) == (4_096, 195_904)
    input_only = budget_for(
        Window(tokens=200_000, source="table", max_output=64_000, input_only=True), ContextSettings()
    )
    assert (input_only.reserve, input_only.tokens, input_only.trigger) == (0, 200_000, 170_000)


windows = st.builds(
    Window,
    tokens=st.integers(LEAST_WINDOW, 3_000_000),
    source=st.just("table"),
    max_output=st.none() | st.integers(0, 500_000),
    input_only=st.booleans(),
)
settings_made = st.builds(
    ContextSettings, compact_at=st.floats(0.02, 1.0), trim_at=st.floats(0.0, 1.0), keep=st.floats(0.0, 0.8)
)


@given(windows, settings_made)
def test_every_limit_is_positive_and_in_order(window: Window, settings: ContextSettings) -> None:
    made = budget_for(window, settings)
    assert 0 <= made.trim <= made.trigger < made.tokens <= window.tokens
    assert made.trigger > 0
    assert 0 < made.result_limit <= made.step_limit
    assert 0 < made.summary_limit <= made.requests_limit <= made.head_limit
    assert 0 < made.user_limit <= made.step_limit
    assert made.keep < made.tokens


@pytest.mark.parametrize(
    "wrong",
    [
        {"compact_at": 0.0},
        {"compact_at": 1.2},
        {"trim_at": -0.1},
        {"keep": 0.9},
        {"window": 999},
        {"keep": float("nan")},
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ContextSettings(**wrong)  # pyright: ignore[reportArgumentType]
