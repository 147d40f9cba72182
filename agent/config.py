"""The settings of a run: a frozen tree, handed in, never read globally.

Where values come from (files, environment, flags) and which wins is the business of `cli.settings`. The keys are those
of `deepagent.toml`, joined with dots here: `context.compact_at`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_type_hints

from pydantic import Field

from ..context.budget import ContextSettings
from .errors import ConfigError
from .small_files import expand

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Lane = Literal["auto", "lean", "litellm"]
PermissionMode = Literal["default", "accept-edits", "plan", "yolo"]
SandboxMode = Literal["auto", "off", "strict"]
Notify = Literal["off", "bell", "osc9", "both"]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(gt=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """How models are reached."""

    lane: Lane = "auto"
    """Our own small client where it can serve the model (`lean`), litellm for all others; `auto` chooses."""
    images: bool | None = None
    """The model is shown images; where not given, if it is known to see them."""
    retries: Annotated[int, Field(ge=0, le=20)] = 5
    """Attempts after the first, for errors that may pass by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionSettings:
    """What may run without being asked about. Deny beats ask beats allow."""

    mode: PermissionMode = "default"
    """`default` asks before changes and commands, `accept-edits` before commands, `plan` changes nothing, `yolo` asks
    nothing."""
    allow: tuple[str, ...] = ()
    """Rules for what is not asked about: `tool` or `tool(pattern)`."""
    ask: tuple[str, ...] = ()
    """Rules for what is asked about, whatever the mode allows."""
    deny: tuple[str, ...] = ()
    """Rules for what is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """What shell commands may reach."""

    mode: SandboxMode = "auto"
    """`auto` confines commands where the system can, `strict` runs none where it cannot, `off` confines none."""
    network: bool = False
    """Confined commands may use the network."""
    writable: tuple[str, ...] = ()
    """Further folders that confined commands may write."""
    hidden: tuple[str, ...] = ()
    """Further files and folders that confined commands cannot read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Where a run stops by itself. None sets no limit."""

    max_turns: _Count | None = None
    """Model calls."""
    max_tokens: _Count | None = None
    """Tokens sent and received, all calls together."""
    max_cost: _Positive | None = None
    """US dollars."""
    timeout: _Positive | None = None
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentSettings:
    """Handing work on to sub-agents."""

    enabled: bool = True
    """The model has the tool `task`."""
    at_once: Annotated[int, Field(ge=1, le=16)] = 4
    """How many tasks run at the same time at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UiSettings:
    """The screen."""

    notify: Notify = "bell"
    """How the terminal calls when it is not looked at and a question waits, or a long run has ended: a bell, a
    notification of the terminal's own (`osc9`), both, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """What is added to the system prompt."""

    append: str = ""
    """Text at the head of the prompt, before our own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set."""

    model: str | None = None
    """The model that works: a litellm name such as `openai/gpt-5`, `scripted:FILE`, or `demo`."""
    summary_model: str | None = None
    """The model that writes summaries; the working one where not given."""
    summary_prompt: str | None = None
    """A file with what a summary is to hold, in place of our own words."""
    effort: str | None = None
    """How hard the model thinks, in the provider's words; its own choice where not given."""
    memory: tuple[str, ...] = ()
    """Further files that are always in the prompt, beside AGENTS.md."""
    keep_days: _Count | None = None
    """Days after which a session that nothing refers to is removed; kept for ever where not given."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables whose values are masked, beside the provider keys."""
    provider: ProviderSettings = field(default_factory=ProviderSettings)
    """How models are reached."""
    context: ContextSettings = field(default_factory=ContextSettings)
    """When the context is made smaller."""
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    """What may run without being asked about."""
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    """What shell commands may reach."""
    limits: LimitSettings = field(default_factory=LimitSettings)
    """Where a run stops by itself."""
    subagents: SubagentSettings = field(default_factory=SubagentSettings)
    """Handing work on to sub-agents."""
    ui: UiSettings = field(default_factory=UiSettings)
    """The screen."""
    prompt: PromptSettings = field(default_factory=PromptSettings)
    """What is added to the system prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProblem:
    """What is wrong with one value."""

    key: str
    reason: str


def user_folder(environ: Mapping[str, str]) -> Path:
    """The user's own folder: `$DEEPAGENT_HOME`, else `~/.deepagents`; absolute."""
    named = environ.get("DEEPAGENT_HOME")
    return expand(named).absolute() if named else Path(environ.get("HOME") or Path.home()) / ".deepagents"


