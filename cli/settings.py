"""Puts the settings together from their layers, and remembers where each value came from.

defaults < user < project < project local < environment < flags; of the lists each layer adds to the ones below. What
the settings mean is the business of `agent.config`; whether a project's files may take effect, of `cli.trust`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from ..agent.config import Settings, find_problems, flatten, nest, settings_from
from ..agent.errors import ConfigError
from ..agent.small_files import expand, parse_toml
from ..agent.workspace import Workspace
from .trust import PROJECT_FILES, is_own, is_trusted, project_files, read_settings

FILE = "deepagent.toml"
LayerName = Literal["default", "user", "project", "project local", "environment", "flag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value came from."""

    layer: LayerName
    where: str = ""
    """`FILE:LINE`, the variable's name, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings of this run, and how they came about."""

    settings: Settings
    origins: Mapping[str, tuple[Origin, ...]]
    """By key, such as `context.compact_at`: one origin; of a list those of every layer that added to it."""
    trusted: bool
    """The project's files may take effect, for this run (`--trust`) or by an earlier decision."""
    ignored: tuple[Path, ...] = ()
    """Files of the project that were not applied, for lack of trust: if any, there is something to ask the user."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    name: LayerName
    values: Mapping[str, object]
    where: Mapping[str, str]
    """By key, as in `Origin.where`."""


_PATHS = ("memory", "sandbox.writable", "sandbox.hidden")
"""Settings that are lists of paths."""


def load_settings(
    workspace: Workspace, *, environ: Mapping[str, str], flags: Mapping[str, object], trust: bool = False
) -> LoadedSettings:
    """The settings of a run in `workspace`.

    `flags` are by key (`context.compact_at`), None where not given. `trust` trusts the project for this run. Raises
    `ConfigError` that names file, line and key of everything that is wrong.
    """
    files, notices = _project(workspace, trust)
    trusted = trust or is_trusted(workspace, files)
    layers = [_file_layer("user", workspace.user / FILE, read_settings(workspace.user / FILE), workspace.user)]
    applied = files if trusted or is_own(workspace, files) else {}
    for path, data in applied.items():
        layers.append(_file_layer(_project_name(path), path, data, workspace.root))
    layers.append(_environment_layer(environ, workspace.root))
    layers.append(_flag_layer(flags, workspace.root))
    values, origins = _merge(layers)
    ignored = tuple(path for path in files if path not in applied)
    return LoadedSettings(
        settings=settings_from(nest(values)),
        origins=origins,
        trusted=trusted,
        ignored=ignored,
        notices=(*notices, *_ignored_notice(ignored, workspace), *_misspelt(environ)),
    )


def variable_name(key: str) -> str:
    """The environment variable of a setting: `DEEPAGENT_CONTEXT_COMPACT_AT` for `context.compact_at`."""
    return "DEEPAGENT_" + key.upper().replace(".", "_")


def _project(workspace: Workspace, trust: bool) -> tuple[dict[Path, bytes], tuple[str, ...]]:
    """The project's files. What cannot be read is an error only where it was meant to take effect."""
    try:
        return project_files(workspace), ()
    except ConfigError as error:
        if trust:
            raise
        return {}, (f"{error}; the project's settings were not applied",)


def _project_name(path: Path) -> LayerName:
    return "project local" if path.name == PROJECT_FILES[-1] else "project"


def _ignored_notice(ignored: tuple[Path, ...], workspace: Workspace) -> tuple[str, ...]:
    if not ignored:
        return ()
    names = ", ".join(str(path.relative_to(workspace.root)) for path in ignored)
    return (f"this folder is not trusted: {names} was not applied (/trust shows and decides, --trust is for one run)",)


def _file_layer(name: LayerName, path: Path, data: bytes | None, base: Path) -> _Layer:
    """The values of a TOML file. Relative paths in it are relative to `base`."""
    if data is None:
        return _Layer(name=name, values={}, where={})
    tree = parse_toml(data, path)
    lines = data.decode("utf-8-sig").splitlines()
    problems = find_problems(tree)
    if problems:
        found = (f"{path}:{_line_of(p.key, lines)}: {p.key}: {p.reason}" for p in problems)
        raise ConfigError("\n".join(found))
    values = _leaves(tree)
    return _Layer(name=name, values=_rooted(values, base), where={k: f"{path}:{_line_of(k, lines)}" for k in values})


