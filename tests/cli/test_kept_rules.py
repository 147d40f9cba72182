"""Where "always" is kept: what is written, what stays as it was, and that nothing becomes trusted by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from deepagent.agent.errors import ConfigError
from deepagent.agent.small_files import parse_toml
from deepagent.agent.workspace import Workspace, find_workspace
from deepagent.cli.kept_rules import Place, keep, place_of, with_rules
from deepagent.cli.settings import load_settings
from deepagent.cli.trust import distrust, is_trusted, trust
from hard_inputs import hard_input
from hypothesis import given
from hypothesis import strategies as st

LOCAL = ".deepagents/deepagent.local.toml"


@pytest.fixture
def place(workspace: Path) -> Workspace:
    subprocess.run(("git", "init", "-q", workspace), check=True)
    return find_workspace(workspace, environ={})


def put(place: Workspace, name: str, text: str) -> Path:
    path = place.root / ".deepagents" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def allowed(place: Workspace) -> tuple[str, ...]:
    return load_settings(place, environ={}, flags={}).settings.permissions.allow


def status(place: Workspace) -> str:
    done = subprocess.run(("git", "status", "--porcelain"), cwd=place.root, capture_output=True, check=True, text=True)
    return done.stdout


def test_a_rule_is_kept_and_holds_from_now_on(place: Workspace) -> None:
    kept = keep(place, ["execute(make)", "write_file(out/**)"])
    assert kept.text == f"kept in {LOCAL}"
    assert (place.root / LOCAL).read_text() == (
        '[permissions]\nallow = [\n    "execute(make)",\n    "write_file(out/**)",\n]\n'
    )
    assert allowed(place) == ("execute(make)", "write_file(out/**)")
    keep(place, ["execute(make)", "execute(ls)"])
    assert allowed(place) == ("execute(ls)", "execute(make)", "write_file(out/**)")
    assert (place.root / LOCAL).stat().st_mode & 0o777 == 0o600
    assert status(place) == ""


def test_a_folder_does_not_become_trusted_by_it(place: Workspace) -> None:
    keep(place, ["execute(make)"])
    loaded = load_settings(place, environ={}, flags={})
    assert (loaded.trusted, loaded.ignored) == (False, ())
    put(place, "deepagent.toml", '[permissions]\nallow = ["execute"]\n')
    loaded = load_settings(place, environ={}, flags={})
    assert (loaded.trusted, len(loaded.ignored), loaded.settings.permissions.allow) == (False, 2, ())


@hard_input(
    "Approvals", "`always` in a folder whose settings are not trusted", "holds for the session; nothing is written"
)
def test_in_an_untrusted_folder_nothing_is_written(place: Workspace) -> None:
    put(place, "deepagent.toml", 'model = "x"\n')
    assert place_of(place).text == "in this session only: this folder is not trusted"
    assert keep(place, ["execute(make)"]).path is None
    assert not (place.root / LOCAL).exists()
    assert not is_trusted(place)


def test_a_local_file_of_somebody_else_is_not_made_ours(place: Workspace) -> None:
    path = put(place, "deepagent.local.toml", '[permissions]\nallow = ["execute"]\n')
    assert keep(place, ["execute(make)"]).path is None
    assert "make" not in path.read_text()
    assert allowed(place) == ()


def test_what_was_changed_since_our_write_is_not_ours(place: Workspace) -> None:
    keep(place, ["execute(make)"])
    path = place.root / LOCAL
    path.write_text(path.read_text().replace("execute(make)", "execute"))
    assert allowed(place) == ()
    assert place_of(place).text == "in this session only: this folder is not trusted"


def test_a_trusted_folder_stays_trusted(place: Workspace) -> None:
    put(place, "deepagent.toml", 'model = "x"\n')
    trust(place)
    keep(place, ["execute(make)"])
    assert is_trusted(place)
    assert allowed(place) == ("execute(make)",)
    put(place, "deepagent.toml", 'model = "y"\n')
    assert not is_trusted(place)
    assert allowed(place) == ()


def test_trust_in_a_local_file_of_ones_own_follows(place: Workspace) -> None:
    path = put(place, "deepagent.local.toml", '# mine\n[permissions]\nallow = ["execute(ls)"]  # two\n')
    trust(place)
    keep(place, ["execute(make)"])
    assert path.read_text().startswith("# mine\n[permissions]\nallow = [")
    assert "# two" in path.read_text()
    assert is_trusted(place)
    assert allowed(place) == ("execute(make)", "execute(ls)")


def test_trust_that_is_taken_back_takes_our_file_with_it(place: Workspace) -> None:
    keep(place, ["execute(make)"])
    distrust(place)
    assert allowed(place) == ()


def test_other_decisions_stay(place: Workspace, tmp_path: Path) -> None:
    other = find_workspace(tmp_path, environ={})
    trust(other)
    keep(place, ["execute(make)"])
    assert is_trusted(other)
    trust(place)
    assert is_trusted(place)
    assert allowed(place) == ("execute(make)",)


def test_in_the_home_folder_the_users_file_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DEEPAGENT_HOME", raising=False)
    place = find_workspace(tmp_path, environ=os.environ)
    keep(place, ["execute(make)"])
    assert place_of(place).text == f"kept in {tmp_path}/.deepagents/deepagent.toml, for all projects"
    assert allowed(place) == ("execute(make)",)


def test_where_git_would_see_the_file_nothing_is_written(place: Workspace) -> None:
    put(place, ".gitignore", "sessions\n")
    assert "git would see" in keep(place, ["execute(make)"]).why
    put(place, ".gitignore", "deepagent.local.toml\n")
    assert keep(place, ["execute(make)"]).path


def test_a_link_is_not_written_through(place: Workspace, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    put(place, "x", "")
    (place.root / LOCAL).symlink_to(target)
    trust(place)
    assert keep(place, ["execute(make)"]).why == "deepagent.local.toml is a link"
    assert target.read_text() == ""


def test_what_cannot_be_written_is_said(place: Workspace) -> None:
    path = put(place, "deepagent.local.toml", "permissions = { allow = [] }\n")
    trust(place)
    with pytest.raises(ConfigError, match="no place was found"):
        keep(place, ["execute(make)"])
    assert path.read_text() == "permissions = { allow = [] }\n"
    assert is_trusted(place)
    path.write_text("permissions = 3\n")
    trust(place)
    with pytest.raises(ConfigError, match="permissions"):
        keep(place, ["execute(make)"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        'model = "x"',
        "[permissions]",
        "[permissions]\nmode = 'plan'  # ]\n",
        "[permissions] # here\n[limits]\nmax_turns = 3\n",
        "[permissions]\nallow = []\n",
        "[permissions]\nallow = [ ]",
        "[permissions]\nallow = ['execute(a)']\ndeny = ['x']\n",
        "[permissions]\nallow = ['execute([a])', \"]\"]\n",
        "[permissions]\nallow = [\n  'a', # one ]\n  'b' # two\n]\n[limits]\n",
        "[permissions]\nallow = [\n  'a',\n  # nothing more\n]\n",
        "[permissions]\r\nallow = [\r\n  'a',\r\n]\r\n",
        "[permissions]\ndeny = ['x']\nallow = ['''a\n]''']\n",
        "permissions.mode = 'plan'\npermissions.allow = ['a']\n",
        "\ufeff[permissions]\nallow = ['a']\n",
        "[ permissions ]\nallow=['a']\n[limits]\nmax_turns = 3\n",
    ],
)
def test_the_rest_of_the_file_stays(text: str) -> None:
    rules = ["execute(echo \"a\" 'b' \\ é)", "execute(a\nb)"]
    path = Path("x.toml")
    before = parse_toml(text.encode(), path)
    after = parse_toml(with_rules(text.encode(), rules, path), path)
    old = cast(dict[str, Any], before.pop("permissions", {}))
    new = cast(dict[str, Any], after.pop("permissions"))
    assert after == before
    assert new.pop("allow") == [*rules, *old.pop("allow", [])]
    assert new == old
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert all(comment in with_rules(text.encode(), rules, path).decode() for comment in comments)


@given(st.lists(st.text(min_size=1).filter(lambda rule: rule.encode("utf-8", "replace").decode() == rule), max_size=4))
def test_any_rule_comes_back(rules: list[str]) -> None:
    path = Path("x.toml")
    data = with_rules(b"[permissions]\nallow = ['a']\n", rules, path)
    read = parse_toml(data, path)["permissions"]
    assert read == {"allow": list(dict.fromkeys([*(rule for rule in rules if rule != "a"), "a"]))}


def test_two_processes_lose_nothing(place: Workspace) -> None:
    program = (
        "import sys; from pathlib import Path; from deepagent.agent.workspace import find_workspace;"
        "from deepagent.cli.kept_rules import keep\n"
        "for n in range(5): keep(find_workspace(Path.cwd(), environ={}), [f'execute({sys.argv[1]}{n})'])"
    )
    running = [subprocess.Popen((sys.executable, "-c", program, name), cwd=place.root) for name in "ab"]
    assert [process.wait(30) for process in running] == [0, 0]
    assert set(allowed(place)) == {f"execute({name}{number})" for name in "ab" for number in range(5)}


def test_places() -> None:
    assert Place(why="so").text == "in this session only: so"
