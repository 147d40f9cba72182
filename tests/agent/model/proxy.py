"""A small HTTP proxy on loopback: forwards plain requests, tunnels CONNECT. Whatever host is asked for, it goes to one
given port, so that tests can use names that do not exist."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Thread


class Proxy:
    """Serves in a thread until closed."""

    def __init__(self, target: int, *, refuse: bool = False) -> None:
        """`target` is the port that everything goes to; `refuse`: tunnels are denied with 407."""
        self.asked: list[str] = []
        self.port = 0
        self._target = target
        self._refuse = refuse
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(5)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        """The proxy's address."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stops."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            self.asked.append(target)
            if method == "CONNECT" and self._refuse:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = "/" + target.split("/", 3)[3]
                back.write(head.replace(target.encode(), path.encode(), 1))
            try:
                await asyncio.gather(_copy(reader, back), _copy(there, writer))
            finally:
                back.close()
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        sink.write(data)
        await sink.drain()
    with suppress(OSError):
        sink.write_eof() if sink.can_write_eof() else sink.close()
