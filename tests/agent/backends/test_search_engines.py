"""ripgrep and our own engine find the same, in the same order."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from deepagent.agent.backends.ignore import parents_interfere
from deepagent.agent.backends.protocol import BackendError
from hard_inputs import hard_input
from search_calls import ENGINES, NEEDS_RIPGREP, RIPGREP, TREE, files_by, found_by, lines_by, request_for


@hard_input(
    "Search",
    "pipes, devices, binaries, broken links, odd names in one tree",
    "the same hits with and without ripgrep",
)
@pytest.mark.parametrize("engine", ENGINES)
async def test_what_is_found_in_a_tree_with_everything(engine: str | None, tree: Path) -> None:
    found = {Path(hit.path).relative_to(tree).as_posix() for hit in await lines_by(engine, request_for(tree))}
    missing = {
        *("src/skip.log", "src/nested/x.txt", "src/nested/deep/y.txt", "build/out.js", "src/build/out.js"),
        *("top-only/x", "src/dir-only/x", "trailing ", "#hash", "!bang", "white/list/other", "dot/x.py", "dot/rg-only"),
        *("excluded.tmp", "classes/f1", "classes/f2", "stars/a/b/c/z", "stars/z", "node_modules/m/index.js"),
        *("repo/.git/config", "repo/own", "ünïcode/ß.txt"),
        *("src/nested/.gitignore", "dot/.ignore", "dot/.rgignore", "repo/.gitignore"),
    }
    more = {".gitignore", "latin", "bom.txt", "utf16.txt", "crlf.txt", "last", "long.json"}
    assert found == (TREE.keys() - missing) | more


@pytest.mark.parametrize("engine", ENGINES)
async def test_lines_are_told_exactly(engine: str | None, tree: Path) -> None:
    def by_name(name: str) -> list[tuple[int, int, str, bool]]:
        return [(h.line, h.column, h.text, h.cut) for h in hits if Path(h.path).name == name]

    hits = await lines_by(engine, request_for(tree))
    assert by_name("main.py") == [(2, 1, "    hit = 1", False), (3, 1, "    return hit", False)]
    assert by_name("crlf.txt") == [(2, 1, "the hit", False)]
    assert by_name("last") == [(2, 1, "hit", False)]
    assert by_name("bom.txt") == [(1, 1, "hit at the start", False)]
    assert by_name("utf16.txt") == [(1, 1, "hit ü", False)]
    assert by_name("latin") == [(1, 1, "caf� hit", False)]
    [(line, column, text, cut)] = by_name("long.json")
    whole = (tree / "long.json").read_bytes().splitlines()[0]
    assert (line, cut) == (1, True)
    assert "hit" in text and "�" not in text
    assert whole[column - 1 :].startswith(text.encode())


@NEEDS_RIPGREP
@pytest.mark.parametrize(
    ("pattern", "more", "glob"),
    [
        ("hit", "", None),
        ("HIT", "ignore case", None),
        ("äö", "ignore case", None),
        ("hit$", "", None),
        ("^hit$", "", None),
        (r"\bhit\s=", "", None),
        (r"h[aeiou]t (one|two)", "", None),
        ("main():", "literal", None),
        ("hit", "", "*.py"),
        ("hit", "", "src/**"),
        ("hit", "", "**/*.{py,txt}"),
        ("hit", "", "src/app/[slug]/*"),
        ("hit", "", "f?"),
        ("hit", "", "**/nested/*.txt"),
        ("hit", "", ".*"),
        ("nowhere", "", None),
    ],
)
async def test_both_engines_find_the_samelines_by(pattern: str, more: str, glob: str | None, tree: Path) -> None:
    literal, ignore_case = more == "literal", more == "ignore case"
    request = request_for(tree, pattern=pattern, literal=literal, ignore_case=ignore_case)
    assert await lines_by(RIPGREP, request, glob) == await lines_by(None, request, glob)


@NEEDS_RIPGREP
@pytest.mark.parametrize(
    "target", [".", "src", "src/nested", "repo", "build", "src/build", "node_modules", "dot", "white"]
)
@pytest.mark.parametrize("inside", ["a repository", "no repository"])
async def test_both_engines_find_the_samefiles_by(target: str, inside: str, tree: Path) -> None:
    if inside == "no repository":
        shutil.rmtree(tree / ".git")
    request = request_for(tree, tree / target, pattern=None)
    found = await files_by(RIPGREP, request)
    assert found == await files_by(None, request)
    assert found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "name", ["build", "build/out.js", "src/skip.log", "node_modules", ".git", "repo/own", "top-only"]
)
async def test_what_is_named_is_searched_although_it_is_ignored(engine: str | None, name: str, tree: Path) -> None:
    assert await lines_by(engine, request_for(tree, tree / name))


@pytest.mark.parametrize("engine", ENGINES)
async def test_rules_above_a_named_folder_hold_in_it(engine: str | None, tree: Path) -> None:
    found = {Path(hit.path).name for hit in await lines_by(engine, request_for(tree, tree / "src"))}
    assert "keep.log" in found
    assert not {"skip.log", "out.js"} & found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", [".", "sub"])
async def test_ignore_files_above_the_workspace_do_not_count(engine: str | None, target: str, workspace: Path) -> None:
    for name in (".gitignore", ".ignore", ".rgignore"):
        (workspace.parent / name).write_text("*\n")
    (workspace / "sub").mkdir()
    (workspace / "sub/a.txt").write_text("hit\n")
    assert parents_interfere(workspace)
    assert len(await lines_by(engine, request_for(workspace, workspace / target))) == 1


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_linked_worktree_shares_the_exclude_file(engine: str | None, workspace: Path) -> None:
    common = workspace.parent / "main/.git"
    (common / "info").mkdir(parents=True)
    (common / "worktrees/w").mkdir(parents=True)
    (common / "info/exclude").write_text("*.tmp\n")
    (common / "worktrees/w/commondir").write_text("../..\n")
    (workspace / ".git").write_text(f"gitdir: {common}/worktrees/w\n")
    (workspace / "a.tmp").write_text("hit\n")
    (workspace / "a.txt").write_text("hit\n")
    assert [Path(hit.path).name for hit in await lines_by(engine, request_for(workspace))] == ["a.txt"]


@hard_input("Search", "file names that are no UTF-8", "are found and written as escapes")
@pytest.mark.parametrize("engine", ENGINES)
async def test_names_that_are_no_text(engine: str | None, workspace: Path) -> None:
    (workspace / os.fsdecode(b"caf\xe9")).write_text("hit\n")
    (workspace / "line\nbreak").write_text("hit\n")
    hits = await lines_by(engine, request_for(workspace))
    assert [Path(hit.path).name for hit in hits] == [os.fsdecode(b"caf\xe9"), "line\nbreak"]
    assert await files_by(engine, request_for(workspace, pattern=None)) == [os.fsdecode(b"caf\xe9"), "line\nbreak"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_expression_that_only_python_knows(engine: str | None, tree: Path) -> None:
    hits = await lines_by(engine, request_for(tree, pattern=r"hit (?!one)[a-z]+$"))
    assert [Path(hit.path).name for hit in hits] == ["b.txt"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_is_no_expression_is_refused(engine: str | None, tree: Path) -> None:
    with pytest.raises(BackendError, match="not accepted"):
        await lines_by(engine, request_for(tree, pattern="a(b"))
    assert await lines_by(engine, request_for(tree, pattern="main(", literal=True))


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_limit_leaves_the_first(engine: str | None, tree: Path) -> None:
    whole = await lines_by(engine, request_for(tree))
    found, _ = await found_by(engine, request_for(tree), limit=5)
    assert (found.hits, found.more) == (whole[:5], True)
    found, _ = await found_by(engine, request_for(tree), limit=len(whole))
    assert (found.hits, found.more) == (whole, False)


ATOMS = ("a", "b", "*", "**", "*.py", "?", "[ab]", "[!a]", ".e", "c.*", "x y", r"\a", "a*", "{a,b}", "***")


def _random_tree(rng: random.Random, root: Path) -> list[Path]:
    """Makes files in nested folders; returns the folders."""
    for _ in range(120):
        folders = rng.choices(["a", "b", "x y", ".e"], k=rng.randrange(4))
        path = root.joinpath(*folders, rng.choice(["a", "b", "c.py", "d.txt", "x y", ".e"]))
        if not path.exists() and not any(parent.is_file() for parent in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("hit\n")
    return [root, *(path for path in root.rglob("*") if path.is_dir())]


def _random_rules(rng: random.Random, folders: list[Path]) -> dict[str, str]:
    """Puts ignore files into some folders; returns what they say."""
    for folder in folders:
        (folder / ".gitignore").unlink(missing_ok=True)
    said: dict[str, str] = {}
    for folder in rng.sample(folders, min(4, len(folders))):
        lines: list[str] = []
        for _ in range(rng.randrange(1, 5)):
            body = "/".join(rng.choices(ATOMS, k=rng.randrange(1, 4)))
            lines.append(rng.choice(["", "", "!"]) + rng.choice(["", "/"]) + body + rng.choice(["", "", "/"]))
        said[str(folder)] = "\n".join(lines)
        (folder / ".gitignore").write_text(said[str(folder)])
    return said


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("*\n!*/\n!*.py", {"a.py", "d/a.py", "d/e/a.py"}),
        ("/**", set[str]()),
        ("/**/", {"a.py", "b.txt"}),
        ("**", set[str]()),
        ("d/**", {"a.py", "b.txt"}),
        ("/d/*\n!/d/e", {"a.py", "b.txt", "d/e/a.py", "d/e/b.txt"}),
        ("**/e/", {"a.py", "b.txt", "d/a.py", "d/b.txt"}),
        ("d/**/b.txt", {"a.py", "b.txt", "d/a.py", "d/e/a.py"}),
        ("*.py\n!/a.py", {"a.py", "b.txt", "d/b.txt", "d/e/b.txt"}),
        ("/d**/*", {"a.py", "b.txt"}),
        ("/a**/*", {"a.py", "b.txt", "d/a.py", "d/b.txt", "d/e/a.py", "d/e/b.txt"}),
        ("[a", {"a.py", "b.txt", "d/a.py", "d/b.txt", "d/e/a.py", "d/e/b.txt"}),
        ("b.txt   \n# a.py\n\n", {"a.py", "d/a.py", "d/e/a.py"}),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
async def test_ignore_rules(engine: str | None, rules: str, left: set[str], workspace: Path) -> None:
    (workspace / "d/e").mkdir(parents=True)
    for folder in (".", "d", "d/e"):
        (workspace / folder / "a.py").touch()
        (workspace / folder / "b.txt").touch()
    (workspace / ".gitignore").write_text(rules)
    assert set(await files_by(engine, request_for(workspace, pattern=None))) - {".gitignore"} == left


@hard_input("Search", "ignore files with every kind of rule", "both engines agree, with git as the judge of the rules")
@NEEDS_RIPGREP
async def test_both_engines_agree_on_random_ignorefiles_by(workspace: Path) -> None:
    rng = random.Random(5)
    folders = _random_tree(rng, workspace)
    for _ in range(12):
        said = _random_rules(rng, folders)
        request = request_for(workspace, pattern=None)
        assert await files_by(RIPGREP, request) == await files_by(None, request), said
