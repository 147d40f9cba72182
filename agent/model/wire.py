"""Makes the body of a request: OpenAI's chat form, with what each provider wants otherwise (`agent.model.quirks`).

Both lanes use it. What comes back is `agent.model.assemble`'s. Messages never change, so the form of each is made once
and kept: a turn costs what is new, and each request begins with the bytes of the one before.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...context.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    ToolCall,
    ToolMessage,
    UserMessage,
    clean,
    text_of,
)
from ...context.tokens import Returned
from .kept import Kept
from .quirks import Profile, vendor_of
from .types import ModelRequest, ToolSchema

Form = dict[str, Any]
"""A JSON object. Forms are shared between requests: whoever changes one copies it first."""

INTERRUPTED = "(interrupted: there is no result)"
NO_OUTPUT = "(no output)"
OF_RESULTS = "Images of the results above:"
BRIDGE = "OK."
"""The short answer between a tool's result and a user's message, where a provider wants one."""

_MARK = {"type": "ephemeral"}
_OPAQUE = frozenset({"data", "encrypted_content", "signature", "thought_signature", "thoughtSignature"})
"""Fields of reasoning that only its provider can read."""
_LABELS = frozenset({"type", "id", "index", "format", "status"})
_OF_CALLS = frozenset({"id", "type", "function"})
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_NINE = re.compile(r"[a-zA-Z0-9]{9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What one message says."""

    form: Form
    images: list[Form]
    """Parts to be shown after the results among which this one stands."""