def _environment_layer(environ: Mapping[str, str], base: Path) -> _Layer:
    values: dict[str, object] = {}
    where: dict[str, str] = {}
    for key, default in flatten(Settings()).items():
        name = variable_name(key)
        if environ.get(name):
            values[key] = _parsed(environ[name], name) if isinstance(default, tuple) else environ[name]
            where[key] = name
    _check(values, where)
    return _Layer(name="environment", values=_rooted(values, base), where=where)


def _flag_layer(flags: Mapping[str, object], base: Path) -> _Layer:
    values = {key: value for key, value in flags.items() if value is not None}
    _check(values, dict.fromkeys(values, "command line"))
    return _Layer(name="flag", values=_rooted(values, base), where={})


def _check(values: Mapping[str, object], where: Mapping[str, str]) -> None:
    problems = find_problems(nest(values))
    if problems:
        raise ConfigError("\n".join(f"{_where(p.key, where)}: {p.key}: {p.reason}" for p in problems))


def _where(key: str, where: Mapping[str, str]) -> str:
    """Where `key` was set, or what it belongs to: the item of a list, or the section of a value."""
    related = (found for k, found in where.items() if f"{key}.".startswith(f"{k}.") or k.startswith(f"{key}."))
    return next(related, "?")


def _parsed(text: str, name: str) -> tuple[str, ...]:
    """A list from a variable: a TOML array, or one item."""
    if not text.lstrip().startswith("["):
        return (text,)
    items = parse_toml(f"items = {text}".encode(), Path(name))["items"]
    return tuple(cast(list[str], items))


def _merge(layers: Iterable[_Layer]) -> tuple[dict[str, object], dict[str, tuple[Origin, ...]]]:
    values = flatten(Settings())
    origins: dict[str, tuple[Origin, ...]] = {key: (Origin(layer="default"),) for key in values}
    for layer in layers:
        for key, value in layer.values.items():
            origin = Origin(layer=layer.name, where=layer.where.get(key, ""))
            below = values[key]
            if isinstance(below, tuple):
                added = (*cast(tuple[str, ...], below), *cast(Iterable[str], value))
                values[key] = tuple(dict.fromkeys(added))
                origins[key] = (*(origins[key] if below else ()), origin)
            else:
                values[key] = value
                origins[key] = (origin,)
    return values, origins


def _leaves(tree: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat.update(_leaves(cast(dict[str, object], value), f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _rooted(values: Mapping[str, object], base: Path) -> dict[str, object]:
    """`values` with its paths absolute: they are relative to where they were written."""
    paths = {key: cast(Iterable[str], values[key]) for key in _PATHS if key in values}
    return {**values, **{key: tuple(os.path.normpath(base / expand(path)) for path in paths[key]) for key in paths}}


def _line_of(key: str, lines: list[str]) -> int:
    """The line (from 1) of a TOML text that sets `key`, or the nearest thing above it: its table, else line 1."""
    table, best, line = "", 0, 1
    for number, text in enumerate(lines, 1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", text):
            table, path = header[1] + ".", header[1]
        elif assigned := re.match(r"""\s*([\w."'-]+(?:\s*\.\s*[\w"'-]+)*)\s*=""", text):
            path = table + assigned[1]
        else:
            continue
        path = re.sub(r"[\s\"']", "", path)
        if len(path) > best and f"{key}.".startswith(f"{path}."):
            best, line = len(path), number
    return line


def _misspelt(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Notices about variables that look like a setting's and are none."""
    from difflib import get_close_matches

    known = [variable_name(key) for key in flatten(Settings())]
    strange = sorted(n for n in environ if n.startswith("DEEPAGENT_") and n not in (*known, "DEEPAGENT_HOME"))
    near = {name: get_close_matches(name, known, n=1, cutoff=0.88) for name in strange}
    return tuple(f"{name} is no setting; did you mean {match[0]}?" for name, match in near.items() if match)
