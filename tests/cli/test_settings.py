"""The layers of settings: which wins, where each value came from, and that an untrusted project changes nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from deepagent.agent.config import Settings, flatten
from deepagent.agent.errors import ConfigError
from deepagent.agent.workspace import Workspace, find_workspace
from deepagent.cli.settings import LoadedSettings, Origin, load_settings, variable_name
from deepagent.cli.trust import is_trusted, trust


@pytest.fixture
def place(workspace: Path) -> Workspace:
    (workspace / ".git").mkdir()
    (workspace / ".deepagents").mkdir()
    return find_workspace(workspace, environ={})


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def user_file(place: Workspace, text: str) -> Path:
    return put(place.user / "deepagent.toml", text)


def project_file(place: Workspace, text: str, name: str = "deepagent.toml") -> Path:
    return put(place.root / ".deepagents" / name, text)


def load(
    place: Workspace,
    environ: Mapping[str, str] | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    trust: bool = False,
) -> LoadedSettings:
    return load_settings(place, environ=environ or {}, flags=flags or {}, trust=trust)


def test_without_any_layer_there_are_the_defaults(place: Workspace) -> None:
    loaded = load(place)
    assert loaded.settings == Settings()
    assert set(loaded.origins) == set(flatten(Settings()))
    assert set(loaded.origins.values()) == {(Origin(layer="default"),)}
    assert (loaded.notices, loaded.ignored) == ((), ())


def test_each_layer_beats_the_one_below_and_is_named(place: Workspace) -> None:
    environ: dict[str, str] = {}
    flags: dict[str, object] = {}

    def model() -> tuple[str | None, Origin]:
        loaded = load(place, environ, flags=flags, trust=True)
        (origin,) = loaded.origins["model"]
        return loaded.settings.model, origin

    user = user_file(place, 'model = "user"\n[context]\nkeep = 0.2\n')
    assert model() == ("user", Origin(layer="user", where=f"{user}:1"))
    project = project_file(place, '\n# ours\nmodel = "project"\n')
    assert model() == ("project", Origin(layer="project", where=f"{project}:3"))
    local = project_file(place, 'model = "local"\n', "deepagent.local.toml")
    assert model() == ("local", Origin(layer="project local", where=f"{local}:1"))
    environ["DEEPAGENT_MODEL"] = "variable"
    assert model() == ("variable", Origin(layer="environment", where="DEEPAGENT_MODEL"))
    flags["model"] = "flag"
    assert model() == ("flag", Origin(layer="flag"))
    loaded = load(place, environ, flags=flags, trust=True)
    assert loaded.settings.context.keep == 0.2
    assert loaded.origins["context.keep"] == (Origin(layer="user", where=f"{user}:3"),)


def test_lists_add_up(place: Workspace) -> None:
    user = user_file(place, '[permissions]\ndeny = ["execute(rm *)"]\nallow = ["ls"]\n')
    project_file(place, '[permissions]\ndeny = []\nallow = ["glob", "ls"]\n')
    loaded = load(place, flags={"permissions.allow": ("grep",)}, trust=True)
    assert loaded.settings.permissions.deny == ("execute(rm *)",)
    assert loaded.settings.permissions.allow == ("ls", "glob", "grep")
    assert [o.layer for o in loaded.origins["permissions.allow"]] == ["user", "project", "flag"]
    assert loaded.origins["permissions.allow"][0].where == f"{user}:3"


def test_flags_that_were_not_given_change_nothing(place: Workspace) -> None:
    user_file(place, 'model = "user"\n')
    assert load(place, flags={"model": None}).settings.model == "user"


def test_variables_have_one_obvious_name_each() -> None:
    names = [variable_name(key) for key in flatten(Settings())]
    assert len(set(names)) == len(names)
    assert variable_name("context.compact_at") == "DEEPAGENT_CONTEXT_COMPACT_AT"
    assert "DEEPAGENT_HOME" not in names


def test_variables_of_every_type(place: Workspace) -> None:
    loaded = load(
        place,
        {
            "DEEPAGENT_CONTEXT_COMPACT_AT": "0.5",
            "DEEPAGENT_CONTEXT_WINDOW": "128000",
            "DEEPAGENT_CONTEXT_AUTO_COMPACT": "false",
            "DEEPAGENT_PERMISSIONS_ALLOW": '["execute(a, b)", "ls"]',
            "DEEPAGENT_PERMISSIONS_DENY": "execute(rm, *)",
            "DEEPAGENT_SUMMARY_MODEL": "",
        },
    )
    context, permissions = loaded.settings.context, loaded.settings.permissions
    assert (context.compact_at, context.window, context.auto_compact) == (0.5, 128_000, False)
    assert permissions.allow == ("execute(a, b)", "ls")
    assert permissions.deny == ("execute(rm, *)",)
    assert loaded.settings.summary_model is None


def test_memory_paths_are_relative_to_where_they_were_written(place: Workspace, isolated: Path) -> None:
    user_file(place, 'memory = ["preferences.md", "~/notes.md"]\n')
    project_file(place, 'memory = ["docs/rules.md"]\n')
    loaded = load(place, {"DEEPAGENT_MEMORY": "env.md"}, trust=True)
    assert loaded.settings.memory == tuple(
        str(path)
        for path in (
            place.user / "preferences.md",
            isolated / "notes.md",
            place.root / "docs" / "rules.md",
            place.root / "env.md",
        )
    )


ERRORS = {
    "syntax": ("model = \n", r":1:9: is not valid TOML"),
    "syntax at the end": ('a = 1\nmodel = """', r":2: is not valid TOML"),
    "twice": ('model = "a"\nmodel = "b"\n', r":2:12: is not valid TOML"),
    "unknown": ('\n\nmodle = "x"\n', r":3: modle: is no setting; did you mean model\?"),
    "unknown in a table": ("[context]\n\ncompat_at = 1\n", r":3: context.compat_at: .* context.compact_at\?"),
    "unknown table": ('[server]\nurl = "x"\n', r":1: server: is no setting"),
    "wrong type": ("[limits]\n# many\nmax_turns = 'x'\n", r":3: limits.max_turns: input should be a valid integer"),
    "inline table": ("model = 'm'\ncontext = { keep = 2 }\n", r":2: context.keep: is 2.0"),
    "dotted": ("context.trim_at = 7\n", r":1: context.trim_at: is 7.0"),
    "quoted": ('[ "context" ]\n"keep" = 7\n', r":2: context.keep: is 7.0"),
    "item of a list": ("model = 'm'\nmemory = [\n  'a',\n  1,\n]\n", r":2: memory.1: "),
}


