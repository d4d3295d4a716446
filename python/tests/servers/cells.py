"""PostgreSQL and etcd from Debian's packages, started on loopback: servers that keep logs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.s3 import free_port

#: Debian's packages, and the program of each.
PACKAGES = {"postgresql": "postgres", "etcd-server": "etcd"}
#: PostgreSQL refuses to be run by root.
USER = "nobody" if hasattr(os, "geteuid") and os.geteuid() == 0 else None
PASSWORD = "canary-password-0123456789"


def find(package: str) -> Path | None:
    """The server's program; None if it is not installed."""
    found = shutil.which(PACKAGES[package], path="/usr/bin:/usr/sbin:" + os.environ.get("PATH", ""))
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if package == "postgresql" and versions:
        return versions[-1]
    return Path(found) if found else None


def install() -> list[str]:
    """Installs the packages that are missing, where this may be done; what to say of each."""
    missing = [package for package in PACKAGES if find(package) is None]
    if missing and USER is not None and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", "-qq", *command], env=environment, stdout=subprocess.DEVNULL, check=False)
    return [str(find(package) or f"NO APT: {package} is not installed") for package in PACKAGES]


class Postgres:
    """A server over ``folder``, which can be stopped, killed and started again."""

    def __init__(self, folder: Path) -> None:
        program = find("postgresql")
        assert program is not None
        self.bin, self.data, self.port = program.parent, folder / "data", free_port()
        folder.mkdir(parents=True, exist_ok=True)
        if USER is not None:
            shutil.chown(folder, USER)
        secret = folder / "secret"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o644)
        command = [str(self.bin / "initdb"), "-D", str(self.data), "-U", "drumlin", "-A", "scram-sha-256"]
        self._run([*command, f"--pwfile={secret}", "-E", "UTF8", "--no-locale", "--no-sync"], check=True)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def _run(self, command: list[str], check: bool = False) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, user=USER, cwd="/", capture_output=True, check=check)

    @property
    def address(self) -> str:
        return f"postgresql://drumlin:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        settings = [
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            "unix_socket_directories=",
            "shared_buffers=32MB",
        ]
        command = [str(self.bin / "postgres"), "-D", str(self.data)]
        for setting in settings:
            command += ["-c", setting]
        self.process = subprocess.Popen(
            command, user=USER, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        ready = [
            str(self.bin / "pg_isready"),
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            "drumlin",
            "-d",
            "postgres",
        ]
        for _ in range(600):
            if self._run(ready).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError("PostgreSQL did not come up")

    def sql(self, statement: str) -> str:
        command = [str(self.bin / "psql"), "-qAt", "-d", self.address, "-c", statement]
        return subprocess.run(command, capture_output=True, check=True, text=True, cwd="/").stdout.strip()

    def kill(self) -> None:
        """As a crash of the process does."""
        assert self.process is not None
        self._run([str(self.bin / "pg_ctl"), "-D", str(self.data), "-m", "immediate", "stop"])
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.kill()


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server in a folder of its own, which the user of the server can reach."""
    folder = Path(tempfile.mkdtemp(prefix="drumlin-postgres-", dir="/tmp"))
    folder.chmod(0o755)
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def etcd() -> Iterator[str]:
    """A server; its address."""
    program = find("etcd-server")
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="drumlin-etcd-") as folder:
        port, peers = free_port(), free_port()
        here, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
        command = [str(program), "--data-dir", f"{folder}/data", "--listen-client-urls", here]
        command += ["--advertise-client-urls", here, "--listen-peer-urls", peer]
        command += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            from servers.s3 import wait_until_up

            wait_until_up(port, process)
            yield f"etcd://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
