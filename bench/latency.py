"""A proxy on loopback that adds latency to each piece that clients send, and passes answers on as they come: to each
request, since a client waits for the answer before it sends the next one on the same connection. Made for readers: what
is written through it in large pieces becomes slow. Prints its port; ends with its standard input.

    python bench/latency.py PORT SECONDS
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

CHUNK = 1 << 18


def pass_on(source: socket.socket, to: socket.socket, latency: float) -> None:
    """Passes on what is read, each piece ``latency`` seconds after it came, until the connection ends."""
    buffer = memoryview(bytearray(CHUNK))
    try:
        while count := source.recv_into(buffer):
            if latency:
                time.sleep(latency)
            to.sendall(buffer[:count])
        to.shutdown(socket.SHUT_WR)
    except OSError:
        # The other side has ended the connection.
        to.close()


def main(port: int, latency: float) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server:
        print(server.getsockname()[1], flush=True)
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        while True:
            client, _ = server.accept()
            behind = socket.create_connection(("127.0.0.1", port))
            for end in (client, behind):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=pass_on, args=(client, behind, latency), daemon=True).start()
            threading.Thread(target=pass_on, args=(behind, client, 0.0), daemon=True).start()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
