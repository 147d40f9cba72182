"""How tests of searching call both engines."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from deepagent.agent.backends.hits import Hit, Lines
from deepagent.agent.backends.ignore import passed_over
from deepagent.agent.backends.protocol import Search
from deepagent.agent.backends.scan import Request
from deepagent.agent.backends.search import Searcher

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


def make_tree(workspace: Path) -> Path:
    """Fills a folder with what is hard to search."""
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


def request_for(
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


async def found_by(engine: str | None, request: Request, **wanted: Any) -> tuple[Lines, int]:
    """What was found, and how much could not be read."""
    given: dict[str, Any] = {"pattern": request.pattern or "", "limit": 1000, **wanted}
    search = Search(**given)
    found, run = await Searcher(ripgrep=engine, seconds=20).lines(request, search)
    assert run.stopped != "time"
    return found, run.skipped


async def lines_by(engine: str | None, request: Request, glob: str | None = None, limit: int = 1000) -> list[Hit]:
    return (await found_by(engine, request, glob=glob, limit=limit))[0].hits


async def files_by(engine: str | None, request: Request, pattern: str = "**") -> list[str]:
    found, total, _ = await Searcher(ripgrep=engine, seconds=20).files(request, pattern, 1000)
    assert total == len(found)
    return sorted(_below(path, request.target) for path in found)


def _below(path: str, folder: str) -> str:
    return os.path.relpath(path, folder)
