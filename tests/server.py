"""A model server for tests: OpenAI's chat completions over loopback, answering from a list and recording what it gets.

In a process of its own:  python tests/server.py --script answers.json --port-file port.txt
In a test: a fixture, as in tests/agent/model/conftest.py, which loads this file by its path (test folders are no
packages). Types: `if TYPE_CHECKING: from ...server import Answer, ModelServer`.

An answer is a mapping (`Answer`), so scripts may be JSON. After the last one the server says that there are no more.
"""

from __future__ import annotations

import argparse
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, TypedDict, cast

from outgoing import ANY_SERVER, Dialect, problems_in, template_of


class Answer(TypedDict, total=False):
    """One answer. `body` makes it plain HTTP; `chunks` streams these; else a stream is made of the other fields."""

    status: int
    headers: dict[str, str]
    body: object
    """Sent as JSON; a string is sent as it is."""
    chunks: list[object]
    """Objects are sent as events, strings raw, numbers wait for so many seconds."""
    text: str
    thinking: str
    calls: list[dict[str, Any]]
    """`{"name", "arguments", "id"}` each."""
    usage: dict[str, Any]
    finish: str | None
    """None: the stream ends without a finish reason."""
    whole: bool
    """Not streamed: one JSON object."""
    wait: float
    """Seconds before the first byte."""
    pace: float
    """Seconds before each chunk."""
    cut: int
    """The connection breaks after so many chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A request that the server got."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """The JSON, or None."""


NO_MORE: Answer = {"text": "(the server has no more answers)"}


class ModelServer:
    """Serves until closed. `answers` may be added to at any time; `routes` answer GET requests by path."""

    def __init__(
        self,
        *answers: Answer,
        routes: Mapping[str, object] | None = None,
        count: Callable[[Any], int] | None = None,
        tls: tuple[Path, Path] | None = None,
        port: int = 0,
        dialect: Dialect | None = None,
    ) -> None:
        """`count` gives the tokens of a request's body, which its answer reports; `tls`: certificate and key.

        Requests that a provider would refuse are refused, and stand in `problems`: a test that sends such on purpose
        clears these. `dialect` is what is spoken at
        `/chat/completions`; None: what any server understands, and from the lean lane the model's template too.
        """
        self.dialect = dialect
        self.problems: list[str] = []
        self.count = count
        self.answers = list(answers)
        self.routes = dict(routes or {})
        self.requests: list[Recorded] = []
        self.connections = 0
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.owner = self
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "https" if tls else "http"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens at."""
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        """The base URL, with `/v1`."""
        return f"{self._scheme}://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[Any]:
        """The bodies of the chat requests."""
        return [r.body for r in self.requests if r.path.endswith("/chat/completions")]

    def look_at(self, path: str, body: Any, client: str) -> list[str]:
        """Why a provider would refuse the request; noted too."""
        ours = client.startswith("deepagent/")
        dialect = self.dialect or (template_of(body.get("model", "")) if ours else ANY_SERVER)
        problems = problems_in(path, body, dialect)
        self.problems += problems
        return problems

    def close(self) -> None:
        """Stops. Fails where a provider would have refused what was sent."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
        assert self.problems == [], "a provider would refuse this"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: ModelServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that break off are part of the tests."""


