"""S3 servers built from pinned sources by Go, started on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ACCESS, SECRET = "test-access", "canary-secret-0123456789"

#: Go packages; their sources are pinned.
PACKAGES = {
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    "minio": "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
}


def built() -> Path:
    """The folder of built servers, shared by all clones."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "drumlin-servers"


def cache(name: str) -> Path:
    """The folder of a server."""
    return built() / PACKAGES[name].replace("/", "_")


def build(name: str) -> Path | None:
    """The server's program, built if necessary; None without Go."""
    program = cache(name) / name
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        return None
    cache(name).mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "GOBIN": str(cache(name)), "GOFLAGS": "-buildvcs=false"}
    subprocess.run([go, "install", PACKAGES[name]], check=True, env=environment, cwd=cache(name))
    return program


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def options(port: int) -> dict[str, str]:
    """Storage options for a server on loopback."""
    return {
        "endpoint": f"http://127.0.0.1:{port}",
        "region": "us-east-1",
        "aws_access_key_id": ACCESS,
        "aws_secret_access_key": SECRET,
    }


def wait_until_up(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the server did not come up")


@contextmanager
def serve(name: str, folder: Path) -> Iterator[int]:
    """Runs a server over ``folder``, in which each folder is a bucket; returns its port. The buckets are
    ``test`` and, for a store at the top of one, ``whole``."""
    program = build(name)
    assert program is not None
    port = free_port()
    for bucket in ("test", "whole"):
        (folder / bucket).mkdir(parents=True)
    if name == "versitygw":
        command = [str(program), "--access", ACCESS, "--secret", SECRET, "--region", "us-east-1"]
        command += ["--port", f"127.0.0.1:{port}", "posix", str(folder)]
    else:
        command = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder)]
    environment = {**os.environ, "MINIO_ROOT_USER": ACCESS, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_UPDATE": "off"}
    log = open(folder.parent / f"{name}.log", "wb")  # noqa: SIM115 - closed with the server
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        wait_until_up(port, process)
        yield port
    finally:
        process.kill()
        process.wait()
        log.close()
