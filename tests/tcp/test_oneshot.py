# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A listener with EPOLLONESHOT, to which connections come by homad and by the kernel: it is told once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest
from ways import LIBRARY, PATIENCE, Side, opened, port, two_sides

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built")


@pytest.fixture(scope="module")
def accelerated() -> Iterator[tuple[Side, Side]]:
    with two_sides("homad") as sides:
        yield sides


# Says what a call without a time limit and those after it were told.
SERVER = """
import select, signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
listener.setblocking(False)
once = select.EPOLLIN | select.EPOLLONESHOT
found = select.epoll()
found.register(listener, once)
outer = select.epoll()
outer.register(found, select.EPOLLIN)
print("ready", flush=True)

def told(wait):
    events = found.poll(wait)
    assert len(dict(events)) == len(events), events
    return [what for fd, what in events if fd == listener.fileno()]

assert told(60) == [select.EPOLLIN]
print("told", flush=True)
signal.sigwait([signal.SIGUSR1])
assert not told(0.3) and not told(0), "before accept()"
have = [listener.accept()]
assert not told(0), "after accept()"
found.modify(listener, once)
if sys.argv[3:] == ["nested"]:
    assert [fd for fd, _ in outer.poll(60)] == [found.fileno()]
assert told(60) == [select.EPOLLIN]
assert not told(0.3) and not told(0), "the second connection"
# A connection that is always ready is told beside the listener, and neither twice.
found.register(have[0][0], select.EPOLLIN)
have += [listener.accept()]
found.modify(listener, once)
assert not told(0), "nothing is there"
print("all", flush=True)
while not (now := told(60)):
    pass
assert now == [select.EPOLLIN]
have += [listener.accept()]
print("ok", flush=True)
"""
CLIENT = """
import signal, socket, sys
one = socket.create_connection((sys.argv[1], int(sys.argv[2])))
one.sendall(b"x")
print("connected", flush=True)
signal.pause()
"""
# Threads of which one at a time is told of the listener, until it arms it anew.
THREADS = """
import os, select, socket, sys, threading, time
count = int(sys.argv[3])
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=count)
listener.setblocking(False)
once = select.EPOLLIN | select.EPOLLONESHOT
found = select.epoll()
found.register(listener, once)
have, inside, vain = [], [], 0

def serve():
    global vain
    while True:
        events = found.poll(60)
        if len(events) != 1:
            print("told", len(events), "events", flush=True)
            os._exit(2)
        if len(have) == count:
            # One more waits, and is told to the others.
            found.modify(listener, once)
            return
        inside.append(1)
        time.sleep(0.001)
        if len(inside) != 1:
            print("told", len(inside), flush=True)
            os._exit(1)
        try:
            have.append(listener.accept())
        except BlockingIOError:
            vain += 1
        if len(have) == count:
            socket.create_connection(sys.argv[1:3])
        inside.pop()
        found.modify(listener, once)

threads = [threading.Thread(target=serve) for _ in range(4)]
for one in threads:
    one.start()
print("ready", flush=True)
for one in threads:
    one.join()
print("ok", vain < count, flush=True)
"""
MANY = """
import signal, socket, sys
ends = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(int(sys.argv[3]))]
print("connected", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("way", ["plain", "nested"])
@pytest.mark.parametrize("first", ["kernel", "homad"])
def test_listener__tells_once_of_both_ways(
    first: str, way: str, accelerated: tuple[Side, Side]
) -> None:
    server, client = accelerated
    place = [server.v4, port()]
    serving = server.start([sys.executable, "-c", SERVER, *place, way])
    assert serving.line(PATIENCE) == "ready"
    before = opened(server)[1]
    # A program without homa-run reaches its own host by the kernel.
    words = [sys.executable, "-c", CLIENT, *map(str, place)]
    starts = {"kernel": lambda: server.space.start(words), "homad": lambda: client.start(words)}
    order = [first, *(name for name in starts if name != first)]
    ends = [starts[order[0]]()]
    assert ends[0].line(PATIENCE) == "connected" and serving.line(PATIENCE) == "told"
    ends.append(starts[order[1]]())
    assert ends[1].line(PATIENCE) == "connected"
    serving.send_signal(signal.SIGUSR1)
    assert serving.line(PATIENCE) == "all", serving.wait(10)
    ends.append(starts[first]())
    assert serving.line(PATIENCE) == "ok", serving.wait(10)
    assert opened(server)[1] - before == (2 if first == "kernel" else 1)
    for end in ends:
        end.stop()


def test_listener__is_told_to_one_thread(accelerated: tuple[Side, Side]) -> None:
    server, client = accelerated
    count = 100
    place = [server.v4, str(port())]
    serving = server.start([sys.executable, "-c", THREADS, *place, str(2 * count)])
    assert serving.line(PATIENCE) == "ready"
    words = [sys.executable, "-c", MANY, *place, str(count)]
    ends = [server.space.start(words), client.start(words)]
    assert serving.line(PATIENCE) == "ok True", serving.wait(10)
    for end in ends:
        end.stop()
