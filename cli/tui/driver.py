"""The terminal's driver: Textual's own, with pastes taken out of the stream of keys before it is looked at.

Textual's parser reads a paste character by character, two megabytes in seconds, and takes an escape inside one for a
key: what follows it is typed, line ends included, so that a paste can send itself. Here a bracketed paste is found by
its two marks, and whatever lies between them is text.
"""

from __future__ import annotations

import codecs
import os
import select
from collections.abc import Iterable

from textual._xterm_parser import BRACKETED_PASTE_END as END
from textual._xterm_parser import BRACKETED_PASTE_START as START
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste
from textual.message import Message

_READ = 64 * 1024
_WAIT = 0.1
"""Seconds until a lone escape is looked at again, and the end of the program noticed."""
_ALT_ENTER = ("\x1b\r", "\x1b[13;2u")
"""What many terminals are set up to send for Shift+Enter, and how the parser knows it."""


class PasteParser(XTermParser):
    """Textual's parser for all but pastes."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._seen = ""
        """The end of what came before: a mark may come in two pieces."""
        self._paste: list[str] | None = None

    def feed(self, data: str) -> Iterable[Message]:
        if not data:
            yield from super().feed(data)
        while data:
            if self._paste is None:
                keys, data = self._until_paste(data)
                yield from super().feed(keys)
            else:
                text, data = self._until_end(data)
                if text is not None:
                    yield from (Paste(text) if isinstance(event, Paste) else event for event in super().feed(END))

    def _until_paste(self, data: str) -> tuple[str, str]:
        """Keys up to and with the mark of a beginning paste, and what comes after it."""
        together = self._seen + data
        at = together.find(START)
        if at < 0:
            self._seen = together[1 - len(START) :]
            return data.replace(*_ALT_ENTER), ""
        end = at + len(START) - len(self._seen)
        self._seen, self._paste = "", []
        return data[:end].replace(*_ALT_ENTER), data[end:]

    def _until_end(self, data: str) -> tuple[str | None, str]:
        """The paste and what comes after it; None while its end has not come."""
        assert self._paste is not None
        together = self._seen + data
        at = together.find(END)
        if at < 0:
            held = 1 - len(END)
            self._paste.append(together[:held])
            self._seen = together[held:]
            return None, ""
        text = "".join((*self._paste, together[:at]))
        self._seen, self._paste = "", None
        return text, together[at + len(END) :]


class TerminalDriver(LinuxDriver):
    """Reads keys and pastes from the terminal."""

    _away = False
    """Another program has the terminal."""

    def suspend_application_mode(self) -> None:
        """Leaves the terminal to another program; what is painted meanwhile is not written."""
        super().suspend_application_mode()
        self._away = True

    def resume_application_mode(self) -> None:
        """Takes it back; the caller paints everything anew."""
        self._away = False
        super().resume_application_mode()

    def write(self, data: str) -> None:
        """Writes, unless nobody is there to write to: Textual's queue would fill up and stop the program."""
        if not self._away:
            super().write(data)

    @property
    def behind(self) -> bool:
        """Whether the terminal has not even begun to take the newest frame."""
        return self._writer_thread is not None and not self._writer_thread._queue.empty()

    def run_input_thread(self) -> None:
        """Reads until the program ends. Bytes that are no text are replaced: they must not end it."""
        parser = PasteParser(self._debug)
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        while not self.exit_event.is_set():
            ready, _, _ = select.select([self.fileno], [], [], _WAIT)
            data = os.read(self.fileno, _READ) if ready else b""
            if ready and not data:
                return  # the terminal is gone
            for event in parser.feed(text) if (text := decode(data)) else ():
                self.process_message(event)
            for event in parser.tick():
                self.process_message(event)