@dataclass(slots=True)
class _Stream:
    """Where the chunks of one answer go."""

    handler: _Handler
    answer: Answer
    sent: int = field(default=0)

    def send(self, data: bytes) -> bool:
        """Sends a piece; False once the connection is to break."""
        if self.sent == self.answer.get("cut", -1):
            return False
        self.handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.sent += 1
        return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._owner.connections += 1

    @property
    def _owner(self) -> ModelServer:
        return cast(_Server, self.server).owner

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._record(None)
        path = self.path.split("?")[0]
        if path in self._owner.routes:
            self._plain({"body": self._owner.routes[path]})
        elif path.endswith("/models"):
            self._plain({"body": {"object": "list", "data": [{"id": "test-model", "object": "model"}]}})
        else:
            self._plain({"status": 404, "body": {"error": {"message": f"no such path: {path}"}}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw or b"null")
        self._record(body)
        path = self.path.split("?")[0]
        if path in self._owner.routes:
            self._plain({"body": self._owner.routes[path]})
            return
        if problems := self._owner.look_at(path, body, self.headers.get("user-agent", "")):
            self._plain({"status": 400, "body": {"error": {"message": f"refused: {problems}"}}})
            return
        answers = self._owner.answers
        answer = answers.pop(0) if answers else NO_MORE
        if self._owner.count is not None:
            output = answer.get("usage", {}).get("completion_tokens", 1 + len(answer.get("text", "")) // 4)
            usage = {"prompt_tokens": self._owner.count(body), "completion_tokens": output}
            answer = cast(Answer, {**answer, "usage": usage})
        time.sleep(answer.get("wait", 0))
        if "body" in answer:
            self._plain(answer)
        elif "chunks" not in answer and (answer.get("whole") or not body.get("stream")):
            self._plain({**answer, "body": whole(answer)})
        else:
            self._events(answer)

    def _record(self, body: object) -> None:
        headers = {key.lower(): value for key, value in self.headers.items()}
        self._owner.requests.append(Recorded(method=self.command, path=self.path, headers=headers, body=body))

    def _plain(self, answer: Answer) -> None:
        body = answer.get("body")
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"content-type": "text/plain" if isinstance(body, str) else "application/json"}
        self._head(
            answer.get("status", 200), {**headers, **answer.get("headers", {}), "content-length": str(len(data))}
        )
        self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()

    def _events(self, answer: Answer) -> None:
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **answer.get("headers", {})}
        self._head(answer.get("status", 200), head)
        stream = _Stream(self, answer)
        for chunk in answer["chunks"] if "chunks" in answer else [*chunks(answer), "data: [DONE]\n\n"]:
            if isinstance(chunk, (int, float)):
                time.sleep(chunk)
                continue
            time.sleep(answer.get("pace", 0))
            data = chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk)}\n\n"
            if not stream.send(data.encode("utf-8", "surrogatepass")):
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")


def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: object) -> dict[str, Any]:
    """A chunk as OpenAI sends it."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model-1"}
    return {**head, "choices": [choice], **more}


def chunks(answer: Answer) -> Iterator[dict[str, Any]]:
    """The chunks of an answer: role, reasoning, text in pieces, calls in pieces, finish, usage."""
    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(answer.get("thinking", "")):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(answer.get("text", "")):
        yield chunk({"content": piece})
    for index, call in enumerate(answer.get("calls", [])):
        function = {"name": call["name"], "arguments": ""}
        head = {"index": index, "id": _call_id(index, call), "type": "function", "function": function}
        yield chunk({"tool_calls": [head]})
        for piece in _pieces(_arguments(call)):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    finish = answer.get("finish", "tool_calls" if answer.get("calls") else "stop")
    if finish:
        yield chunk({}, finish)
    if usage := answer.get("usage"):
        yield {**chunk({}), "choices": [], "usage": usage}


def whole(answer: Answer) -> dict[str, Any]:
    """The answer in one object."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.get("text", "")}
    if calls := answer.get("calls"):
        message["tool_calls"] = [
            {"id": _call_id(i, c), "type": "function", "function": {"name": c["name"], "arguments": _arguments(c)}}
            for i, c in enumerate(calls)
        ]
    finish = answer.get("finish", "tool_calls" if answer.get("calls") else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test-model-1"}
    return {**head, "choices": [choice], "usage": answer.get("usage")}


def _call_id(index: int, call: Mapping[str, Any]) -> str:
    return call.get("id", f"call_abcdef{index}")


def _arguments(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _pieces(text: str) -> list[str]:
    return [text[i : i + 7] for i in range(0, len(text), 7)]


def main() -> None:
    """Serves a script until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--script", type=Path, help="a JSON list of answers")
    parser.add_argument("--port-file", type=Path, help="where the port is written once the server listens")
    parser.add_argument("--requests", type=Path, help="where each request's body is appended as a line of JSON")
    options = parser.parse_args()
    server = ModelServer(*(json.loads(options.script.read_text()) if options.script else ()))
    if options.port_file:
        part = options.port_file.with_suffix(".part")
        part.write_text(str(server.port))
        part.replace(options.port_file)
    written = 0
    while True:
        time.sleep(0.02)
        if options.requests and len(server.requests) > written:
            new, written = server.requests[written:], len(server.requests)
            with options.requests.open("a") as file:
                file.writelines(json.dumps({"path": r.path, "body": r.body}) + "\n" for r in new)


if __name__ == "__main__":
    main()
