"""Masking: known values go, everything else stays, and nothing masked is masked again."""

from __future__ import annotations

import time

from deepagent.agent.secrets import Masker, secret_values
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

KEY = "sk-test-0123456789"


def test_values_become_names() -> None:
    masker = Masker({"OPENAI_API_KEY": KEY, "TOKEN": "abcdefgh"})
    assert masker.mask(f"key={KEY}; {KEY}\ntoken abcdefgh.") == (
        "key=[secret OPENAI_API_KEY]; [secret OPENAI_API_KEY]\ntoken [secret TOKEN]."
    )


def test_text_without_secrets_is_the_same_object() -> None:
    text = "nothing here"
    assert Masker({"A": KEY}).mask(text) is text


def test_short_values_are_left_alone() -> None:
    assert Masker({"A": "1234567", "B": "", "C": " 1234567 "}).mask("1234567") == "1234567"


def test_the_longest_value_wins() -> None:
    masker = Masker({"SHORT": "secret-value", "LONG": "secret-value-and-more"})
    assert masker.mask("secret-value-and-more secret-value") == "[secret LONG] [secret SHORT]"


def test_values_are_no_patterns() -> None:
    masker = Masker({"A": "a.c(d)*[e]\\1"})
    assert masker.mask("aXc(d)*[e]\\1 a.c(d)*[e]\\1") == "aXc(d)*[e]\\1 [secret A]"


def test_blanks_around_a_value_do_not_hide_it() -> None:
    assert Masker({"A": f"{KEY}\n"}).mask(f"x{KEY}y") == "x[secret A]y"


def test_a_value_that_is_a_name_does_not_eat_the_marks() -> None:
    masker = Masker({"OPENAI_API_KEY": KEY, "POINTER": "OPENAI_API_KEY"})
    once = masker.mask(KEY)
    assert once == masker.mask(once) == "[secret OPENAI_API_KEY]"


@given(
    st.dictionaries(st.sampled_from(["A", "B", "C"]), st.text("abcXYZ-", min_size=1, max_size=14)),
    st.text("abcXYZ- ", max_size=60),
    st.data(),
)
def test_no_value_survives_and_masking_twice_changes_nothing(
    values: dict[str, str], text: str, data: st.DataObject
) -> None:
    for value in values.values():
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + value + text[at:]
    masker = Masker(values)
    masked = masker.mask(text)
    assert not any(len(v) >= 8 and v in masked for v in values.values())
    assert masker.mask(masked) == masked


def test_arguments_of_calls() -> None:
    masker = Masker({"A": KEY})
    value: JsonValue = {"command": f"curl -H {KEY}", "list": [KEY, 1, None, True, {KEY: 2.5}]}
    assert masker.mask_json(value) == {
        "command": "curl -H [secret A]",
        "list": ["[secret A]", 1, None, True, {"[secret A]": 2.5}],
    }


def test_writing_a_mark_can_be_noticed() -> None:
    masker = Masker({"OPENAI_API_KEY": KEY})
    assert masker.marked("OPENAI_API_KEY=[secret OPENAI_API_KEY]\n") == "[secret OPENAI_API_KEY]"
    assert masker.marked("documentation about [secret NAME]") is None


def test_which_values_are_known() -> None:
    environ = {
        "OPENAI_API_KEY": "from-env",
        "AWS_SECRET_ACCESS_KEY": "aws",
        "MY_TOKEN": "mine",
        "OTHER_TOKEN": "not named",
        "EMPTY_API_KEY": "",
        "PATH": "/bin",
    }
    assert secret_values(environ, {"GROQ_API_KEY": "stored"}, ("MY_TOKEN", "GONE")) == {
        "GROQ_API_KEY": "stored",
        "OPENAI_API_KEY": "from-env",
        "AWS_SECRET_ACCESS_KEY": "aws",
        "MY_TOKEN": "mine",
    }


def test_a_replaced_stored_key_is_still_masked() -> None:
    values = secret_values({"OPENAI_API_KEY": "key-of-the-environment"}, {"OPENAI_API_KEY": "key-that-is-stored"}, ())
    masked = Masker(values).mask("key-of-the-environment key-that-is-stored")
    assert "key-of" not in masked
    assert "key-that" not in masked


def test_no_value_in_a_repr() -> None:
    assert KEY not in repr(Masker({"A": KEY}))


def test_large_texts_are_masked_fast() -> None:
    masker = Masker({f"K{n}": f"secret-value-number-{n}" for n in range(20)})
    text = "an ordinary line of a log file\n" * 300_000
    start = time.perf_counter()
    assert masker.mask(text + "secret-value-number-7").endswith("[secret K7]")
    assert time.perf_counter() - start < 2
