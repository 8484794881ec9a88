# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A wire that loses and reorders: lossy.py LEFT RIGHT [SEED] forwards frames between two devices.

Of IPv4's frames one in a hundred is lost and one in fifty goes behind those of the next 2 ms. netem would do
the same, but kernels of small machines lack it. After SIGTERM it says how many it forwarded, lost and held
back, and ends.
"""

from __future__ import annotations

import random
import select
import signal
import socket
import sys
import time

ALL = 3  # ETH_P_ALL
IPV4 = b"\x08\x00"
HELD = 0.002  # s
LOST, LATE = 0.01, 0.02


def open_device(name: str) -> socket.socket:
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    one.bind((name, ALL))
    one.setblocking(False)
    return one


def main() -> None:
    left, right = (open_device(name) for name in sys.argv[1:3])
    other = {left: right, right: left}
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    held: list[tuple[float, socket.socket, bytes]] = []
    counts = {"forwarded": 0, "lost": 0, "late": 0}

    def send(where: socket.socket, frame: bytes) -> None:
        try:
            where.send(frame)
            counts["forwarded"] += 1
        except OSError:
            counts["lost"] += 1  # longer than the wire takes, or the device is full

    def end(_signal: int, _frame: object) -> None:
        print(counts["forwarded"], counts["lost"], counts["late"], flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    while True:
        wait = max(0.0, held[0][0] - time.monotonic()) if held else None
        ready, _, _ = select.select([left, right], [], [], wait)
        while held and held[0][0] <= time.monotonic():
            _, where, frame = held.pop(0)
            send(where, frame)
        for one in ready:
            try:
                frame, address = one.recvfrom(65536)
            except BlockingIOError:
                continue
            if address[2] == socket.PACKET_OUTGOING:
                continue
            dice = chance.random() if frame[12:14] == IPV4 else 1.0
            if dice < LOST:
                counts["lost"] += 1
            elif dice < LOST + LATE:
                counts["late"] += 1
                held.append((time.monotonic() + HELD, other[one], frame))
            else:
                send(other[one], frame)


if __name__ == "__main__":
    main()
