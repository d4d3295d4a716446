"""PostgreSQL and etcd from Debian's packages, started on loopback: servers that keep logs; and a pooler."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.s3 import free_port, wait_until_up

#: Debian's packages, and the program of each.
PACKAGES = {"postgresql": "postgres", "etcd-server": "etcd", "pgbouncer": "pgbouncer"}
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


class Server:
    """A server that runs, and can be killed, started again and stopped for a while."""

    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """For a store's ``log``."""
        return self.address_at(self.port)

    def address_at(self, port: int) -> str:
        """The same by another port, where a proxy listens."""
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """As a crash of the process does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """All its processes are stopped, and then continue."""
        assert self.process is not None
        pids = [self.process.pid, *_children(self.process.pid)]
        _signal(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(pids, signal.SIGCONT)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Postgres(Server):
    """PostgreSQL over ``folder``."""

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
        self.start()

    def _run(self, command: list[str], check: bool = False) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, user=USER, cwd="/", capture_output=True, check=check)

    def address_at(self, port: int) -> str:
        return f"postgresql://drumlin:{PASSWORD}@127.0.0.1:{port}/postgres"

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
        ready = [str(self.bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "drumlin"]
        ready += ["-d", "postgres"]
        for _ in range(600):
            if self._run(ready).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError("PostgreSQL did not come up")

    def sql(self, statement: str) -> str:
        command = [str(self.bin / "psql"), "-qAt", "-d", self.address, "-c", statement]
        return subprocess.run(command, capture_output=True, check=True, text=True, cwd="/").stdout.strip()

    def kill(self) -> None:
        assert self.process is not None
        # The processes that serve clients are killed with it.
        self._run([str(self.bin / "pg_ctl"), "-D", str(self.data), "-m", "immediate", "stop"])
        self.process.wait()


class Etcd(Server):
    """etcd over ``folder``, one member."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.peers = folder, free_port(), free_port()
        self.start()

    def address_at(self, port: int) -> str:
        return f"etcd://127.0.0.1:{port}"

    def start(self) -> None:
        program = find("etcd-server")
        assert program is not None
        here, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peers}"
        command = [str(program), "--data-dir", f"{self.folder}/data", "--listen-client-urls", here]
        command += ["--advertise-client-urls", here, "--listen-peer-urls", peer]
        command += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until_up(self.port, self.process)


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
def bouncer(postgres: Postgres, pooling: str) -> Iterator[str]:
    """The address of a pooler in front of a server; each transaction, or session, gets one of two connections."""
    program = find("pgbouncer")
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="drumlin-bouncer-", dir="/tmp") as name:
        folder, port = Path(name), free_port()
        folder.chmod(0o755)
        (folder / "users").write_text(f'"drumlin" "{PASSWORD}"\n')
        server = f"postgres = host=127.0.0.1 port={postgres.port} dbname=postgres"
        settings = ["listen_addr=127.0.0.1", f"listen_port={port}", "unix_socket_dir=", "auth_type=scram-sha-256"]
        settings += [f"auth_file={folder}/users", f"pool_mode={pooling}", "default_pool_size=2"]
        (folder / "settings").write_text("\n".join(["[databases]", server, "[pgbouncer]", *settings, ""]))
        process = subprocess.Popen([str(program), str(folder / "settings")], user=USER, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield postgres.address_at(port)
        finally:
            process.kill()
            process.wait()


@contextmanager
def etcd() -> Iterator[Etcd]:
    """A server in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="drumlin-etcd-") as folder:
        server = Etcd(Path(folder))
        try:
            yield server
        finally:
            server.stop()
