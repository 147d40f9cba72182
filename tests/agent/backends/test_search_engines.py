"""ripgrep and our own engine find the same, in the same order."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from deepagent.agent.backends.ignore import parents_interfere, passed_over
from deepagent.agent.backends.protocol import BackendError
from deepagent.agent.backends.scan import Request
from deepagent.agent.backends.search import Hit, Searcher

RIPGREP = shutil.which("rg")
NEEDS_RIPGREP = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed: only our own engine was tested")
ENGINES = [pytest.param(None, id="python"), pytest.param(RIPGREP, id="ripgrep", marks=NEEDS_RIPGREP)]

TREE = {
    "a.py": "import os\nhit one\n",
    "b.txt": "hit two\n",
    ".hidden": "hit\n",
    ".github/ci.yml": "hit\n",
    "src/app/main.py": "def main():\n    hit = 1\n    return hit\n",
    "src/app/[slug]/page.tsx": "hit\n",
    "src/skip.log": "hit\n",
    "src/keep.log": "hit\n",
    "src/nested/.gitignore": "*.txt\n!important.txt\n",
    "src/nested/x.txt": "hit\n",
    "src/nested/important.txt": "hit\n",
    "src/nested/deep/y.txt": "hit\n",
    "build/out.js": "hit\n",
    "src/build/out.js": "hit\n",
    "docs/build": "hit\n",
    "top-only/x": "hit\n",
    "src/top-only/x": "hit\n",
    "dir-only": "hit\n",
    "src/dir-only/x": "hit\n",
    "a b/c d.txt": "hit\n",
    "trailing ": "hit\n",
    "#hash": "hit\n",
    "!bang": "hit\n",
    "white/list/keep.me": "hit\n",
    "white/list/other": "hit\n",
    "dot/.ignore": "!skip.log\nx.py\n",
    "dot/skip.log": "hit\n",
    "dot/x.py": "hit\n",
    "dot/.rgignore": "rg-only\n",
    "dot/rg-only": "hit\n",
    "excluded.tmp": "hit\n",
    "classes/f1": "hit\n",
    "classes/f2": "hit\n",
    "classes/fx": "hit\n",
    "stars/a/b/c/z": "hit\n",
    "stars/a/z": "hit\n",
    "stars/z": "hit\n",
    "node_modules/m/index.js": "hit\n",
    "repo/.git/config": "hit\n",
    "repo/skip.log": "hit\n",
    "repo/own": "hit\n",
    "repo/.gitignore": "own\n",
    "ünïcode/ß.txt": "Hit ÄÖ\n",
}
IGNORE = r"""# a comment
*.log
!keep.log
build/
/top-only
dir-only/
\#hash
\!bang
trailing\_
/white/list/*
!/white/list/keep.me
classes/f[0-9]
stars/**/z
!stars/a/z

