"""What was said: the user's messages, the model's answers and thoughts, and notices.

Each widget shows a record that outlives it, so that it can be unmounted and made again; records hold what events said
and nothing else. When they change is the business of `presenter`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownBlock, MarkdownFence, MarkdownStream

from .folding import Fold
from .lines import Lines, Row, rows_of
from .text import one_line, safe, visible
