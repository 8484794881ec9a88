# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa top`: rates, latency, grants, queues and cores of a homad or the kernel's module."""

from __future__ import annotations

import errno
import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live

from lab.errors import UsageError
from tools import screen
from tools.connection import Json, Source
from tools.rates import Rates, between


def check(interval: float) -> None:
    """UsageError if the command line makes no sense."""
    if not 0.1 <= interval <= 3600:
        raise UsageError("--interval is a number of seconds, 0.1 to 3600")


def pictures(connection: Source, interval: float) -> Iterator[Rates]:
    """One after each interval; sleeps in between."""
    before = connection.ask("snapshot")
    while True:
        time.sleep(interval)
        after = connection.ask("snapshot")
        yield between(before, after)
        before = after


def once(connection: Source, interval: float, as_json: bool, width: int) -> str:
    """One picture as text or JSON."""
    rates = next(pictures(connection, interval))
    if as_json:
        return json.dumps(rates.as_json(), indent=1)
    rows = screen.lines(rates, width, 10**6, keys=False)
    return "\n".join(line.plain.rstrip() for line in rows).rstrip()


def stream(connection: Source, interval: float) -> Iterator[str]:
    """A line of JSON after each interval."""
    for rates in pictures(connection, interval):
        yield json.dumps(rates.as_json())


class View:
    """What is on the screen, and what the keys did to it."""

    def __init__(self, before: Json) -> None:
        self.sort = "r"
        self.quit = False
        self._before = before
        self._rates: Rates | None = None

    def update(self, after: Json) -> None:
        """A new snapshot."""
        self._rates = between(self._before, after)
        self._before = after

    def key(self, key: str) -> None:
        """A key was pressed."""
        if key in ("q", "Q", "\x1b", "\x04"):
            self.quit = True
        elif key.lower() in screen.SORTS:
            self.sort = key.lower()

    def render(self, width: int, height: int, keys: bool) -> Group:
        """For a window of that size."""
        rates = self._rates or between(self._before, self._before)
        return Group(*screen.lines(rates, width, height, self.sort, keys))


def live(connection: Source, interval: float) -> None:
    """The picture on the terminal until q or Ctrl-C, or until the terminal has gone."""
    try:
        _live(connection, interval)
    except (OSError, termios.error) as error:
        if error.args[0] not in (errno.EIO, errno.ENXIO, errno.ENOTTY, errno.EPIPE):
            raise
        # What is left in buffers has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _live(connection: Source, interval: float) -> None:
    out = Console(highlight=False, emoji=False)
    view = View(connection.ask("snapshot"))
    with _keys() as has_keys, Live(console=out, screen=True, auto_refresh=False) as shown:
        due = time.monotonic() + min(interval, 0.5)
        while not view.quit:
            shown.update(view.render(out.width, out.height, has_keys), refresh=True)
            key = _key(has_keys, due - time.monotonic())
            if key:
                view.key(key)
            elif time.monotonic() >= due:
                view.update(connection.ask("snapshot"))
                due = time.monotonic() + interval


@contextmanager
def _keys() -> Iterator[bool]:
    """Keys come without Enter, if there is a keyboard."""
    if not sys.stdin.isatty():
        yield False
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield True
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _key(has_keys: bool, seconds: float) -> str:
    """The next key within that time, or nothing."""
    seconds = max(0.0, seconds)
    if not has_keys:
        time.sleep(seconds)
        return ""
    if not select.select([sys.stdin], [], [], seconds)[0]:
        return ""
    # Not sys.stdin.read(): what that buffers select() does not see.
    return os.read(sys.stdin.fileno(), 1).decode(errors="replace") or "q"
