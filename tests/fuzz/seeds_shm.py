#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Seeds for fuzz_shm: scripts of an ordinary application, and of one rule broken each.

The numbers are those of enum op in fuzz_shm.c and, behind STREAMS, of enum stream_op in
shm_lies.c. Every operation is followed by the bytes it reads.
"""

import random
import sys
from pathlib import Path

(ROUNDS, COMMAND, POKE, INDEX, CONSUME, RELEASE, BYTES, TIME, BIND, POOL, SHUTDOWN, RESTART,
 PACKET, ASK_EVIL, REPLY, BURST) = range(16)  # fmt: skip

STREAMS = 240
(CONNECT, CONNECT_SELF, LISTEN, STREAM_COMMAND, SLOT, STREAM_POKE, STREAM_INDEX, WRITE, READ, HEAR,
 CLOSE, GRANT, SHARE, JOIN, DROP) = range(15)  # fmt: skip
# Slots are given from the last one on.
FIRST, SECOND = 15, 14

RUN = bytes([ROUNDS, 7])
TAKE = bytes([CONSUME, 31]) + bytes([3] * 8)
SPOILS = [1, 2 | 1, 4, 8, 16, 32, 64, 128, 255]


def echo(length: int = 1, spoil: int = 0, rest: bytes = b"") -> bytes:
    return bytes([COMMAND, length, spoil]) + rest + RUN + TAKE


def stream(op: int, slot: int = 0, *rest: int) -> bytes:
    return bytes([STREAMS, op, slot, *rest])


def write(slot: int, size: int, how: int = 0) -> bytes:
    return stream(WRITE, slot, size & 255, size >> 8, how, *([9, 200] if how & 128 else []))


OPENED = stream(CONNECT) + RUN + stream(HEAR)
TO_ITSELF = stream(LISTEN) + stream(CONNECT_SELF) + RUN + stream(HEAR) + RUN + stream(HEAR)


def stream_seeds() -> dict[str, bytes]:
    """Streams of a correct application, and lies about them."""
    back = RUN + stream(READ, FIRST) + RUN
    return {
        "echo": OPENED + write(FIRST, 1000) + back + stream(CLOSE, FIRST, 1) + RUN,
        "abort": OPENED + write(FIRST, 1000) + stream(CLOSE, FIRST, 0) + RUN,
        "jump": OPENED + (write(FIRST, 3000, 128) + back * 3) * 3,
        "self": TO_ITSELF + write(FIRST, 5000) + back + stream(READ, SECOND) + RUN,
        "grow": TO_ITSELF
        + (write(FIRST, 65535, 132) + RUN + stream(GRANT, 0, 4) + stream(READ, SECOND) + RUN) * 4,
        "share": TO_ITSELF + stream(SHARE, 0, 0) + stream(JOIN) + RUN + stream(HEAR)
        + stream(STREAM_COMMAND, FIRST - 2, 2, 0) + stream(CLOSE, FIRST, 1) + RUN,
        "ticket": TO_ITSELF + stream(SHARE, 0, 0) + stream(CLOSE, FIRST, 1) + RUN + stream(DROP),
        "deaf": stream(CONNECT) * 120 + RUN * 8 + stream(CONNECT) * 150 + RUN * 8
        + stream(STREAM_INDEX, 0, 12) + stream(HEAR) * 9 + RUN,
        "return": TO_ITSELF + stream(STREAM_COMMAND, SECOND, 9, 0) + RUN
        + stream(STREAM_COMMAND, 0, 8, 16) + RUN + stream(HEAR),
        "slot": OPENED + stream(SLOT, FIRST, 1, 1, 1) + RUN,
        "map": OPENED + write(FIRST, 100) + stream(SLOT, FIRST, 3, 0, 190) + RUN,
        "tail": OPENED + stream(STREAM_INDEX, 0, 6, 5) + RUN,
        "area": OPENED + stream(STREAM_POKE, 0, 0, 0, 0, 40, 1) + bytes([255] * 40) + RUN,
    }  # fmt: skip


def random_streams(rng: random.Random) -> bytes:
    out = bytearray(OPENED + TO_ITSELF)
    for _ in range(rng.randrange(10, 80)):
        slot = rng.choice([FIRST, SECOND, SECOND - 1, rng.randrange(16)])
        out += rng.choice([RUN, stream(rng.randrange(15), slot)])
        out += bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 2, 4])))
    return bytes(out)


def random_script(rng: random.Random) -> bytes:
    out = bytearray()
    for _ in range(rng.randrange(10, 80)):
        out.append(rng.choice([ROUNDS, COMMAND, CONSUME, *range(16)]))
        out += bytes(rng.randrange(256) for _ in range(rng.choice([1, 2, 4, 10])))
    return bytes(out)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    seeds = {
        "echo": echo() * 5 + echo(200) * 3,
        "self": bytes([BIND, 1]) + bytes([COMMAND, 3, 3]) + RUN + TAKE + RUN + TAKE,
        "asked": bytes([BIND, 1, ASK_EVIL, 9]) + RUN + TAKE + RUN,
        "unanswered": bytes([BIND, 1])
        + bytes([ASK_EVIL, 9])
        + RUN
        + bytes([TIME, 255, 255, 12])
        + RUN,
        "shutdown": echo() + bytes([SHUTDOWN]) + echo(),
        "restart": echo() + bytes([COMMAND, 250, 0, RESTART]) + echo(),
        "pool": bytes([POOL, 3]) + echo(255) + bytes([POOL, 1]),
        "burst": bytes([BURST, 15]) + bytes(range(45)) + RUN * 5 + TAKE * 3,
        "far": bytes([COMMAND, 5, 4, 2]) + RUN + bytes([TIME, 255, 255, 10]) + RUN + TAKE,
        "packet": bytes([BIND, 1, PACKET, 60]) + bytes(range(88)) + bytes([1, 0]) + RUN + TAKE,
        "forged": bytes([REPLY, 1, 1, 0, REPLY, 1, 0, 0]) + RUN,
        "release": echo() + bytes([RELEASE, 1, 1]) + RUN,
        "tail": echo() + bytes([INDEX, 0, 1, 1, 255]) + RUN + echo(),
        "head": bytes([COMMAND, 1, 0, INDEX, 9, 0, 1, 5]) + RUN,
        "header": bytes([POKE, 0, 0, 40, 1]) + bytes([255] * 40) + echo(),
    }
    for spoil in SPOILS:
        seeds[f"spoil-{spoil}"] = echo(2, spoil, bytes([201, 250, 129, 140]))
    rng = random.Random(4)
    for number in range(20):
        seeds[f"random-{number}"] = random_script(rng)
    for name, script in stream_seeds().items():
        seeds[f"stream-{name}"] = script
    for number in range(20):
        seeds[f"stream-random-{number}"] = random_streams(rng)
    for name, script in seeds.items():
        (folder / name).write_bytes(script)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
