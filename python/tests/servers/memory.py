"""A bucket in memory, spoken to as S3 is, in a thread of the test's own process: each request may be made to wait."""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

Answer = tuple[int, dict[str, str], bytes]


class Bucket:
    """Objects by key. ``before`` is called before each request is done, in the thread that serves it; what it returns,
    if anything, is the answer instead."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects = dict(objects or {})
        self.before: Callable[[str, str], Answer | None] = lambda _method, _key: None
        self.lock = threading.Lock()
        self.port = 0

    @property
    def options(self) -> dict[str, str]:
        keys = {"aws_access_key_id": "test-access", "aws_secret_access_key": "canary-secret"}
        return {"endpoint": f"http://127.0.0.1:{self.port}", "region": "us-east-1", **keys}

    def answer(self, method: str, key: str, query: dict[str, list[str]], headers: Any, body: bytes) -> Answer:
        with self.lock:
            there = self.objects.get(key)
            tag = f'"{hashlib.md5(there).hexdigest()}"' if there is not None else ""
            if method == "POST" and "delete" in query:
                keys = [unescape(found) for found in re.findall(r"<Key>(.*?)</Key>", body.decode())]
                for found in keys:
                    self.objects.pop(found, None)
                deleted = "".join(f"<Deleted><Key>{escape(found)}</Key></Deleted>" for found in keys)
                return 200, {}, f"<DeleteResult>{deleted}</DeleteResult>".encode()
            if method == "GET" and not key:
                return 200, {}, self.listed(query.get("prefix", [""])[0], query.get("delimiter", [""])[0])
            if method == "PUT":
                wanted, absent = headers.get("If-Match"), headers.get("If-None-Match")
                if (wanted is not None and wanted != tag) or (absent == "*" and there is not None):
                    return error(412, "PreconditionFailed")
                self.objects[key] = body
                return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
            if method == "DELETE":
                self.objects.pop(key, None)
                return 204, {}, b""
            if there is None:
                return error(404, "NoSuchKey")
            told = {"ETag": tag, "Last-Modified": email.utils.formatdate(0, usegmt=True), "Accept-Ranges": "bytes"}
            if headers.get("If-None-Match") == tag:
                return 304, told, b""
            if part := re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range") or ""):
                first, last = int(part[1]), min(int(part[2]), len(there) - 1)
                if first >= len(there):
                    return error(416, "InvalidRange")
                told["Content-Range"] = f"bytes {first}-{last}/{len(there)}"
                return 206, told, there[first : last + 1]
            return 200, told, there

    def listed(self, prefix: str, delimiter: str) -> bytes:
        items, folders = [], set()
        for key, content in self.objects.items():
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
                continue
            about = f"<LastModified>1970-01-01T00:00:00.000Z</LastModified><Size>{len(content)}</Size>"
            items.append(f"<Contents><Key>{escape(key)}</Key>{about}</Contents>")
        items += [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders)]
        told = f"<Name>test</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(items)}</KeyCount>"
        return f"<ListBucketResult>{told}<IsTruncated>false</IsTruncated>{''.join(items)}</ListBucketResult>".encode()


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def error(status: int, code: str) -> Answer:
    """An answer of S3 that says what is wrong."""
    return status, {}, f"<Error><Code>{code}</Code><Message>as asked</Message></Error>".encode()


@contextlib.contextmanager
def serve(bucket: Bucket) -> Iterator[Bucket]:
    """Serves the bucket under the name ``test``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are written one after the other; each would wait for the other's acknowledgement.
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            try:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                where = urlsplit(self.path)
                key = unquote(where.path).removeprefix("/test").removeprefix("/")
                query = parse_qs(where.query, keep_blank_values=True)
                given = bucket.before(self.command, key)
                status, headers, content = given or bucket.answer(self.command, key, query, self.headers, body)
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status not in (204, 304):
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD" and status not in (204, 304):
                    self.wfile.write(content)
            except (OSError, ValueError):
                self.close_connection = True

        do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    bucket.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield bucket
    finally:
        # A test that was interrupted in the middle of a request must not wait for it here.
        threading.Thread(target=server.shutdown, daemon=True).start()
        server.server_close()