@pytest.mark.parametrize(("text", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_name_file_line_and_key(place: Workspace, text: str, message: str) -> None:
    path = user_file(place, text)
    with pytest.raises(ConfigError, match=str(path) + message):
        load(place)


def test_all_errors_of_a_file_at_once(place: Workspace) -> None:
    path = user_file(place, 'modle = "x"\n[limits]\nmax_turns = 0\ntimeout = "soon"\n')
    with pytest.raises(ConfigError) as caught:
        load(place)
    lines = str(caught.value).splitlines()
    assert [line.removeprefix(f"{path}:").partition(" ")[0] for line in lines] == ["1:", "3:", "4:"]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"DEEPAGENT_CONTEXT_KEEP": "much"}, "DEEPAGENT_CONTEXT_KEEP: context.keep: "),
        ({"DEEPAGENT_CONTEXT_KEEP": "7"}, "DEEPAGENT_CONTEXT_KEEP: context.keep: is 7.0"),
        ({"DEEPAGENT_MEMORY": '["a", 1]'}, "DEEPAGENT_MEMORY: memory.1: "),
        ({"DEEPAGENT_MEMORY": '["a"'}, "DEEPAGENT_MEMORY:1.*: is not valid TOML"),
    ],
)
def test_errors_name_the_variable(place: Workspace, environ: Mapping[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(place, environ)


def test_errors_name_the_command_line(place: Workspace) -> None:
    with pytest.raises(ConfigError, match=r"command line: context\.keep: is 7"):
        load(place, flags={"context.keep": 7})


def test_misspelt_variables_are_noticed(place: Workspace) -> None:
    loaded = load(place, {"DEEPAGENT_CONTEXT_COMPACTAT": "0.5", "DEEPAGENT_HOME": "x", "DEEPAGENT_OF_ANOTHER": "1"})
    (notice,) = loaded.notices
    assert notice.startswith("DEEPAGENT_CONTEXT_COMPACTAT is no setting; did you mean DEEPAGENT_CONTEXT_COMPACT_AT?")


def test_an_untrusted_project_changes_nothing(place: Workspace) -> None:
    files = (
        project_file(place, 'model = "evil"\n[permissions]\nmode = "yolo"\nallow = ["execute"]\n'),
        project_file(place, 'memory = ["/etc/passwd"]\n', "deepagent.local.toml"),
    )
    loaded = load(place)
    assert loaded.settings == Settings()
    assert (loaded.trusted, loaded.ignored) == (False, files)
    (notice,) = loaded.notices
    assert "not trusted" in notice
    assert ".deepagents/deepagent.toml" in notice
    assert "--trust" in notice


def test_an_untrusted_project_can_be_broken_in_any_way(place: Workspace) -> None:
    project_file(place, "this is [no toml")
    assert load(place).settings == Settings()
    os.mkfifo(place.root / ".deepagents" / "deepagent.local.toml")
    loaded = load(place)
    assert loaded.settings == Settings()
    assert "not a regular file" in loaded.notices[0]
    with pytest.raises(ConfigError):
        load(place, trust=True)


def test_trust_for_one_run_is_not_remembered(place: Workspace) -> None:
    project_file(place, 'model = "project"\n')
    loaded = load(place, trust=True)
    assert (loaded.settings.model, loaded.trusted, loaded.ignored, loaded.notices) == ("project", True, (), ())
    assert not load(place).trusted
    assert not (place.user / "trust.toml").exists()


def test_a_decision_holds_until_a_file_changes(place: Workspace) -> None:
    path = project_file(place, 'model = "project"\n')
    trust(place)
    assert load(place).settings.model == "project"
    path.write_text('model = "other"\n')
    changed = load(place)
    assert (changed.settings.model, changed.trusted, changed.ignored) == (None, False, (path,))
    path.write_text('model = "project"\n')
    assert load(place).trusted
    project_file(place, 'model = "added"\n', "deepagent.local.toml")
    assert not load(place).trusted


def test_in_the_home_folder_there_is_no_project_layer(isolated: Path) -> None:
    home = find_workspace(isolated, environ={})
    put(isolated / ".deepagents" / "deepagent.toml", 'model = "user"\n')
    put(isolated / ".deepagents" / "deepagent.local.toml", 'model = "local"\n')
    loaded = load(home)
    assert loaded.settings.model == "user"
    assert [o.layer for o in loaded.origins["model"]] == ["user"]
    assert (loaded.ignored, loaded.notices) == ((), ())


def test_the_users_folder_in_a_project_is_not_the_project_layer_too(place: Workspace) -> None:
    moved = find_workspace(place.root, environ={"DEEPAGENT_HOME": str(place.root / ".deepagents")})
    project_file(place, 'model = "m"\nmemory = ["a.md"]\n')
    loaded = load(moved, trust=True)
    assert [o.layer for o in loaded.origins["memory"]] == ["user"]


def test_a_user_file_that_cannot_be_read_is_an_error(place: Workspace) -> None:
    (place.user / "deepagent.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="not a regular file"):
        load(place)


def test_every_setting_is_documented() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for key in flatten(Settings()):
        assert f"`{key}`" in docs, f"docs/configuration.md says nothing of {key}"


def test_decisions_lie_outside_the_project_and_are_per_folder(place: Workspace, tmp_path: Path) -> None:
    trust(place)
    assert is_trusted(place)
    assert (place.user / "trust.toml").stat().st_mode & 0o777 == 0o600
    assert not (place.root / ".deepagents" / "trust.toml").exists()
    (tmp_path / "other").mkdir()
    other = find_workspace(tmp_path / "other", environ={})
    assert not is_trusted(other)
    trust(other)
    assert is_trusted(place)
    assert is_trusted(other)


def test_the_content_of_one_file_is_not_that_of_the_other(place: Workspace) -> None:
    path = project_file(place, 'model = "m"\n')
    trust(place)
    path.rename(path.with_name("deepagent.local.toml"))
    assert not is_trusted(place)


def test_a_damaged_decision_file_is_named_and_kept(place: Workspace) -> None:
    damaged = put(place.user / "trust.toml", "[trusted\n")
    for act in (is_trusted, trust):
        with pytest.raises(ConfigError, match=r"trust\.toml:1"):
            act(place)
    assert damaged.read_text() == "[trusted\n"
