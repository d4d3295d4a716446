"""Azurite, Microsoft's emulator of Azure's blob storage, from npm, started on loopback."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

from .s3 import built, free_port, wait_until_up

#: The package and all that it needs, pinned.
PACKAGE = Path(__file__).with_name("azurite")
#: The account that every emulator has, and its key, which are documented.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def build() -> Path | None:
    """The emulator's script, installed if necessary; None without Node.js and npm."""
    lock = (PACKAGE / "package-lock.json").read_bytes()
    folder = built() / f"azurite-{hashlib.sha256(lock).hexdigest()[:16]}"
    script = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    npm, node = shutil.which("npm"), shutil.which("node")
    if node is None or script.exists():
        return script if node else None
    if npm is None:
        return None
    shutil.copytree(PACKAGE, folder, dirs_exist_ok=True)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return script


def options(port: int) -> dict[str, str]:
    """Storage options for the emulator."""
    return {
        "azure_storage_account_name": ACCOUNT,
        "azure_storage_account_key": KEY,
        "azure_storage_endpoint": f"http://127.0.0.1:{port}/{ACCOUNT}",
    }


def _make_container(port: int, name: str) -> None:
    """Signed with the account's key: https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    signed = "\n".join(f"{key}:{value}" for key, value in sorted(headers.items()))
    text = "PUT" + "\n" * 12 + f"{signed}\n/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    address = f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(address, method="PUT", headers=headers), timeout=30).close()


@contextmanager
def serve(folder: Path) -> Iterator[int]:
    """Runs the emulator over ``folder``, with a container ``test``; returns its port."""
    script = build()
    assert script is not None
    folder.mkdir(parents=True)
    port = free_port()
    command = ["node", str(script), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
    process = subprocess.Popen(
        [*command, "--silent", "--skipApiVersionCheck", "--disableTelemetry"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_up(port, process)
        _make_container(port, "test")
        yield port
    finally:
        process.kill()
        process.wait()
