"""The model that a key stands for, and what a newcomer is told."""

from __future__ import annotations

import pytest
from deepagent.agent.model.catalog import model_info
from deepagent.agent.model.choose import open_model
from deepagent.cli.first_steps import DEFAULTS, default_model, first_steps


@pytest.mark.parametrize(("variable", "model"), DEFAULTS)
def test_each_default_is_known_with_window_and_price_and_opens(variable: str, model: str) -> None:
    info = model_info(model)
    assert info is not None
    assert info.max_input
    assert info.prices
    assert open_model(model, keys={variable: "sk-0123456789"}.get, environ={}).name == model


def test_the_first_key_that_is_there_decides() -> None:
    assert default_model({"OPENAI_API_KEY": "x", "GROQ_API_KEY": "y"}) == "openai/gpt-5.2"
    assert default_model({"PATH"}) is None


async def test_what_a_newcomer_can_do() -> None:
    text = await first_steps()
    for word in ("OPENAI_API_KEY", "deepagent auth set", "deepagent demo"):
        assert word in text
