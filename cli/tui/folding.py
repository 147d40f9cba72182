"""A line that opens to more: what tool cards, thinking and compactions have in common.

What the line says and what lies below it is the business of those who derive from `Fold`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol, runtime_checkable

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget


class Openable(Protocol):
    """What a fold shows; it outlives the widget, so whether it is open is kept here."""

    open: bool


@runtime_checkable
class Keeper(Protocol):
    """What scrolls the fold."""

    def keep(self, widget: Widget) -> None:
        """Lets the widget stay where it is on the screen, although it is about to grow or shrink."""
        ...


class Head(Widget):
    """The line itself; its text is the fold's."""

    DEFAULT_CSS = "Head { width: 1fr; height: 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    def render(self) -> Content:
        fold = self.parent
        return fold.head(self.content_size.width) if isinstance(fold, Fold) else Content()


class Fold(Vertical, can_focus=True):
    """A line, and below it widgets that are there only while they are to be seen."""

    FOCUS_ON_CLICK = False
    """A click opens it; the prompt keeps the keys."""
    DEFAULT_CSS = """
    Fold { width: 1fr; height: auto; }
    Fold:focus > Head { background: $foreground 8%; }
    Fold > .fold--body { width: 1fr; height: auto; margin-left: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "open", "open or close", show=False)]

    def __init__(self, record: Openable, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._record = record
        self._body: Vertical | None = None

    def head(self, width: int) -> Content:
        """The line, in `width` cells."""
        raise NotImplementedError

    def body(self, *, whole: bool) -> Iterable[Widget]:
        """What lies below the line: all of it, or what is shown of it even while it is closed."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield Head()

    def on_mount(self) -> None:
        """Shows what the record says."""
        self.begin()

    def begin(self) -> None:
        """Called once, when the line is there: shows the body if there is something to show."""
        self.show_body()

    @property
    def folded(self) -> bool:
        """Whether it is closed."""
        return not self._record.open

    def fold(self, folded: bool) -> None:
        """Closes or opens it."""
        if self._record.open == folded:
            self._record.open = not folded
            self.show_body()
            self.show_head()

    def action_open(self) -> None:
        """Opens what is closed and closes what is open; the line stays where it is, if all is seen then."""
        for node in self.ancestors:
            if isinstance(node, Keeper):
                node.keep(self)
        self.fold(not self.folded)
        if not self.folded:
            self.call_after_refresh(self.scroll_visible, animate=False)

    def show_head(self) -> None:
        """Shows the line anew."""
        for head in self.query_children(Head):
            head.refresh()

    def show_body(self) -> None:
        """Makes the body anew."""
        if self._body is not None:
            self._body.remove()
            self._body = None
        widgets = tuple(self.body(whole=not self.folded))
        if widgets:
            self._body = Vertical(*widgets, classes="fold--body")
            self.mount(self._body)

    def on_click(self, event: events.Click) -> None:
        """Opens or closes, unless the mouse was selecting text or was in the body."""
        on_line = any(head.region.contains_point(event.screen_offset) for head in self.query_children(Head))
        if on_line and not self.screen.selections:
            event.stop()
            self.action_open()