def flatten(settings: object) -> dict[str, object]:
    """All values by their keys, in the order of the tree: `{"model": None, …, "context.compact_at": 0.85, …}`."""
    flat: dict[str, object] = {}
    for name in _names(type(settings)):
        value = getattr(settings, name)
        if is_dataclass(value):
            flat.update({f"{name}.{key}": inner for key, inner in flatten(value).items()})
        else:
            flat[name] = value
    return flat


def nest(flat: Mapping[str, object]) -> dict[str, object]:
    """The tree of `flat`'s keys, as a TOML file has it. No key may be the beginning of another."""
    tree: dict[str, object] = {}
    for key, value in flat.items():
        *sections, name = key.split(".")
        section = tree
        for part in sections:
            section = cast(dict[str, object], section.setdefault(part, {}))
        section[name] = value
    return tree


def find_problems(data: Mapping[str, object]) -> tuple[KeyProblem, ...]:
    """What is wrong with the tree `data`: keys that do not exist, with the nearest one that does, and wrong values."""
    return (*_unknown(data, Settings, ""), *_wrong(data))


def settings_from(data: Mapping[str, object]) -> Settings:
    """The settings with the values of the tree `data`, else the defaults. Raises `ConfigError` that names the keys."""
    problems = find_problems(data)
    if problems:
        raise ConfigError("\n".join(f"{problem.key}: {problem.reason}" for problem in problems))
    return _adapter().validate_python(data)


@cache
def _adapter() -> TypeAdapter[Settings]:
    """Made at first use: it costs milliseconds that `--help` need not spend."""
    from pydantic import TypeAdapter

    return TypeAdapter(Settings)


def _names(section: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cast(Any, section)))


def _unknown(data: Mapping[str, object], section: type, prefix: str) -> Iterator[KeyProblem]:
    hints = get_type_hints(section)
    for name, value in data.items():
        hint = hints.get(name)
        if hint is None:
            yield KeyProblem(key=prefix + name, reason=_suggest(prefix + name))
        elif isinstance(hint, type) and is_dataclass(hint):
            if isinstance(value, Mapping):
                yield from _unknown(cast(Mapping[str, object], value), hint, f"{prefix}{name}.")
        elif isinstance(value, bool) and bool not in (hint, *get_args(hint)):  # pydantic takes true for 1
            yield KeyProblem(key=prefix + name, reason="must not be true or false")


def _suggest(key: str) -> str:
    """Says that `key` is unknown, and which known key is nearest: as written, else by its last part."""
    from difflib import get_close_matches

    known = list(flatten(Settings()))
    near = get_close_matches(key, known, n=1, cutoff=0.7)
    if not near:
        by_name = {k.rpartition(".")[2]: k for k in known}
        near = [by_name[n] for n in get_close_matches(key.rpartition(".")[2], list(by_name), n=1, cutoff=0.75)]
    return f"is no setting; did you mean {near[0]}?" if near else "is no setting"


def _wrong(data: Mapping[str, object]) -> Iterator[KeyProblem]:
    from pydantic import ValidationError

    try:
        _adapter().validate_python(data)
    except ValidationError as error:
        for found in error.errors(include_url=False, include_input=False):
            key = ".".join(str(part) for part in found["loc"])
            yield _explained(key, found["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, "))


def _explained(key: str, reason: str) -> KeyProblem:
    """A section's own check names the field first: that is the key to point at."""
    name, _, rest = reason.partition(" ")
    if f"{key}.{name}" in flatten(Settings()):
        return KeyProblem(key=f"{key}.{name}", reason=rest)
    return KeyProblem(key=key, reason=reason[:1].lower() + reason[1:])
