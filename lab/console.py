# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""One way to print: tables 100 columns wide, plain text when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

WIDTH = 100


def console(stream: TextIO | None = None) -> Console:
    """A console on `stream` (standard output if None)."""
    return Console(
        file=stream or sys.stdout, width=WIDTH, highlight=False, emoji=False, soft_wrap=False
    )


def table(title: str, *columns: str, left: int = 1, tight: bool = False) -> Table:
    """An empty table; the first `left` columns are aligned left, the rest right."""
    result = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0 if tight else 1, 0, 0),
        pad_edge=False,
    )
    for index, name in enumerate(columns):
        result.add_column(
            name, justify="left" if index < left else "right", no_wrap=index >= left or index == 0
        )
    return result


class Bar:
    """A bar on standard error that is there only on a terminal; a context."""

    def __init__(self, total: float) -> None:
        self._out = console(sys.stderr)
        self._bar: Progress | None = None
        if self._out.is_terminal:
            self._bar = Progress(
                BarColumn(32),
                TextColumn("{task.percentage:>3.0f} %  {task.description}"),
                console=self._out,
                transient=True,
            )
            self._task = self._bar.add_task("", total=total)

    def say(self, text: str) -> None:
        """A line for those who have no bar."""
        self._out.print(f"… {text}", style="dim", markup=False)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


class Steps(Bar):
    """A progress bar over steps of known duration; lines on standard error when piped."""

    def __init__(self, total_seconds: float) -> None:
        super().__init__(total_seconds)
        self._spent = 0.0

    @contextmanager
    def __call__(self, text: str, seconds: float) -> Iterator[Step]:
        """One step, expected to take `seconds`."""
        if self._bar:
            self._bar.update(self._task, description=text)
        else:
            self.say(text)
        yield Step(self, time.monotonic(), seconds)
        self._spent += seconds
        self.show(0.0)

    def show(self, seconds: float) -> None:
        """Set the bar to `seconds` into the present step."""
        if self._bar:
            self._bar.update(self._task, completed=self._spent + seconds)


class Step:
    """A running step; call tick() now and then."""

    def __init__(self, steps: Steps, start: float, seconds: float) -> None:
        self._steps, self._start, self._seconds = steps, start, seconds

    def tick(self) -> None:
        """Move the bar by the time that has passed, never beyond the step's end."""
        self._steps.show(min(time.monotonic() - self._start, self._seconds))
