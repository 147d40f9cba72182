"""Stored keys: private on disk, found by provider or variable, never shown."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from deepagent.agent.credentials import (
    PROVIDERS,
    get_key,
    list_keys,
    load_credentials,
    remove_key,
    set_key,
    variable_for,
)
from deepagent.agent.errors import ConfigError
from deepagent.agent.small_files import parse_toml, read_small, write_private

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def user(isolated: Path) -> Path:
    return isolated / ".deepagents"


def test_set_get_list_remove(user: Path) -> None:
    assert set_key(user, "openai", f" {KEY}\n") == "OPENAI_API_KEY"
    assert set_key(user, "anthropic", "other-key-9999") == "ANTHROPIC_API_KEY"
    assert get_key(user, "openai", {}) == get_key(user, "OPENAI_API_KEY", {}) == KEY
    assert get_key(user, "mistral", {}) is None
    assert [(k.name, k.hint) for k in list_keys(user)] == [("ANTHROPIC_API_KEY", "…999"), ("OPENAI_API_KEY", "…cdef")]
    assert remove_key(user, "openai")
    assert not remove_key(user, "openai")
    assert get_key(user, "openai", {}) is None
    assert get_key(user, "anthropic", {}) == "other-key-9999"


def test_the_environment_goes_first(user: Path) -> None:
    set_key(user, "openai", KEY)
    assert get_key(user, "openai", {"OPENAI_API_KEY": "from-outside"}) == "from-outside"
    assert get_key(user, "openai", {"OPENAI_API_KEY": ""}) == KEY


def test_the_file_is_private_from_its_first_byte(user: Path) -> None:
    before = os.umask(0)
    try:
        set_key(user, "openai", KEY)
    finally:
        os.umask(before)
    file = user / "credentials.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert user.stat().st_mode & 0o777 == 0o700
    assert tomllib.loads(file.read_text()) == {"keys": {"OPENAI_API_KEY": KEY}}
    assert [p.name for p in user.iterdir()] == ["credentials.toml"]


def test_wide_rights_are_narrowed_and_said(user: Path) -> None:
    set_key(user, "openai", KEY)
    (user / "credentials.toml").chmod(0o644)
    loaded = load_credentials(user)
    assert loaded.keys == {"OPENAI_API_KEY": KEY}
    assert "mode 644" in loaded.notices[0]
    assert (user / "credentials.toml").stat().st_mode & 0o777 == 0o600
    assert load_credentials(user).notices == ()


def test_a_linked_file_stays_a_link(user: Path, isolated: Path) -> None:
    user.mkdir()
    (isolated / "vault.toml").write_text("")
    (user / "credentials.toml").symlink_to(isolated / "vault.toml")
    set_key(user, "openai", KEY)
    assert (user / "credentials.toml").is_symlink()
    assert KEY in (isolated / "vault.toml").read_text()


def test_no_key_is_ever_shown(user: Path) -> None:
    set_key(user, "openai", KEY)
    set_key(user, "groq", "abc")
    assert KEY not in repr(load_credentials(user))
    assert KEY not in str(list_keys(user))
    assert [k.hint for k in list_keys(user)] == ["…", "…cdef"]


@pytest.mark.parametrize("key", ["", "  ", "two words", "line\nbreak", "käse-key-1234", "tab\tkey", "nul\0key"])
def test_what_cannot_be_a_key_is_refused_without_repeating_it(user: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="no key for OPENAI_API_KEY") as caught:
        set_key(user, "openai", key)
    assert not key.strip() or key.strip() not in str(caught.value)
    assert not (user / "credentials.toml").exists()


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("OpenAI", "OPENAI_API_KEY"),
        ("together_ai", "TOGETHERAI_API_KEY"),
        ("perplexity", "PERPLEXITYAI_API_KEY"),
        ("ollama_chat", "OLLAMA_API_KEY"),
        ("lm-studio", "LM_STUDIO_API_KEY"),
        ("MY_GATEWAY_TOKEN", "MY_GATEWAY_TOKEN"),
        ("novita", "NOVITA_API_KEY"),
    ],
)
def test_variables_by_provider(name: str, variable: str) -> None:
    assert variable_for(name) == variable


@pytest.mark.parametrize(("name", "message"), [("opnai", "did you mean openai"), ("a b", "neither"), ("", "neither")])
def test_strange_providers_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        variable_for(name)


def test_litellm_reads_the_same_variables() -> None:
    """The variable of each provider that we offer occurs in litellm's sources, which are read and not imported."""
    from importlib.util import find_spec

    spec = find_spec("litellm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = Path(spec.submodule_search_locations[0])
    files = (p for p in root.rglob("*.py") if "proxy" not in p.parts)
    sources = "\n".join(p.read_text("utf-8", "replace") for p in files)
    assert [name for name in PROVIDERS if f'"{variable_for(name)}"' not in sources] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[keys]\nA = "hunter2-secret', r"credentials\.toml:2: is not valid TOML"),
        (b"[keys]\nA = = 1", r"credentials\.toml:2:5: is not valid TOML"),
        (b"[keys]\nA = 5\n", "keys.A is no text"),
        (b'keys = "hunter2-secret"\n', "keys is no table"),
        (b'[keys]\nA = "hunter2-\xff"\n', "credentials.toml:2: is not valid UTF-8"),
    ],
)
def test_a_damaged_file_is_named_and_not_quoted(user: Path, content: bytes, message: str) -> None:
    user.mkdir()
    (user / "credentials.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_credentials(user)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError):
        set_key(user, "openai", KEY)
    assert (user / "credentials.toml").read_bytes() == content


def test_a_folder_in_its_place_is_an_error(user: Path) -> None:
    (user / "credentials.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="not a regular file"):
        load_credentials(user)


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, b"one")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_private(tmp_path / "folder", b"two")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
    assert read_small(path, 2) == (b"on", 3)


def test_toml_as_editors_write_it(tmp_path: Path) -> None:
    assert parse_toml(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", tmp_path) == {"a": 1, "b": 2}
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_toml(b"a = " + b"[" * 100_000, tmp_path)
