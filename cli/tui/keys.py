"""The keys of the screen, as data: help shows them, a test compares them with what is bound."""

from __future__ import annotations

KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "send; while a run goes on, the text joins it after the running tools"),
    ("Tab", "while a run goes on: send it when the run has ended; on the empty line: to the cards and back"),
    ("⇧Enter Ctrl+J \\Enter", "a new line"),
    ("↑ ↓", "earlier and later prompts; while a run goes on, ↑ takes back what waits"),
    ("Ctrl+R", "search earlier prompts"),
    ("!", "at the beginning of the line: the rest runs in your own shell; the model is told, with !! it is not"),
    ("@", "a file of the workspace"),
    ("/", "a command"),
    ("Esc", "close what is open, else stop the run; the footer says which"),
    ("Esc Esc", "on the empty line, when nothing runs: pick a message to go back to: talk, files, or both"),
    ("Ctrl+C", "copy a selection, else stop the run, else clear the line; twice: leave"),
    ("Ctrl+D", "leave, on the empty line"),
    ("⇧Tab", "the next permission mode"),
    ("Ctrl+O", "unfold or fold the cards"),
    ("Ctrl+G", "write in your editor"),
    ("Ctrl+Z", "put the program to sleep; fg wakes it"),
    ("PgUp PgDn", "scroll"),
    ("?", "this page, on the empty line"),
)
"""Keys and what they do, in the order of help."""