class Wire:
    """Writes the requests to one model, and keeps the forms of messages and tools between them."""

    def __init__(self, model: str, profile: Profile) -> None:
        """`model` is the name that the provider knows."""
        self._model = model
        self._profile = profile
        self._messages = Kept(self._said)
        self._image: Callable[[Image], bytes | None] | None = None
        self._tools = Kept(_tool)

    def body(self, request: ModelRequest) -> Form:
        """The whole body. Parts of it are shared with other bodies: do not change them."""
        profile = self._profile
        self._image = request.image
        body: Form = {"model": self._model, "messages": self._conversation(request), "stream": True}
        if profile.usage_option:
            body["stream_options"] = {"include_usage": True}
        if tools := self._tools.of(request.tools):
            body["tools"] = _marked_tools(tools) if profile.cache_marks == "litellm" else tools
        if output := request.max_output or profile.default_output:
            body[profile.max_tokens] = output
        thoughtless = profile.needs_thoughts and _goes_on_without_thoughts(body["messages"])
        if request.effort and profile.effort == "reasoning_effort" and not thoughtless:
            body["reasoning_effort"] = request.effort
        elif request.effort and profile.effort == "reasoning":
            body["reasoning"] = {"effort": request.effort}
        if profile.cache_key and request.session:
            body["prompt_cache_key"] = request.session
        return body

    def limit(self, request: ModelRequest) -> int | None:
        """Tokens after which an answer to `request` is cut, as far as is known."""
        return request.max_output or self._profile.default_output or self._profile.most_output

    def returned(self, message: AssistantMessage) -> Returned:
        """What of an answer's reasoning goes out with it, for counting."""
        form = self._message(message)
        texts, opaque = _spoken([form.get(key) for key in (*self._profile.returned, "reasoning_content")])
        for call in form.get("tool_calls", ()):
            _, more = _spoken([value for key, value in call.items() if key not in _OF_CALLS])
            opaque += more
        return Returned(texts=tuple(texts), opaque=opaque)

    def _conversation(self, request: ModelRequest) -> list[Form]:
        """System prompt and messages in an order that every provider takes, with marks where they are used."""
        said = [one for one in self._messages.of(request.messages) if one.form]
        forms = _ordered(said, bridge=self._profile.bridge_user)
        if request.system.strip():
            forms.insert(0, {"role": "system", "content": self._content(clean(request.system))})
        if self._profile.cache_marks != "none":
            for position in _places(forms):
                forms[position] = self._marked(forms[position])
        return forms

    def _content(self, text: str) -> object:
        """A text as content: in one part where marks are used, so that a mark changes nothing else."""
        return [{"type": "text", "text": text}] if self._profile.cache_marks != "none" else text

    def _said(self, message: Message) -> _Said:
        """One message, and the images that a tool's result brought: no provider takes them all in a result."""
        images = [] if isinstance(message, AssistantMessage) else self._images(message)
        form = self._message(message)
        if images and isinstance(message, UserMessage):
            return _Said(form=form | {"content": [*_parts(form["content"]), *images]}, images=[])
        return _Said(form=form, images=images)

    def _images(self, message: UserMessage | ToolMessage) -> list[Form]:
        """The parts that hold a message's images, as far as they are to be shown and still there."""
        image = self._image
        blocks = [block for block in message.content if isinstance(block, Image)] if image else []
        found = [(block.media, data) for block in blocks if image and (data := image(block))]
        urls = (f"data:{media};base64,{base64.b64encode(data).decode()}" for media, data in found)
        return [{"type": "image_url", "image_url": {"url": url}} for url in urls]

    def _message(self, message: Message) -> Form:
        """The form of one message; empty where it says nothing."""
        match message:
            case UserMessage():
                text = clean(text_of(message))
                return {"role": "user", "content": self._content(text)} if text.strip() else {}
            case AssistantMessage():
                return self._answer(message)
            case ToolMessage():
                text = clean(text_of(message))
                plain = self._profile.cache_marks == "litellm"
                content = text if text.strip() else NO_OUTPUT
                return {
                    "role": "tool",
                    "tool_call_id": self._call_id(message.call_id),
                    "content": content if plain else self._content(content),
                }

    def _answer(self, message: AssistantMessage) -> Form:
        text, calls = clean(message.text), _distinct(message.calls) if self._profile.distinct_calls else message.calls
        form: Form = {"role": "assistant"}
        if text.strip():
            form["content"] = text
        elif not calls:
            return {}
        thoughts = _thoughts(message) if vendor_of(message.model) == self._profile.vendor else ()
        data = {key: value for thought in thoughts for key, value in thought.data.items()}
        form |= {key: data[key] for key in self._profile.returned if key in data}
        if calls:
            fields = data.get("calls")
            extra: Mapping[str, Any] = fields if isinstance(fields, dict) else {}
            form["tool_calls"] = [self._call(call, extra.get(call.id)) for call in calls]
            if self._profile.thought:  # a blank one is taken where there was none; a missing one is refused
                form["reasoning_content"] = clean("".join(thought.text for thought in thoughts)) or " "
        return form

    def _call(self, call: ToolCall, extra: object) -> Form:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        name = _UNFIT.sub("_", call.name)[:64] or "unnamed_tool"
        form = {
            "id": self._call_id(call.id),
            "type": "function",
            "function": {"name": name, "arguments": clean(arguments)},
        }
        return form | extra if isinstance(extra, dict) else form

    def _call_id(self, call_id: str) -> str:
        match self._profile.call_ids:
            case "any":
                return call_id
            case "plain":
                fits = len(call_id) <= 40 and not _UNFIT.search(call_id)
                return call_id if fits else f"call_{_digest(call_id)[:24]}"
            case "nine":
                return call_id if _NINE.fullmatch(call_id) else _digest(call_id)[:9]

    def _marked(self, form: Form) -> Form:
        """`form` with a cache mark on its end."""
        if self._profile.cache_marks == "litellm" and isinstance(form["content"], str):
            return form | {"cache_control": _MARK}
        *head, last = _parts(form["content"])
        return form | {"content": [*head, last | {"cache_control": _MARK}]}


class Encoder:
    """Writes bodies as JSON; messages that were written before are not written again."""

    def __init__(self) -> None:
        self._written: Kept[bytes] = Kept(_json)

    def encode(self, body: Form) -> bytes:
        """`body` as UTF-8 JSON, messages last: a longer conversation begins with the bytes of the shorter one."""
        head = _json({key: value for key, value in body.items() if key != "messages"})
        return b'%b,"messages":[%b]}' % (head[:-1], b",".join(self._written.of(body["messages"])))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _spoken(value: object) -> tuple[list[str], int]:
    """The texts in what goes back, and the characters of all that is opaque there."""
    texts: list[str] = []
    opaque = 0
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        key, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(cast(dict[str, object], one).items())
        elif isinstance(one, list):
            waiting.extend((key, item) for item in cast(list[object], one))
        elif isinstance(one, str) and key in _OPAQUE:
            opaque += len(one)
        elif isinstance(one, str) and key not in _LABELS:
            texts.append(one)
    return texts, opaque


