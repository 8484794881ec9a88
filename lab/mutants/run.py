# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Puts one mutant after the other into a copy of the tree and runs the catchers' programs until
one of them fails.

What is found out is kept in a file beside the builds as it comes, under a digest of all that it
follows from, so that a run goes on where one was stopped, and only what has changed is looked at again.
The tree without a mutant comes first: what fails there can catch nothing, and how long its programs take
says what a hang is, and which of them are asked first.
"""

from __future__ import annotations

import hashlib
import json
import queue
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import LabError
from lab.mutants.catchers import Catcher, Watch
from lab.mutants.patches import Mutant
from lab.mutants.tree import BuildError, Copy, digest
from lab.paths import ROOT

ENGINE = ("engine",)
# A program that takes so many times as long as without the mutant, and so long at least, hangs.
PATIENCE = 10
LEAST_S = 60


@dataclass(frozen=True)
class Result:
    """`by`: what noticed the mutant, "" if nothing did; `seconds` of looking."""

    by: str
    seconds: float


class Results:
    """The file in which they are kept. `key` is what a result follows from."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._kept = json.loads(path.read_text())
        except (OSError, ValueError):
            self._kept = {}

    def get(self, catcher: str, mutant: str, key: str) -> Result | None:
        kept = self._kept.get(catcher, {}).get(mutant)
        if not kept or kept["key"] != key:
            return None
        return Result(kept["by"], kept["seconds"])

    def last(self, catcher: str, mutant: str) -> Result | None:
        """The same, of whatever tree."""
        kept = self._kept.get(catcher, {}).get(mutant)
        return Result(kept["by"], kept["seconds"]) if kept else None

    def times(self, catcher: str, key: str) -> dict[str, float] | None:
        """How long each program takes without a mutant."""
        kept = self._kept.get("times", {}).get(catcher)
        return kept["seconds"] if kept and kept["key"] == key else None

    def put(self, catcher: str, mutant: str, key: str, result: Result) -> None:
        self._write(catcher, mutant, {**asdict(result), "key": key})

    def put_times(self, catcher: str, key: str, seconds: dict[str, float]) -> None:
        self._write("times", catcher, {"seconds": seconds, "key": key})

    def _write(self, group: str, name: str, value: dict[str, object]) -> None:
        with self._lock:
            self._kept.setdefault(group, {})[name] = value
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(self._kept, indent=1, sort_keys=True) + "\n")
            new.replace(self._path)


class Run:
    """`folder` has the copies and the results; `seconds` are for one mutant and a timed catcher."""

    def __init__(
        self,
        folder: Path,
        seconds: float,
        jobs: int,
        say: Callable[[str], None] = print,
        root: Path = ROOT,
    ) -> None:
        self.results = Results(folder / "results.json")
        self.watch = Watch()
        self._seconds = seconds
        self._say = say
        self._root = root
        self._jobs = jobs
        self._folder = folder
        self._copies: queue.Queue[Copy] = queue.Queue()
        self._digests: dict[tuple[str, ...], str] = {}
        self._changed: dict[str, dict[str, str]] = {}

    def key(self, catcher: Catcher, text: str = "") -> str:
        """Of what the results of a catcher for a patch follow from."""
        folders = (*ENGINE, *catcher.sources)
        if folders not in self._digests:
            self._digests[folders] = digest(self._root, *folders)
        given = f"{self._seconds}" if catcher.timed else ""
        words = repr((self._digests[folders], text, catcher.targets, catcher.words, given))
        return hashlib.sha256(words.encode()).hexdigest()

    def look(
        self, mutants: Sequence[Mutant], catchers: Sequence[Catcher], again: bool = False
    ) -> dict[tuple[str, str], Result]:
        """The result of each mutant and catcher; LabError if the tree itself is not in order."""
        found: dict[tuple[str, str], Result] = {}
        todo: dict[Mutant, list[Catcher]] = {}
        for mutant in mutants:
            for catcher in catchers:
                known = self.results.get(catcher.name, mutant.name, self.key(catcher, mutant.text))
                if known and not again:
                    found[mutant.name, catcher.name] = known
                else:
                    todo.setdefault(mutant, []).append(catcher)
        if not todo:
            return found
        # Now: the tree may change while they are looked at.
        self._changed = {mutant.name: mutant.apply(self._root) for mutant in todo}
        for number in range(min(self._jobs, len(todo))):
            copy = Copy(self._folder / str(number), self._root)
            copy.prepare()
            self._copies.put(copy)
        for catcher in catchers:
            if any(catcher in left for left in todo.values()):
                self._clean(catcher)
        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                for part in pool.map(lambda job: self._one(*job), todo.items()):
                    found |= part
            except BaseException:
                self.watch.stop()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return found

    def _clean(self, catcher: Catcher) -> None:
        """The tree as it is passes, and in what time."""
        key = self.key(catcher)
        if self.results.times(catcher.name, key):
            return
        copy = self._copies.get()
        try:
            programs = self._programs(copy, catcher)
            copy.make({}, programs)
            times = {}
            for name in programs:
                # What looks for as long as it may need not look so long where nothing is.
                seconds = min(self._seconds, LEAST_S)
                limit = self._limit(catcher, 0)
                end = self.watch.run(catcher, copy.build / name, seconds, limit, copy.build)
                if end.caught:
                    raise LabError(f"without any mutant {end.caught}; mend that first")
                times[name] = end.seconds
            self.results.put_times(catcher.name, key, times)
        finally:
            self._copies.put(copy)

    @staticmethod
    def _programs(copy: Copy, catcher: Catcher) -> list[str]:
        programs = catcher.programs(copy.targets())
        if not programs:
            raise LabError(f"there is no program of {catcher.name} ({' '.join(catcher.targets)})")
        return programs

    def _limit(self, catcher: Catcher, usual: float) -> float:
        if catcher.timed:
            return self._seconds + LEAST_S
        return max(LEAST_S, PATIENCE * usual) if usual else PATIENCE * LEAST_S

    def _one(self, mutant: Mutant, catchers: list[Catcher]) -> dict[tuple[str, str], Result]:
        found: dict[tuple[str, str], Result] = {}
        copy = self._copies.get()
        try:
            for catcher in catchers:
                result = self._try(copy, mutant, catcher)
                if not result:
                    break
                found[mutant.name, catcher.name] = result
                key = self.key(catcher, mutant.text)
                self.results.put(catcher.name, mutant.name, key, result)
                said = result.by or f"NOT caught by {catcher.name}"
                self._say(f"{mutant.name}: {said} ({result.seconds:.0f} s)")
        finally:
            self._copies.put(copy)
        return found

    def _try(self, copy: Copy, mutant: Mutant, catcher: Catcher) -> Result | None:
        """The program that caught it last, then the quickest first; None: somebody stopped it."""
        times = self.results.times(catcher.name, self.key(catcher)) or {}
        last = self.results.last(catcher.name, mutant.name)
        before = re.split(r"[: ]", last.by)[0] if last else ""
        order = sorted(times, key=lambda name: (Path(name).name != before, times[name], name))
        spent = 0.0
        if self.watch.stopping.is_set():
            return None
        try:
            copy.make(self._changed[mutant.name], list(times))
        except BuildError as error:
            raise LabError(f"{mutant.name} does not compile: {error}") from None
        for name in order:
            end = self.watch.run(
                catcher,
                copy.build / name,
                self._seconds,
                self._limit(catcher, times[name]),
                copy.build,
            )
            spent += end.seconds
            if self.watch.stopping.is_set():
                return None
            if end.caught:
                return Result(end.caught, round(spent, 2))
        return Result("", round(spent, 2))
