"""A proxy on loopback in front of any server that is talked to over TCP, which behaves like a network: delays, silence,
connections that are refused or cut, requests that arrive after their client has gone, and answers that are lost.

Run as a program, it prints its port, and takes the commands of commands.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import threading

from commands import obey, settled

#: The probabilities that a connection, or a piece of what is sent on it, fares badly; and how long all pieces take.
SETTINGS: dict[str, float] = {
    "latency": 0.0,
    "hold": 0.0,  # while it is not 0, nothing is carried
    "refuse": 0.0,  # a connection ends at once
    "cut": 0.0,  # the connection ends; the piece does not arrive
    "lose": 0.0,  # the piece arrives; the connection of its client ends
    "late": 0.0,  # the connection of its client ends; the piece arrives a moment later
    "truncate": 0.0,  # half of a piece of an answer arrives; the connection ends
}
CARRIED = {"connections": 0, "pieces": 0}
#: The ports of clients whose connections to the server have not ended.
OPEN: set[int] = set()
TASKS: set[asyncio.Task[None]] = set()
PIECE_BYTES_MAX = 65536
#: How long a server may take to end what ended clients had asked for.
SETTLE_SECONDS_MAX = 30


def drawn(*names: str) -> str | None:
    """Which of some faults happens."""
    draw = random.random()
    for name in names:
        draw -= SETTINGS[name]
        if draw < 0:
            return name
    return None


async def pace() -> None:
    CARRIED["pieces"] += 1
    while SETTINGS["hold"]:
        await asyncio.sleep(0.005)
    if SETTINGS["latency"]:
        await asyncio.sleep(SETTINGS["latency"])


async def requests(client: asyncio.StreamReader, back: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
    """Carries what the client sends; once it has gone, the server is shown the end, and finishes what it does."""
    with contextlib.suppress(OSError):
        while piece := await client.read(PIECE_BYTES_MAX):
            await pace()
            fault = drawn("cut", "lose", "late")
            if fault == "cut":
                break
            if fault == "late":
                back.transport.abort()
                await asyncio.sleep(random.random() / 3)
            server.write(piece)
            await server.drain()
            if fault:
                break
    back.transport.abort()
    with contextlib.suppress(OSError):
        server.write_eof()


async def answers(server: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await server.read(PIECE_BYTES_MAX):
            await pace()
            fault = drawn("truncate")
            if not back.is_closing():
                back.write(piece[: len(piece) // 2] if fault else piece)
                await back.drain()
            if fault:
                back.close()
    back.close()


async def carry(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
    """One connection, from its beginning to the end that the server makes of it."""
    CARRIED["connections"] += 1
    task = asyncio.current_task()
    assert task is not None
    # The loop itself would let it be collected.
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)
    port = back.get_extra_info("peername")[1]
    OPEN.add(port)
    to_server = None
    try:
        if not drawn("refuse"):
            from_server, to_server = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
            await asyncio.gather(requests(client, back, to_server), answers(from_server, back))
    except OSError:
        pass
    finally:
        back.transport.abort()
        if to_server is not None:
            to_server.transport.abort()
        OPEN.discard(port)


async def serve() -> None:
    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listen() -> None:
        obey(SETTINGS, lambda: CARRIED, lambda: settled(("127.0.0.1", port), OPEN, SETTLE_SECONDS_MAX))
        loop.call_soon_threadsafe(done.set)

    threading.Thread(target=listen, daemon=True).start()
    await done.wait()


if __name__ == "__main__":
    random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    asyncio.run(serve())
