"""A double of Google Cloud Storage, as its XML interface is documented: what a store asks of a bucket, in memory.

It is no emulator by Google: it shows that the requests are those of the documentation
(https://cloud.google.com/storage/docs/xml-api/reference-headers), and no more.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

#: Content and generation, by name.
Objects = dict[str, tuple[bytes, int]]


def options(port: int) -> dict[str, str]:
    """Storage options for the double, which knows no accounts."""
    account = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    return {"google_base_url": f"http://127.0.0.1:{port}", "google_service_account_key": json.dumps(account)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: Objects
    lock: threading.Lock
    generations: Iterator[int]

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _place(self) -> tuple[str, dict[str, str]]:
        """The object's name, and the query."""
        path, _, query = self.path.partition("?")
        name = urllib.parse.unquote(path.lstrip("/")).partition("/")[2]
        return name, dict(urllib.parse.parse_qsl(query, keep_blank_values=True))

    def _headers(self, content: bytes, generation: int) -> dict[str, str]:
        return {
            "ETag": f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"',
            "x-goog-generation": str(generation),
            "Last-Modified": formatdate(usegmt=True),
        }

    def do_GET(self) -> None:
        name, query = self._place()
        if not name:
            return self._list(query)
        with self.lock:
            found = self.objects.get(name)
        if found is None:
            return self._refuse(404, "NoSuchKey")
        content, generation = found
        headers = self._headers(content, generation)
        if self.headers.get("If-None-Match") == headers["ETag"]:
            return self._answer(304, headers=headers)
        wanted = self.headers.get("Range")
        if wanted is None:
            return self._answer(200, content, headers)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        end = min(int(last) + 1 if last else len(content), len(content))
        if int(first) >= len(content):
            return self._refuse(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(content)}"
        return self._answer(206, content[int(first) : end], headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        name, _ = self._place()
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        expected = self.headers.get("x-goog-if-generation-match")
        with self.lock:
            _, generation = self.objects.get(name, (b"", 0))
            if expected is not None and int(expected) != generation:
                return self._refuse(412, "PreconditionFailed")
            self.objects[name] = (content, next(self.generations))
            headers = self._headers(*self.objects[name])
        return self._answer(200, headers=headers)

    def do_DELETE(self) -> None:
        name, _ = self._place()
        with self.lock:
            found = self.objects.pop(name, None)
        return self._answer(204) if found else self._refuse(404, "NoSuchKey")

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        with self.lock:
            names = sorted(name for name in self.objects if name.startswith(prefix))
        keys, folders = [], set()
        for name in names:
            below = name[len(prefix) :]
            if delimiter and delimiter in below:
                folders.add(prefix + below.partition(delimiter)[0] + delimiter)
            else:
                keys.append(name)
        parts = [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)]
        for name in keys:
            content, _ = self.objects.get(name, (b"", 0))
            parts.append(
                f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
                f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag></Contents>"
            )
        listed = f"<IsTruncated>false</IsTruncated>{''.join(parts)}"
        body = f'<?xml version="1.0"?><ListBucketResult>{listed}</ListBucketResult>'
        self._answer(200, body.encode(), {"Content-Type": "application/xml"})


@contextmanager
def serve() -> Iterator[int]:
    """Runs the double, in which every bucket is the same; returns its port."""
    its: dict[str, object] = {"objects": {}, "lock": threading.Lock(), "generations": itertools.count(1)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), its))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
