"""Usage of every provider in one form, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from deepagent.agent.model.prices import Prices, cost, prices_in
from deepagent.agent.model.usage import cost_of, merged, usage_of
from deepagent.context.entries import Usage
from hypothesis import given
from hypothesis import strategies as st

OPENAI = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}
ANTHROPIC = {"input_tokens": 40, "output_tokens": 20, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10}
GEMINI = {"promptTokenCount": 100, "candidatesTokenCount": 15, "thoughtsTokenCount": 5, "cachedContentTokenCount": 60}
XAI = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 120}


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (OPENAI, Usage(input=100, output=20, cache_read=60)),
        (ANTHROPIC, Usage(input=110, output=20, cache_read=60, cache_write=10)),
        (GEMINI, Usage(input=100, output=20, cache_read=60)),
        (XAI | {"completion_tokens_details": {"reasoning_tokens": 15}}, Usage(input=100, output=20)),
        (OPENAI | {"completion_tokens_details": {"reasoning_tokens": 15}}, Usage(input=100, output=20, cache_read=60)),
        (
            {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 60}},
            Usage(input=100, output=20, cache_read=60),
        ),
        (
            {"prompt_tokens": 110, "completion_tokens": 20} | {k: ANTHROPIC[k] for k in ANTHROPIC if "cache" in k},
            Usage(input=110, output=20, cache_read=60, cache_write=10),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "cache_read_input_tokens": 60},
            Usage(input=65, output=2, cache_read=60),
        ),
        (
            {"prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
            Usage(input=100, output=0, cache_read=60),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 4}, Usage(input=9, output=1, cache_read=4)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(input=9, output=0)),
        ({"prompt_tokens": 9.0, "completion_tokens": None}, Usage(input=9, output=0)),
        ({"prompt_tokens": -3, "completion_tokens": 7}, Usage(input=0, output=7)),
        ({}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": "many"}, None),
    ],
)  # fmt: skip
def test_usage(raw: dict[str, Any], usage: Usage | None) -> None:
    assert usage_of(raw) == usage


@given(
    st.dictionaries(
        st.sampled_from([*OPENAI, *ANTHROPIC, *GEMINI, "total_tokens"]), st.none() | st.integers() | st.text()
    )
)
def test_no_report_raises(raw: dict[str, Any]) -> None:
    usage = usage_of(raw)
    assert usage is None or usage.input >= usage.cache_read + usage.cache_write


def test_usage_in_two_events() -> None:
    start = {"prompt_tokens": 100, "completion_tokens": 1}
    assert merged(start, {"completion_tokens": 20, "prompt_tokens": 0}) == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
    }


@pytest.mark.parametrize(
    ("raw", "dollars"),
    [
        ({"cost": 0.25}, 0.25),
        ({"cost": 0}, 0.0),
        ({"cost": {"total_cost": 0.5, "input": 0.1}}, 0.5),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, 0.21),
        ({"cost": 0.01, "cost_details": {"upstream_inference_cost": 0.2}}, 0.01),
        ({"cost": "free"}, None),
        ({}, None),
    ],
)
def test_cost_that_the_provider_names(raw: dict[str, Any], dollars: float | None) -> None:
    assert cost_of(raw) == (dollars if dollars is None else pytest.approx(dollars))


ROW = {
    "input_cost_per_token": 1e-6,
    "output_cost_per_token": 10e-6,
    "cache_read_input_token_cost": 0.1e-6,
    "cache_creation_input_token_cost": 1.25e-6,
}


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(input=1_000_000, output=0), 1.0),
        (Usage(input=1_000_000, output=100_000), 2.0),
        (Usage(input=1_000_000, output=0, cache_read=1_000_000), 0.1),
        (Usage(input=1_000_000, output=0, cache_write=1_000_000), 1.25),
        (Usage(input=1_000_000, output=0, cache_read=500_000, cache_write=200_000), 0.3 + 0.05 + 0.25),
        (Usage(input=0, output=0), 0.0),
    ],
)
def test_cost(usage: Usage, dollars: float) -> None:
    assert cost(prices_in(ROW), usage) == pytest.approx(dollars)


def test_large_requests_have_their_own_price() -> None:
    row = ROW | {"input_cost_per_token_above_200k_tokens": 2e-6, "output_cost_per_token_above_200k_tokens": 20e-6}
    prices = prices_in(row)
    assert [step.above for step in prices] == [0, 200_000]
    assert cost(prices, Usage(input=200_000, output=0)) == pytest.approx(0.2)
    assert cost(prices, Usage(input=300_000, output=0)) == pytest.approx(0.6)


def test_prices_in_ranges() -> None:
    tiers = [
        {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "range": [0, 32_000.0]},
        {"input_cost_per_token": 3e-6, "output_cost_per_token": 6e-6, "range": [32_000.0, 256_000.0]},
    ]
    prices = prices_in({"tiered_pricing": tiers})
    assert [(step.above, step.input) for step in prices] == [(0, 1e-6), (32_000, 3e-6)]
    assert cost(prices, Usage(input=40_000, output=0)) == pytest.approx(0.12)


NO_PRICES: list[dict[str, Any]] = [
    {},
    {"input_cost_per_token": 1e-6},
    {"output_cost_per_token": 1e-6},
    {"input_cost_per_token": "0.1", "output_cost_per_token": 1e-6},
    {"input_cost_per_token": -1.0, "output_cost_per_token": 1e-6},
    {"input_cost_per_token": float("nan"), "output_cost_per_token": 1e-6},
    {"tiered_pricing": "none", "input_cost_per_token": None},
    {"tiered_pricing": [{"range": []}, 3, {"range": [1_000, 2_000], "input_cost_per_token": 1.0}]},
]


@pytest.mark.parametrize("row", NO_PRICES)
def test_unknown_prices(row: dict[str, Any]) -> None:
    assert prices_in(row) == ()
    assert cost((), Usage(input=5, output=5)) is None


def test_what_a_row_does_not_tell_costs_as_input() -> None:
    row = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "cache_creation_input_token_cost": 0.0}
    assert prices_in(row) == (Prices(above=0, input=1e-6, output=2e-6, cache_read=1e-6, cache_write=1e-6),)
