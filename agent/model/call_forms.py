"""The forms in which models write calls as text, by family, as data; `agent.model.written_calls` looks for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .call_readers import Reader, pairs, read_arguments, read_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one family of models marks its calls."""

    begin: re.Pattern[str]
    """Stands before each call; the group `name`, if there is one, is its name."""
    read: Reader
    end: re.Pattern[str]
    """Stands behind each call."""
    opening: re.Pattern[str] | None = None
    """Stands before the first call."""
    closing: re.Pattern[str] | None = None
    """Stands behind the last call; an answer that ends before it is whole."""


def _form(begin: str, read: Reader, end: str = r"", *, opening: str | None = None, closing: str | None = None) -> Form:
    return Form(
        begin=re.compile(begin),
        read=read,
        end=re.compile(end),
        opening=re.compile(opening) if opening else None,
        closing=re.compile(closing) if closing else None,
    )


_NAME = r"(?P<name>[\w.:-]+)"
_LINES = r"\n?(?P<value>.*?)\n?"
"""A value on lines of its own, or on none."""


def _deepseek(before: str, between: str, behind: str) -> Form:
    """V3 and R1 fence the arguments, V3.1 does not."""
    return _form(
        rf"<｜tool▁call▁begin｜>{before}{_NAME}{between}",
        read_arguments,
        rf"{behind}<｜tool▁call▁end｜>\s*",
        opening=r"<｜tool▁calls▁begin｜>\s*",
        closing=r"<｜tool▁calls▁end｜>",
    )


def _invoke(section: str, mark: str = "") -> Form:
    """Tags that name the tool and each argument: Claude's, MiniMax', DeepSeek V3.2's."""
    return _form(
        rf'<{mark}invoke name="(?P<name>[\w.:-]+)">\s*',
        pairs(rf'<{mark}parameter name="(?P<key>[\w.-]+)"[^>\n]*>{_LINES}</{mark}parameter>\s*'),
        rf"</{mark}invoke>\s*",
        opening=rf"<{mark}{section}>\s*",
        closing=rf"</{mark}{section}>",
    )


def _gemma(begin: str, end: str, quote: str) -> Form:
    """Gemma 4 and FunctionGemma."""
    pair = rf"(?P<key>\w+):(?:{quote}(?P<value>.*?){quote}|(?P<plain>[\w.+-]+))(?:,\s*|(?=\}}))"
    return _form(rf"<{begin}>call:{_NAME}\{{", pairs(pair), rf"\}}<{end}>\s*")


FORMS = (
    # Hermes, Qwen 2.5 and 3; Granite, Phi 4
    _form(r"<tool_call>\s*", read_calls, r"\s*(?:</tool_call>|\Z)"),
    _form(r"<\|tool_call\|>\s*", read_calls, r"\s*(?:<\|/tool_call\|>|\Z)"),
    # Mistral, the older and the newer form
    _form(r"\[TOOL_CALLS\]\s*", read_calls),
    _form(r"\[TOOL_CALLS\]\s*(?P<name>[\w.:-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*", read_arguments),
    # Llama 3
    _form(r"(?:<\|python_tag\|>|;)\s*", read_calls, r"\s*(?=;|\Z)"),
    _form(r"<function=(?P<name>[\w.:-]+)>\s*", read_arguments, r"\s*(?:</function>|\Z)"),
    # Qwen 3 Coder
    _form(
        r"(?:<tool_call>\s*)?<function=(?P<name>[\w.:-]+)>\s*",
        pairs(rf"<parameter=(?P<key>[\w.-]+)>{_LINES}</parameter>\s*"),
        r"</function>\s*(?:</tool_call>)?",
    ),
    # GLM 4.5
    _form(
        rf"<tool_call>\s*{_NAME}\s*",
        pairs(r"<arg_key>(?P<key>[\w.-]+)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>\s*"),
        r"</tool_call>",
    ),
    _deepseek(r"function<｜tool▁sep｜>", r"\s*```json\s*", r"\s*```\s*"),
    _deepseek(r"", r"<｜tool▁sep｜>\s*", r"\s*"),
    # Kimi K2
    _form(
        rf"<\|tool_call_begin\|>\s*{_NAME}\s*<\|tool_call_argument_begin\|>\s*",
        read_arguments,
        r"\s*<\|tool_call_end\|>\s*",
        opening=r"<\|tool_calls_section_begin\|>\s*",
        closing=r"<\|tool_calls_section_end\|>",
    ),
    _invoke("function_calls"),
    _invoke("minimax:tool_call"),
    _invoke("function_calls", mark="｜DSML｜"),
    # gpt-oss
    _form(
        rf"<\|channel\|>commentary to={_NAME}\s*(?:<\|constrain\|>\s*json\s*)?<\|message\|>\s*",
        read_arguments,
        r"\s*(?:<\|call\|>|\Z)",
    ),
    _gemma(r"\|tool_call", r"tool_call\|", r'<\|"\|>'),
    _gemma(r"start_function_call", r"end_function_call", r"<escape>"),
)
MARK = re.compile(
    r"(?P<tag><tool_call>|<function=|<function_calls>|<minimax:tool_call>)|\[TOOL_CALLS\]|<start_function_call>"
    r"|<\|(?:tool_call\|?|python_tag\||tool_calls_section_begin\|)>|<\|channel\|>commentary to="
    r"|<｜tool▁calls▁begin｜>|<｜DSML｜function_calls>"
)
"""What the calls of each form begin with. A `tag` may stand at the beginning of a line only: people write tags too."""
