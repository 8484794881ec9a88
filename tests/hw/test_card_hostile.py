# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Enemies on both sides of the shared memory: a driver that writes anything to a card, and a device
that writes anything to a program. Neither crashes, hangs, or takes the other with it."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hw.cards import Card, cabled, echo, serve
from tests.hw.test_card import built  # noqa: F401
from tests.net.netns import Namespace, Net

MAGIC, VERSION = 0x4D4E4943, 1
ENTRIES, PAGE, RING = 64, 4096, 128
QUEUE = 4 * RING + 4 * 32 * ENTRIES
SLOT = 65536 + 512
TAP = "homa0"
TIMES = 12


def address(tap: str) -> str:
    return f"\0homa-message-nic/{tap}"


def scribble(memory: mmap.mmap, queues: int, rng: random.Random, made: tuple[int, int]) -> None:
    """Anything into the rings of each queue. `made`: the rings whose producer we are; at times we
    say that there is a little in them, so that its entries are read."""
    for queue in range(queues):
        at = PAGE + queue * QUEUE
        entries = at + 4 * RING
        for ring in range(4):
            base = entries + ring * 32 * ENTRIES
            if rng.random() < 0.7:
                memory[base : base + 32 * ENTRIES] = entry(rng) * ENTRIES
        for ring in range(4):
            where = at + ring * RING + (0 if ring in made else 64)
            number = rng.choice((1, 3, 64, 65, rng.getrandbits(32)))
            memory[where : where + 4] = struct.pack("=I", number)


def entry(rng: random.Random) -> bytes:
    """32 bytes that are nothing, or nearly a descriptor."""
    if rng.random() < 0.3:
        return rng.randbytes(32)
    slot, length = rng.choice((0, 1, 63, 64, 1 << 31)), rng.choice((0, 60, 1514, 65535, 65536))
    if rng.random() < 0.5:
        return struct.pack("=IIHB21x", slot, length, rng.choice((0, 1, 1400)), rng.randrange(9))
    pieces = rng.choice((0, 1, 2, 64, 65535))
    return struct.pack("=QIIIHHBBB5x", 1, slot, length, 2, pieces, 1400, 5, 0, rng.randrange(256))


def hostile_driver(seed: int) -> None:
    """A program: connects to the card of this namespace, again and again, and scribbles."""
    rng = random.Random(seed)
    for _ in range(TIMES):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(address(TAP))
            said, fds, _, _ = socket.recv_fds(s, 16, 40)
            _, _, queues, slots = struct.unpack("=IIII", said)
            if not queues:
                continue
            memory = mmap.mmap(fds[0], PAGE + queues * QUEUE + 2 * queues * slots * SLOT)
            for _ in range(rng.randint(1, 5)):
                scribble(memory, queues, rng, (0, 2))
                for bell in fds[1::2]:
                    os.eventfd_write(bell, 1)
            s.settimeout(rng.choice((0.01, 0.2)))
            try:
                s.recv(1)
            except OSError:
                pass
            memory.close()
            for fd in fds:
                os.close(fd)
    print("done", flush=True)


def hostile_device(seed: int, sealed: bool) -> None:
    """A program: a device that greets as one ought to, and scribbles."""
    rng = random.Random(seed)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address(TAP))
        listener.listen()
        print("ready", flush=True)
        while True:
            s, _ = listener.accept()
            size = PAGE + QUEUE + 2 * ENTRIES * SLOT
            fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
            os.truncate(fd, size)
            if sealed:
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            memory = mmap.mmap(fd, size)
            memory[:20] = struct.pack("=III8s", 7, 1500, 20, b"\2\0\0\0\0\1")
            bells = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
            hello = struct.pack("=IIII", MAGIC, VERSION, 1, ENTRIES)
            socket.send_fds(s, [hello], [fd, *bells])
            s.settimeout(0.02)
            for _ in range(rng.randint(3, 20)):
                scribble(memory, 1, rng, (1, 3))
                os.eventfd_write(bells[1], 1)
                try:
                    if not s.recv(1):
                        break
                except TimeoutError:
                    pass
                except OSError:
                    break
            s.close()


def program(space: Namespace, what: str, *arguments: str) -> list[str]:
    code = f"from tests.hw.test_card_hostile import *; {what}({', '.join(arguments)})"
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("seed", [1, 2])
def test_card__survives_a_hostile_driver(seed: int) -> None:
    with Net() as net:
        spaces = cabled(net)
        a, b = Card(spaces[0], 1), Card(spaces[1], 2, "--queues", "2")
        done = b.space.run(program(b.space, "hostile_driver", str(seed)), timeout=120)
        assert done.stdout == "done\n", done.stderr
        counters = b.counters()
        assert counters["broken"] and counters["drivers"] > TIMES // 2
        server = serve(b.space, b.env())
        assert not echo(a.space, a.env(), b.v4, 20_000)
        server.stop()


def with_tap(space: Namespace) -> list[str]:
    """A TAP that nobody serves, and what a program needs to use it."""
    space.ip("tuntap", "add", TAP, "mode", "tap")
    space.ip("link", "set", TAP, "up")
    space.ip("address", "add", "10.9.0.9/24", "dev", TAP)
    # The peer is known, so that frames are sent.
    neighbour = ("neigh", "replace", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", TAP)
    space.ip(*neighbour)
    values = ("HOMA_VIA=message", f"HOMA_INTERFACE={TAP}", "HOMA_CONFIG=timeout_us=1000000")
    return ["env", *values]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_library__survives_a_hostile_device(seed: int) -> None:
    with Net() as net:
        space = net.namespace("a")
        environment = with_tap(space)
        device = space.start(program(space, "hostile_device", str(seed), "True"))
        assert device.line() == "ready"
        wrong = echo(space, environment, "10.9.0.2", 20_000)
        # It failed as any call fails that is not answered; no signal ended it.
        assert wrong.startswith("echo_client: "), wrong
        assert device.running()


def test_library__refuses_memory_that_may_shrink() -> None:
    with Net() as net:
        space = net.namespace("a")
        environment = with_tap(space)
        device = space.start(program(space, "hostile_device", "1", "False"))
        assert device.line() == "ready"
        assert "cannot be used: Protocol error" in echo(space, environment, "10.9.0.2", 1)


def test_constants__are_those_of_the_header(tmp_path: Path) -> None:
    """What this file says in numbers is what the C header says."""
    source = tmp_path / "numbers.c"
    source.write_text(
        '#include <stdio.h>\n#include "message_check.h"\n'
        'int main(void) { printf("%u %u %u %u %zu %zu %u", MNIC_MAGIC, MNIC_VERSION, MNIC_ENTRIES,'
        " MNIC_PAGE, sizeof(struct mnic_ring), sizeof(struct mnic_queue), MNIC_SLOT_BYTES); }\n"
    )
    include = Path(__file__).resolve().parents[2] / "nic" / "message"
    command = ["gcc", f"-I{include}", str(source), "-o", str(tmp_path / "numbers")]
    subprocess.run(command, check=True)
    said = subprocess.run([str(tmp_path / "numbers")], capture_output=True, text=True, check=True)
    have = [MAGIC, VERSION, ENTRIES, PAGE, RING, QUEUE, SLOT]
    assert list(map(int, said.stdout.split())) == have
