# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Many runs, as many at once as there are cores; finished ones come from the store.

The simulator is single-threaded and shares nothing, so a machine runs one per core. A run that
fails does not stop the others; what it said is kept and told at the end. An executor (this
machine, or Dask in `dask`) is given runs and yields outcomes; only this file writes the store.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from lab.errors import LabError
from lab.sim import program, sustain
from lab.sim import spec as specs
from lab.sim.progress import Board
from lab.sim.spec import Spec
from lab.sim.store import Store


@dataclass(frozen=True)
class Outcome:
    """A run that has ended: its result, or the reason why there is none."""

    index: int
    result: dict | None
    problem: str = ""


class Executor(Protocol):
    """Runs specs somewhere; `tell` gets (index, share) now and then."""

    def run(self, todo: list[Spec], tell: Callable[[int, float], None]) -> Iterator[Outcome]:
        """Outcomes in the order in which runs end."""
        ...

    def where(self) -> str:
        """For the headline: "2 at a time"."""
        ...


class Local:
    """This machine, `jobs` runs at once."""

    def __init__(self, jobs: int = 0) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))

    def where(self) -> str:
        """How many at once."""
        return f"{self.jobs} at a time"

    def run(self, todo: list[Spec], tell: Callable[[int, float], None]) -> Iterator[Outcome]:
        """See Executor."""
        work: queue.SimpleQueue[int] = queue.SimpleQueue()
        for index in range(len(todo)):
            work.put(index)
        ended: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        stop = threading.Event()

        def worker() -> None:
            while not stop.is_set():
                try:
                    index = work.get_nowait()
                except queue.Empty:
                    return
                ended.put(_one(index, todo[index], tell, stop))

        threads = [threading.Thread(target=worker, daemon=True) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        try:
            for _ in todo:
                yield ended.get()
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _one(
    index: int, spec: Spec, tell: Callable[[int, float], None], stop: threading.Event
) -> Outcome:
    try:
        result = program.run(spec, lambda p: tell(index, p.share), stop.is_set)
        return Outcome(index, result)
    except LabError as error:
        return Outcome(index, None, str(error))


@dataclass
class Lab:
    """A store with something that fills it; what figures and sweeps ask for results.

    `problems` are the runs that failed, in words. `fresh` and `found` count runs made now and
    runs that were there already. With `only_finished` none is made, and `missing` counts those that
    were not there.
    """

    store: Store
    executor: Executor
    title: str = "runs"
    problems: list[str] = field(default_factory=list)
    fresh: int = 0
    found: int = 0
    only_finished: bool = False
    missing: int = 0

    def results(self, wanted: list[Spec]) -> list[dict | None]:
        """The result of each spec, in order; None where the run failed (see problems)."""
        plan = [specs.normal(spec) for spec in wanted]
        names = [self.store.file(spec).name for spec in plan]
        known: dict[str, dict | None] = {}
        todo: dict[str, Spec] = {}
        for name, spec in zip(names, plan, strict=True):
            if name in known or name in todo:
                continue
            if (result := self._there(spec)) is not None:
                known[name] = result
                self.found += 1
            else:
                todo[name] = spec
        if todo and self.only_finished:
            self.missing += len(todo)
            known.update(dict.fromkeys(todo))
        elif todo:
            with self.store.lock():
                known.update(self._make(list(todo), list(todo.values())))
        return [known[name] for name in names]

    def _there(self, spec: Spec) -> dict | None:
        """A finished run that says what `spec` asks for.

        A run that might have been stopped and was not is the same run as one that could not be;
        and one that went to its end serves whoever wanted it only as far as it decides something.
        """
        if (result := self.store.get(spec)) is not None:
            return result
        if "stop-growth" in spec:
            return self.store.get({k: v for k, v in spec.items() if k != "stop-growth"})
        if spec.get("against-oracle") != "true":
            return None
        stopping = {**spec, "stop-growth": sustain.STOP_GROWTH}
        result = self.store.get(specs.normal(stopping))
        return None if result is None or sustain.stopped(result) else result

    def _make(self, names: list[str], todo: list[Spec]) -> dict[str, dict | None]:
        made: dict[str, dict | None] = dict.fromkeys(names)
        with Board(self.title, len(todo), self.executor.where()) as board:
            for outcome in self.executor.run(todo, board.tell):
                board.ended(outcome.index)
                spec = todo[outcome.index]
                if outcome.result is None:
                    self.problems.append(f"{specs.words(spec)}: {outcome.problem}")
                    continue
                try:
                    self.store.put(spec, outcome.result)
                except LabError as error:
                    self.problems.append(f"{specs.words(spec)}: {error}")
                    continue
                made[names[outcome.index]] = outcome.result
                self.fresh += 1
        return made
