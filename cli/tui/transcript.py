"""The conversation on the screen: a window of mounted widgets over a list of entries that may be much longer.

Entries know how to make their widget, so what was unmounted comes back when it is scrolled to. What stands where the
eye is keeps its place, whatever grows, shrinks or comes back above it. What the entries show is `presenter`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, runtime_checkable

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Offset, Size
from textual.layout import DockArrangeResult, WidgetPlacement
from textual.reactive import Reactive
from textual.scrollbar import ScrollBar
from textual.widget import Widget

MOST = 150
"""The weight that is mounted at once, about: most entries weigh 1."""
STEP = 40
"""The weight that comes or goes at once."""
_FIRST = 80
"""The weight that is mounted when many entries come at once, such as those of a resumed session."""

W = TypeVar("W", bound=Widget)


@dataclass(slots=True, eq=False)
class Entry(Generic[W]):
    """Something in the transcript; `widget` is None while it is not mounted."""

    make: Callable[[], W]
    weight: Callable[[], int]
    """How much it is to lay out, in lines or blocks."""
    widget: W | None = None


def _once(widget: W) -> Callable[[], W]:
    """Gives the widget once, then one that takes no room."""
    given = [widget]

    def make() -> W:
        if given:
            return given.pop()
        gone = Widget()
        gone.display = False
        return cast(W, gone)

    return make


@runtime_checkable
class Foldable(Protocol):
    """A widget that Ctrl+O folds and unfolds."""

    @property
    def folded(self) -> bool:
        """Whether it shows little."""
        ...

    def fold(self, folded: bool) -> None:
        """Shows little, or all."""
        ...


class Transcript(VerticalScroll, can_focus=False):
    """Shows entries and stays at the end, until somebody scrolls up."""

    DEFAULT_CSS = """
    Transcript {
        width: 1fr; height: 1fr; padding: 0 0 0 1; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
        scrollbar-color: $foreground 20%; scrollbar-color-hover: $foreground 40%; scrollbar-color-active: $accent;
        scrollbar-background: $background; scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "entry above", show=False),
        Binding("down", "move(1)", "entry below", show=False),
    ]
    """For when an entry has the focus."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._entries: list[Entry[Widget]] = []
        self._first = 0
        self._last = 0
        """Entries from `_first` up to `_last` are mounted, or about to be."""
        self._planned = False
        self._held: tuple[Widget, int] | None = None
        """What keeps its place: a widget, and its line below the top of what is seen."""
        self._places: list[WidgetPlacement] = []
        """Where the widgets lie, as of the last layout."""
        self._reached = False
        """More was mounted since the last layout."""
        self._reaching = False
        """It is about to be looked whether more must be mounted."""

    def on_mount(self) -> None:
        """Stays at the end."""
        self.anchor()
        self._plan()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def at_end(self) -> bool:
        """Whether what comes next will be seen at once."""
        return self._anchored and not self._anchor_released

    def add(self, make: W | Callable[[], W], *, weight: Callable[[], int] = lambda: 1) -> Entry[W]:
        """Adds an entry at the end. `make` makes its widget, again after each time that it was unmounted.

        A widget in place of a function is shown until it is unmounted, and then never again.
        """
        makes = cast("Callable[[], W]", _once(make)) if isinstance(make, Widget) else make
        entry: Entry[W] = Entry(makes, weight)
        if self._last == len(self._entries):
            self._last += 1
        self._entries.append(cast(Entry[Widget], entry))
        self._plan()
        return entry

    def remove_entry(self, entry: Entry[Any]) -> None:
        """Takes an entry away; one that is not there is no error."""
        at = next((at for at in range(len(self._entries) - 1, -1, -1) if self._entries[at] is entry), None)
        if at is None:
            return
        del self._entries[at]
        self._first -= at < self._first
        self._last -= at < self._last
        if entry.widget is not None:
            entry.widget.remove()
            entry.widget = None
        self._plan()

    def clear(self) -> None:
        """Takes all entries away."""
        self._show(0, 0)
        self._entries.clear()
        self.anchor()

    def keep(self, widget: Widget) -> None:
        """Lets a widget stay where it is on the screen, although it is about to grow or shrink."""
        place = next((place for place in self._places if place.widget is widget), None)
        if place is not None:
            self.release_anchor()
            self._held = (widget, place.region.y - self.scroll_offset.y)

    def to_end(self) -> None:
        """Shows the end and stays there."""
        if self._last < len(self._entries):
            self._show(self._above(len(self._entries), _FIRST), len(self._entries))
        self.anchor()

    def action_scroll_end(self) -> None:
        """The end of the conversation, not only of what is mounted."""
        self.to_end()

    def action_scroll_home(self) -> None:
        """The beginning of the conversation."""
        if self._first:
            self._show(0, self._below(0, _FIRST))
        self._held = None
        self.scroll_to(y=0, animate=False)

    def toggle_fold(self) -> None:
        """Opens what is folded in view; if nothing is, folds all of it."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        inside = (p.widget for p in self._places if p.region.y < top + height and p.region.bottom > top)
        seen = [widget for widget in inside if isinstance(widget, Foldable)]
        folded = [widget for widget in seen if widget.folded]
        for widget in folded or seen:
            widget.fold(not folded)

    def move(self, step: int) -> bool:
        """Gives the focus to the next entry below (1) or above (-1) that takes it; False where there is none."""
        stops = [widget for widget in self.children if widget.focusable]
        now = next((at for at, widget in enumerate(stops) if widget.has_focus_within), None)
        to = (len(stops) - 1 if step < 0 else None) if now is None else now + step
        if to is None or not 0 <= to < len(stops):
            return False
        stops[to].focus()
        return True

    def action_move(self, step: int) -> None:
        """Moves the focus, or scrolls where nothing takes it."""
        if not self.move(step):
            self.scroll_relative(y=step, animate=False)

    # What is mounted

    def _plan(self) -> None:
        """Mounts and unmounts soon, once for all that is added until then."""
        if not self._planned and self.is_attached:
            self._planned = True
            self.call_later(self._settle)

    def _settle(self) -> None:
        self._planned = False
        first, last = self._first, self._last
        if self.scroll_y >= self.max_scroll_y and self._anchored:
            self._anchor_released = False  # the end is in view, so it stays there
        if self.at_end:
            if self._weight(first, last) > MOST + STEP:
                first = max(first, self._above(last, _FIRST))
            elif self._weight(first, last) > MOST:
                first = max(first, self._above(last, MOST - STEP))
        else:
            mounted = sum(entry.widget is not None for entry in self._entries[first:last])
            last = min(last, max(first + mounted, self._below(first, MOST)))
        self._show(first, last)

    def _weight(self, first: int, last: int) -> int:
        return sum(entry.weight() for entry in self._entries[first:last])

    def _above(self, last: int, weight: int) -> int:
        """Where entries of about `weight` begin that end at `last`."""
        first = last
        while first and weight > 0:
            first -= 1
            weight -= self._entries[first].weight()
        return first

    def _below(self, first: int, weight: int) -> int:
        """Where entries of about `weight` end that begin at `first`."""
        last = first
        while last < len(self._entries) and weight > 0:
            weight -= self._entries[last].weight()
            last += 1
        return last

    def _show(self, first: int, last: int) -> None:
        """Mounts the entries from `first` up to `last`, and no others."""
        window = self._entries[first:last]
        keep = set(map(id, window))
        gone = [e for e in self._entries[self._first : self._last] if e.widget is not None and id(e) not in keep]
        mounted = [at for at, entry in enumerate(window) if entry.widget is not None]
        self._first, self._last = first, last
        if mounted:
            self._mount(window[: mounted[0]], before=window[mounted[0]].widget)
            self._mount(window[mounted[-1] + 1 :])
        else:
            self._mount(window)
        if gone:
            self.remove_children([entry.widget for entry in gone if entry.widget is not None])
        for entry in gone:
            entry.widget = None
        self._anchored = self._last == len(self._entries)  # an end that is not mounted is no end to stay at

    def _mount(self, entries: Sequence[Entry[Widget]], before: Widget | None = None) -> None:
        for entry in entries:
            entry.widget = entry.make()
        if entries:
            self.mount_all([entry.widget for entry in entries if entry.widget is not None], before=before)

    def _reach(self) -> None:
        """Mounts more where the edge of what is mounted comes near."""
        self._reaching = False
        if self._reached or self._held is None:
            return
        height, count, at = self.size.height, len(self._entries), self._index(self._held[0])
        if self.scroll_y < height and self._first and self._weight(self._first, at) < MOST // 2:
            first = self._above(self._first, STEP)
            last = min(self._last, max(at + 1, self._below(first, MOST)))
        elif (
            self.scroll_y > self.max_scroll_y - height
            and self._last < count
            and self._weight(at, self._last) < MOST // 2
        ):
            last = self._below(self._last, STEP)
            first = max(self._first, min(at, self._above(last, MOST)))
        else:
            return
        self._reached = True
        self.scroll_to(
            y=self.scroll_target_y, animate=False, immediate=True
        )  # an animation would go on to the old line
        self._show(first, last)

    def _index(self, widget: Widget) -> int:
        """The entry of a mounted widget."""
        window = range(self._first, self._last)
        return next((at for at in window if self._entries[at].widget is widget), self._first)

    # What keeps its place

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._hold()
        if not self._reaching:
            self._reaching = True
            self.call_later(self._reach)  # not now: an animation may be in the middle of its step

    def _hold(self) -> None:
        """Remembers what is at the top of what is seen."""
        top = self.scroll_offset.y
        seen = next((place for place in self._places if place.region.bottom > top), None)
        self._held = None if self.at_end or seen is None else (seen.widget, seen.region.y - top)

    @property
    def scroll_offset(self) -> Offset:
        """Never above the beginning: what is short stands at the top, although the end is kept in view."""
        x, y = super().scroll_offset
        return Offset(x, max(0, y))

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Lays out the children; then scrolls so that what is held stays where it is, in the same frame."""
        result = super().arrange(size, optimal)
        if result.placements is not self._places:
            self._places, self._reached = result.placements, False
        if self._held is not None and not self.at_end:
            self._keep(self._held, size.height)
        return result

    def _keep(self, held: tuple[Widget, int], height: int) -> None:
        widget, line = held
        place = next((place.region.y for place in self._places if place.widget is widget), None)
        if place is None or place - line == self.scroll_offset.y:
            return
        end = max(place.region.bottom for place in self._places)
        y = float(max(0, min(place - line, end - height)))
        self.set_reactive(Widget.scroll_y, y)
        self.set_reactive(cast("Reactive[float]", Widget.scroll_target_y), y)
        self.vertical_scrollbar.set_reactive(ScrollBar.position, y)