""".replace("_", " ")


@pytest.fixture
def tree(workspace: Path) -> Path:
    for name, text in TREE.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    (workspace / ".gitignore").write_text(IGNORE)
    (workspace / ".git/info").mkdir(parents=True)
    (workspace / ".git/info/exclude").write_text("*.tmp\n")
    (workspace / ".git/hit").write_text("hit\n")
    (workspace / "binary").write_bytes(b"hit\0\n")
    (workspace / "late-binary").write_bytes(b"hit" + b"." * 100_000 + b"\n\0")
    (workspace / "latin").write_bytes(b"caf\xe9 hit\n")
    (workspace / "bom.txt").write_bytes(b"\xef\xbb\xbfhit at the start\n")
    (workspace / "utf16.txt").write_bytes("hit ü\n".encode("utf-16"))
    (workspace / "crlf.txt").write_bytes(b"first\r\nthe hit\r\n")
    (workspace / "last").write_bytes(b"no end\nhit")
    (workspace / "long.json").write_text('{"a": "' + "ä" * 3000 + "hit" + "z" * 3000 + '"}\n')
    (workspace / "link").symlink_to("a.py")
    (workspace / "loop").symlink_to(".")
    return workspace


def _request(
    base: Path,
    target: Path | None = None,
    *,
    pattern: str | None = "hit",
    literal: bool = False,
    ignore_case: bool = False,
) -> Request:
    target = target or base
    return Request(
        base=str(base),
        target=str(target),
        pattern=pattern,
        literal=literal,
        ignore_case=ignore_case,
        everything=passed_over(base, target),
    )


async def _lines(engine: str | None, request: Request, glob: str | None = None, limit: int = 1000) -> list[Hit]:
    hits, run = await Searcher(ripgrep=engine, seconds=20).lines(request, glob, limit)
    assert run.stopped != "time"
    return hits


async def _files(engine: str | None, request: Request, pattern: str = "**") -> list[str]:
    found, _ = await Searcher(ripgrep=engine, seconds=20).files(request, pattern)
    return sorted(_below(path, request.target) for path in found)


def _below(path: Path, folder: str) -> str:
    return os.path.relpath(path, folder)


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_is_found_in_a_tree_with_everything(engine: str | None, tree: Path) -> None:
    found = {hit.path.relative_to(tree).as_posix() for hit in await _lines(engine, _request(tree))}
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
        return [(h.line, h.column, h.text, h.cut) for h in hits if h.path.name == name]

    hits = await _lines(engine, _request(tree))
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
async def test_both_engines_find_the_same_lines(pattern: str, more: str, glob: str | None, tree: Path) -> None:
    literal, ignore_case = more == "literal", more == "ignore case"
    request = _request(tree, pattern=pattern, literal=literal, ignore_case=ignore_case)
    assert await _lines(RIPGREP, request, glob) == await _lines(None, request, glob)


@NEEDS_RIPGREP
@pytest.mark.parametrize(
    "target", [".", "src", "src/nested", "repo", "build", "src/build", "node_modules", "dot", "white"]
)
@pytest.mark.parametrize("inside", ["a repository", "no repository"])
async def test_both_engines_find_the_same_files(target: str, inside: str, tree: Path) -> None:
    if inside == "no repository":
        shutil.rmtree(tree / ".git")
    request = _request(tree, tree / target, pattern=None)
    found = await _files(RIPGREP, request)
    assert found == await _files(None, request)
    assert found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "name", ["build", "build/out.js", "src/skip.log", "node_modules", ".git", "repo/own", "top-only"]
)
async def test_what_is_named_is_searched_although_it_is_ignored(engine: str | None, name: str, tree: Path) -> None:
    assert await _lines(engine, _request(tree, tree / name))


@pytest.mark.parametrize("engine", ENGINES)
async def test_rules_above_a_named_folder_hold_in_it(engine: str | None, tree: Path) -> None:
    found = {hit.path.name for hit in await _lines(engine, _request(tree, tree / "src"))}
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
    assert len(await _lines(engine, _request(workspace, workspace / target))) == 1


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
    assert [hit.path.name for hit in await _lines(engine, _request(workspace))] == ["a.txt"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_names_that_are_no_text(engine: str | None, workspace: Path) -> None:
    (workspace / os.fsdecode(b"caf\xe9")).write_text("hit\n")
    (workspace / "line\nbreak").write_text("hit\n")
    hits = await _lines(engine, _request(workspace))
    assert [hit.path.name for hit in hits] == [os.fsdecode(b"caf\xe9"), "line\nbreak"]
    assert await _files(engine, _request(workspace, pattern=None)) == [os.fsdecode(b"caf\xe9"), "line\nbreak"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_expression_that_only_python_knows(engine: str | None, tree: Path) -> None:
    hits = await _lines(engine, _request(tree, pattern=r"hit (?!one)[a-z]+$"))
    assert [hit.path.name for hit in hits] == ["b.txt"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_is_no_expression_is_refused(engine: str | None, tree: Path) -> None:
    with pytest.raises(BackendError, match="not accepted"):
        await _lines(engine, _request(tree, pattern="a(b"))
    assert await _lines(engine, _request(tree, pattern="main(", literal=True))


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_limit_leaves_the_first(engine: str | None, tree: Path) -> None:
    whole = await _lines(engine, _request(tree))
    assert await _lines(engine, _request(tree), limit=5) == whole[:6]


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
    assert set(await _files(engine, _request(workspace, pattern=None))) - {".gitignore"} == left


@NEEDS_RIPGREP
async def test_both_engines_agree_on_random_ignore_files(workspace: Path) -> None:
    rng = random.Random(5)
    folders = _random_tree(rng, workspace)
    for _ in range(12):
        said = _random_rules(rng, folders)
        request = _request(workspace, pattern=None)
        assert await _files(RIPGREP, request) == await _files(None, request), said
