"""A model server for measurements: loopback only, OpenAI's chat wire, notes when requests come and answers leave.

What it answers is handed in; what the notes mean is the business of the scripts that start it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import perf_counter, sleep
from typing import Any

BYTES_PER_TOKEN = 4.6
"""Of a request full of numbered lines of the words in `turns`, with o200k: the reported usage rests on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A text, or the call of one tool."""

    text: str = ""
    tool: str = ""
    arguments: str = ""
    """JSON."""
    pace: float = 0.0
    """Seconds between two words of the text; 0 sends all of it at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer; times in seconds of `time.perf_counter`, which all processes share."""

    arrived: float
    """The request's head was read."""
    received: float
    """Its last byte was read."""
    answered: float
    """The answer's last byte was handed to the kernel."""
    body: bytes
    has_tools: bool
    """False for a request that only wants a summary."""


Script = Callable[[Mapping[str, Any], int], Answer]
"""Makes an answer of a request's body and the number of earlier requests of the same kind (with or without tools)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server. `exchanges` grows with each request."""

    url: str
    """As `OPENAI_BASE_URL` takes it."""
    exchanges: list[Exchange]


@contextmanager
def serve(script: Script) -> Generator[Server]:
    """Serves on a free port until the block ends."""
    exchanges: list[Exchange] = []
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script, exchanges))
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield Server(url=f"http://127.0.0.1:{http.server_port}/v1", exchanges=exchanges)
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def _handler(script: Script, exchanges: list[Exchange]) -> type[BaseHTTPRequestHandler]:
    seen: Counter[bool] = Counter()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body of an answer leave together

        def do_POST(self) -> None:
            arrived = perf_counter()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received = perf_counter()
            request = json.loads(body)
            has_tools = bool(request.get("tools"))
            answer = script(request, seen[has_tools])
            seen[has_tools] += 1
            self._send(_events(answer, prompt_tokens=round(len(body) / BYTES_PER_TOKEN)), answer.pace)
            exchanges.append(
                Exchange(arrived=arrived, received=received, answered=perf_counter(), body=body, has_tools=has_tools)
            )

        def do_GET(self) -> None:
            self.send_error(404)

        def _send(self, events: Sequence[bytes], pace: float) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(sum(map(len, events))))
            self.end_headers()
            due = perf_counter()
            for event in events:
                self.wfile.write(event)
                if pace:
                    self.wfile.flush()
                    due += pace
                    sleep(max(0.0, due - perf_counter()))
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    return Handler


def _events(answer: Answer, *, prompt_tokens: int) -> list[bytes]:
    """The answer as server-sent events."""
    words = re.findall(r"\s*\S+\s*?", answer.text) if answer.pace else [answer.text]
    *before, last = words or [""]
    delta: dict[str, object] = {"role": "assistant", "content": last or None}
    if answer.tool:
        function = {"name": answer.tool, "arguments": answer.arguments}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{prompt_tokens}", "type": "function", "function": function}]
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 20, "total_tokens": prompt_tokens + 20}
    stop = "tool_calls" if answer.tool else "stop"
    chunks: list[dict[str, object]] = [
        *({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in before),
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
        {"choices": [], "usage": usage},
    ]
    head = {"id": "bench", "object": "chat.completion.chunk", "created": 0, "model": "bench"}
    lines = [*(json.dumps({**head, **chunk}) for chunk in chunks), "[DONE]"]
    return [f"data: {line}\n\n".encode() for line in lines]
