"""Anthropic's batch API in front of a fake: batches are answered by the fake's own Messages, all else is passed on."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.fakes import FakeServer

_PATH = "/anthropic/v1/messages/batches"


class Batches(ThreadingHTTPServer):
    """The proxy, and what went through it in batches."""

    daemon_threads = True

    def __init__(self, fake: FakeServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake
        self.results: dict[str, list[dict[str, object]]] = {}
        self.custom_ids: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def ask(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.fake.port)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers["content-type"]
        finally:
            connection.close()

    def create(self, headers: dict[str, str], requests: list[dict[str, object]]) -> dict[str, object]:
        name = f"batch_{len(self.results)}"
        self.results[name] = []
        for request in requests:
            _, body, _ = self.ask("/anthropic/v1/messages", headers, json.dumps(request["params"]).encode())
            self.custom_ids.append(str(request["custom_id"]))
            result = {"type": "succeeded", "message": json.loads(body)}
            self.results[name].append({"custom_id": request["custom_id"], "result": result})
        return self.state(name)

    def state(self, name: str) -> dict[str, object]:
        counts = {"processing": 0, "succeeded": len(self.results[name]), "errored": 0, "canceled": 0, "expired": 0}
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended",
            "request_counts": counts,
            "created_at": "2026-11-30T00:00:00Z",
            "ended_at": "2026-11-30T00:00:01Z",
            "expires_at": "2026-12-01T00:00:00Z",
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.url}{_PATH}/{name}/results",
        }


class _Handler(BaseHTTPRequestHandler):
    server: Batches
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        kept = ("content-type", "authorization", "x-api-key", "anthropic-version", "anthropic-beta")
        headers = {name: value for name, value in self.headers.items() if name.lower() in kept}
        if self.path.split("?")[0] == _PATH:
            made = self.server.create(headers, json.loads(body)["requests"])
            self._send(200, json.dumps(made).encode())
        else:
            self._send(*self.server.ask(self.path, headers, body))

    def do_GET(self) -> None:
        name = self.path.removeprefix(f"{_PATH}/").split("/")[0].split("?")[0]
        if "/results" in self.path:
            self._send(200, "".join(json.dumps(row) + "\n" for row in self.server.results[name]).encode())
        else:
            self._send(200, json.dumps(self.server.state(name)).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def batching(fake: FakeServer) -> Iterator[Batches]:
    """The proxy, up."""
    proxy = Batches(fake)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join(10)
