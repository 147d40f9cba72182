"""What the demo plays: one story, on the screen and line by line."""

from __future__ import annotations

PROMPT = (
    "The half-cent tests in tests/test_invoice.py fail. Find out why and repair it by the shop's own rules. "
    "Change no test."
)
WINDOW = 7_000
"""Tokens of the demo's window: small, so that it fills within a minute."""
KEEP_RESULTS = ("read_file",)
"""Tools whose results stay until the compaction, which is what the demo is to show."""
