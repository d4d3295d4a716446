"""A proxy on loopback in front of an S3 server that behaves like a network: delays, refusals, cut connections,
answers lost after the request was done, requests done late, and truncated answers.

Run as a program, it prints its port, and takes the commands of commands.py.
"""

from __future__ import annotations

import http.client
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from commands import obey, settled

#: The probabilities that a request goes wrong, and how long each takes at least.
SETTINGS: dict[str, float] = {
    "latency": 0.0,
    "refuse": 0.0,  # 503, not done
    "cut": 0.0,  # the connection ends, not done
    "lose": 0.0,  # done; the connection ends
    "error": 0.0,  # done; 500
    "late": 0.0,  # the connection ends; done a moment later
    "truncate": 0.0,  # done; half of the answer's body
    "partial": 0.0,  # of a bulk deletion, every tenth key is reported to have failed
    "lie": 0.0,  # refused for its condition; reported as done: a planted bug, which no network makes
}
REQUESTS: dict[str, int] = {}
LOCK = threading.Lock()
#: The ports of clients whose connections are being served.
OPEN: set[int] = set()
#: How long clients that have ended may leave requests under way.
SETTLE_SECONDS_MAX = 90


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: tuple[str, int]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.upstream, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders()
            if body:
                connection.send(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def cut(self) -> None:
        self.close_connection = True
        self.connection.close()

    def handle_one(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        with LOCK:
            key = self.command + ("?delete" if "delete" in self.path.partition("?")[2] else "")
            REQUESTS[key] = REQUESTS.get(key, 0) + 1
            draw = random.random()
        if SETTINGS["latency"]:
            time.sleep(SETTINGS["latency"])
        fault = None
        for name in ("refuse", "cut", "lose", "error", "late", "truncate", "partial"):
            draw -= SETTINGS[name]
            if draw < 0:
                fault = name
                break
        if fault == "refuse":
            return self.answer(503, [], b"<Error><Code>SlowDown</Code><Message>wait</Message></Error>")
        if fault == "cut":
            return self.cut()
        if fault == "late" and self.command == "PUT":
            self.cut()
            time.sleep(random.random() / 3)
            self.forward(body)
            return None
        status, headers, content = self.forward(body)
        if status == 412 and random.random() < SETTINGS["lie"]:
            return self.answer(200, [("ETag", f'"{random.getrandbits(128):032x}"')], b"")
        if fault == "lose":
            return self.cut()
        if fault == "error":
            return self.answer(500, [], b"<Error><Code>InternalError</Code><Message>lost</Message></Error>")
        if fault == "partial" and key.endswith("?delete"):
            head, *deleted = content.split(b"<Deleted>")
            for at in range(0, len(deleted), 10):
                name, _, tail = deleted[at].partition(b"</Deleted>")
                deleted[at] = name + b"<Code>InternalError</Code><Message>not now</Message></Error>" + tail
            parts = (b"<Error>" + part if at % 10 == 0 else b"<Deleted>" + part for at, part in enumerate(deleted))
            content = head + b"".join(parts)
        if fault == "truncate" and self.command == "GET" and len(content) > 1:
            return self.answer(status, headers, content, content[: len(content) // 2])
        return self.answer(status, headers, content)

    def answer(self, status: int, headers: list[tuple[str, str]], content: bytes, sent: bytes | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        if self.command == "HEAD":
            length = next((value for name, value in headers if name.lower() == "content-length"), "0")
            self.send_header("Content-Length", length)
        elif status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(content if sent is None else sent)
        if sent is not None:
            self.cut()

    def do_GET(self) -> None:
        try:
            self.handle_one()
        except (OSError, http.client.HTTPException, ValueError):
            self.close_connection = True

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def process_request(self, request: Any, client_address: Any) -> None:
        with LOCK:
            OPEN.add(client_address[1])
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with LOCK:
                OPEN.discard(client_address[1])

    def settle(self) -> int:
        """Waits until nothing is under way; the clients must have ended. Returns how many connections remain."""
        return settled(("127.0.0.1", self.server_port), OPEN, SETTLE_SECONDS_MAX)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def counted() -> dict[str, int]:
    with LOCK:
        return dict(REQUESTS)


def main() -> None:
    Handler.upstream = ("127.0.0.1", int(sys.argv[1]))
    random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    obey(SETTINGS, counted, server.settle)


if __name__ == "__main__":
    main()
