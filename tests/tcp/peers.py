# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Small clients and servers in Python that the tests run: peers.py WHAT ADDRESS PORT."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import sys
import time

PATIENCE = 60


def wait_for_listener(address: str, port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((address, port), PATIENCE).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def memcached(address: str, port: int) -> None:
    """Values of 1 byte to 500 kB, eight connections in turn."""
    peers = [socket.create_connection((address, port), PATIENCE) for _ in range(8)]
    files = [peer.makefile("rwb") for peer in peers]
    values = {
        f"key{i}": random.Random(i).randbytes([1, 64, 1400, 20000, 500000][i % 5])
        for i in range(100)
    }
    for i, (key, value) in enumerate(values.items()):
        file = files[i % 8]
        file.write(f"set {key} 0 0 {len(value)}\r\n".encode() + value + b"\r\n")
        file.flush()
        assert file.readline() == b"STORED\r\n"
    for i, (key, value) in enumerate(values.items()):
        file = files[(i + 3) % 8]
        file.write(f"get {key} nothing\r\n".encode())
        file.flush()
        assert file.readline() == f"VALUE {key} 0 {len(value)}\r\n".encode()
        assert file.read(len(value) + 2) == value + b"\r\n"
        assert file.readline() == b"END\r\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(50000):
            writer.write(data)
            await writer.drain()
        writer.close()
        await writer.wait_closed()
    except ConnectionResetError:
        pass


async def serve(address: str, port: int) -> None:
    server = await asyncio.start_server(_answer, address, port, backlog=128)
    print("ready", flush=True)
    await server.serve_forever()


async def _stream(address: str, port: int, number: int) -> None:
    reader, writer = await asyncio.open_connection(address, port)
    data = random.Random(number).randbytes(100000)
    writer.write(data)
    writer.write_eof()
    assert await reader.read(-1) == data
    writer.close()
    await writer.wait_closed()


async def talk(address: str, port: int) -> None:
    await asyncio.gather(*(_stream(address, port, i) for i in range(50)))
    reader, writer = await asyncio.open_connection(address, port)
    try:
        await asyncio.wait_for(reader.read(1), 0.02)
    except TimeoutError:
        pass
    else:
        raise AssertionError("something was read though nothing was sent")
    writer.write(b"x" * 10)
    assert await reader.readexactly(10) == b"x" * 10
    # A reset instead of an end.
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    writer.transport.abort()
    await _stream(address, port, 1000)


def main() -> None:
    what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "await":
        wait_for_listener(address, port)
    elif what == "memcached":
        memcached(address, port)
        print("ok")
    elif what == "serve":
        asyncio.run(serve(address, port))
    elif what == "talk":
        asyncio.run(talk(address, port))
        print("ok")


if __name__ == "__main__":
    main()