def _thoughts(message: AssistantMessage) -> tuple[Reasoning, ...]:
    return tuple(part for part in message.content if isinstance(part, Reasoning))


def _distinct(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The first of calls that are the same; what the others brought is then said in the user's place."""
    return tuple(
        c for at, c in enumerate(calls) if (c.name, c.arguments) not in [(b.name, b.arguments) for b in calls[:at]]
    )


def _tool(schema: ToolSchema) -> Form:
    function = {"name": schema.name, "description": schema.description, "parameters": dict(schema.parameters)}
    return {"type": "function", "function": function}


def _marked_tools(tools: list[Form]) -> list[Form]:
    return [*tools[:-1], tools[-1] | {"cache_control": _MARK}]


def _goes_on_without_thoughts(forms: list[Form]) -> bool:
    """Whether results are to be answered whose calls came without reasoning, as from another model."""
    last = next((form for form in reversed(forms) if form["role"] == "assistant"), None)
    return last is not None and "tool_calls" in last and "thinking_blocks" not in last


def _ordered(said: Iterable[_Said], *, bridge: bool) -> list[Form]:
    """The forms with neighbours of one role merged, each call answered directly, no result without its call."""
    ordered: list[Form] = []
    waiting: dict[str, None] = {}
    images: list[Form] = []
    for one in said:
        form = one.form
        if form["role"] == "tool" and form["tool_call_id"] in waiting:
            del waiting[form["tool_call_id"]]
            ordered.append(form)
            images += one.images
            continue
        _close(ordered, waiting)
        _show(ordered, images, bridge=bridge)
        if form["role"] == "assistant":
            if ordered and ordered[-1]["role"] == "assistant":  # without calls: those were answered
                form = _joined_answers(ordered.pop(), form)
            ordered.append(form)
            waiting = {call["id"]: None for call in form.get("tool_calls", ())}
        else:  # a user's message, or a result whose call has left: what it says is kept
            _add_user(ordered, form["content"], bridge=bridge)
            images += one.images
    _close(ordered, waiting)
    _show(ordered, images, bridge=bridge)
    return ordered


def _joined_answers(first: Form, second: Form) -> Form:
    contents = [form["content"] for form in (first, second) if form.get("content")]
    return second | {"content": contents[0] if len(contents) == 1 else _joined(*contents)}


def _show(ordered: list[Form], images: list[Form], *, bridge: bool) -> None:
    """Says in the user's place what results have brought of images."""
    if images:
        _add_user(ordered, [{"type": "text", "text": OF_RESULTS}, *images], bridge=bridge)
        images.clear()


def _add_user(ordered: list[Form], content: object, *, bridge: bool) -> None:
    last = ordered[-1]["role"] if ordered else ""
    if last == "user":
        content = _joined(ordered.pop()["content"], content)
    elif last == "tool" and bridge:
        ordered.append({"role": "assistant", "content": BRIDGE})
    ordered.append({"role": "user", "content": content})


def _close(ordered: list[Form], waiting: dict[str, None]) -> None:
    """Answers the calls that nobody answered."""
    ordered.extend({"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED} for call_id in waiting)
    waiting.clear()


def _joined(first: object, second: object) -> object:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Form]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _places(forms: list[Form]) -> list[int]:
    """Where marks go: the system prompt, the end, and the end of the request before (all but the newest answer)."""
    system = [0] if forms and forms[0]["role"] == "system" else []
    answers = [i for i, form in enumerate(forms) if form["role"] == "assistant"]
    ends = [len(forms) - 1, answers[-1] - 1 if answers else -1]
    return sorted({*system, *(i for i in ends if i >= 0 and forms[i]["role"] in {"user", "tool"})})
