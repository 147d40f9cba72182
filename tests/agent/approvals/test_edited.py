"""What the model is told of a call that a person changed."""

from __future__ import annotations

from deepagent.agent.approvals.edited import changes


def test_each_argument_that_is_not_the_same() -> None:
    before = {"a": 1, "b": "x", "c": True, "same": 3}
    after = {"b": "y", "c": None, "d": "new\n", "same": 3}
    assert changes(before, after).splitlines() == [
        "a: left out",
        'b: "y" instead of "x"',
        "c: null instead of true",
        'd: now "new\\n"',
    ]


def test_long_texts_as_a_diff_that_has_an_end() -> None:
    lines = [f"line {number}" for number in range(2_000)]
    told = changes({"content": "\n".join(lines)}, {"content": "\n".join([*lines[:5], "other", *lines[6:]])})
    assert "-line 5\n+other" in told
    assert len(told) < 200
    everything = changes({"content": "a\n" * 5_000}, {"content": "b\n" * 5_000})
    assert len(everything) < 4_100
    assert everything.endswith("more characters)")
