"""Checks that functions and files keep the size that `CONTRIBUTING.md` allows.

A function's length is its lines from `def` to the end without its docstring: functions inside it count, because who
reads it reads them too. A file's length is all of its lines.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("agent", "bench", "cli", "context", "scripts", "skills", "tests")
FUNCTION_LINES = 60
FILE_LINES = 400

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function below `tree`, methods and inner functions too."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def span(node: ast.stmt) -> int:
    """Lines from the first to the last of a statement; decorators stand above it and do not count."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def length(function: Function) -> int:
    """Lines of a function without its docstring."""
    documented = ast.get_docstring(function, clean=False) is not None
    return span(function) - (span(function.body[0]) if documented else 0)


def complaints(path: Path, source: str) -> Iterator[str]:
    """What is too long in one file, as `path:line: …`."""
    lines = len(source.splitlines())
    if lines > FILE_LINES:
        yield f"{path}:1: {lines} lines; a file has at most {FILE_LINES}"
    for function in functions(ast.parse(source)):
        size = length(function)
        if size > FUNCTION_LINES:
            yield f"{path}:{function.lineno}: {function.name} has {size} lines; a function has at most {FUNCTION_LINES}"


def main() -> int:
    """Prints every complaint; 1 if there was one."""
    root = Path(__file__).resolve().parent.parent
    paths = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    found = [line for path in paths for line in complaints(path.relative_to(root), path.read_text(encoding="utf-8"))]
    print("\n".join(found) or f"{len(paths)} files, all within size")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
