#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Seeds for fuzz_engine: scripts of ordinary lives and of the usual accidents.

The numbers are those of enum op in fuzz_engine.c. Every operation is followed
by the bytes it reads.
"""

import random
import sys
from pathlib import Path

(SEND, ALL, DELIVER, DROP, REPEAT, DAMAGE, TIME, ABORT, CLOSE, RAW, FORGE,
 RESTART, PAUSE, STARVE, ICMP, STEP) = range(16)  # fmt: skip

TICK = bytes([TIME, 23, STEP])  # 8 ms, then everything arrives


def rpc(request: int, response: int, who: int = 0) -> bytes:
    """An RPC with these length classes, delivered step by step."""
    return bytes([SEND, who, request, response]) + bytes([STEP] * 12)


def lossy(which: int) -> bytes:
    """An RPC that loses one of its first packets and recovers."""
    return bytes([SEND, 0, 7, 7, DROP, which, STEP]) + TICK * 6


def random_script(rng: random.Random) -> bytes:
    """Mostly sends and deliveries, sometimes an accident."""
    out = bytearray()
    for _ in range(rng.randrange(20, 120)):
        op = rng.choice(
            [SEND, SEND, STEP, STEP, STEP, ALL, DELIVER, DROP, REPEAT, TIME, DAMAGE]
            + list(range(16))
        )
        out.append(op)
        out += bytes(rng.randrange(256) for _ in range(rng.choice([1, 2, 3, 16])))
    return bytes(out)


def main() -> None:
    """Write the seeds into the directory that is the first argument."""
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    seeds: dict[str, bytes] = {}
    for config in range(256):
        seeds[f"rpc-{config:02x}"] = bytes([config, rng.randrange(256)]) + b"".join(
            rpc(rng.randrange(16), rng.randrange(16), rng.choice([0, 1, 2, 4])) for _ in range(4)
        )
    for which in range(8):
        seeds[f"lossy-{which}"] = bytes([0x02, 0]) + lossy(which)
    for kind in range(10):
        forged = bytes([FORGE, 1, kind, 0, 0]) + bytes([100, 0, 0, 0, 200, 0, 0, 0, 1] + [1] * 24)
        seeds[f"forge-{kind}"] = bytes([0x02, 0, SEND, 0, 8, 8, STEP]) + forged + TICK * 3
    for number in range(100):
        seeds[f"random-{number:02}"] = bytes([rng.randrange(256), rng.randrange(256)]) + (
            random_script(rng)
        )
    for name, data in seeds.items():
        (target / name).write_bytes(data)


if __name__ == "__main__":
    main()
