"""The program's entry point."""

from __future__ import annotations


def main() -> None:
    """Runs the command line."""
    raise SystemExit(2)
