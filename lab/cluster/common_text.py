# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What all experiments of `./homa lab run` say alike: where they run, which runs do not count and
why, and their file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from lab import machine, provenance
from lab.cluster.setup import Setup
from lab.console import console
from lab.output import write_json
from lab.units import format_us


class Doubtful(Protocol):
    """A run with the reasons why it does not count."""

    @property
    def doubts(self) -> list[str]:
        """Sentences; none if it counts."""
        ...


def line(text: str) -> None:
    """One line as long as it is."""
    console().print(text, soft_wrap=True, markup=False)


def begin(what: Iterable[str], more: Iterable[str] = ()) -> None:
    """What is going to be measured, on which machine, and `more`; empty texts are left out."""
    here = machine.describe()
    for text in (*what, here.one_line(), here.warning(), *more):
        if text:
            line(text)


def run(words: str, result: Doubtful) -> None:
    """A line as soon as a run is there, and why it does not count."""
    line(words)
    for doubt in result.doubts:
        line(f"  does not count: {doubt}")


def us(ns: float | None) -> str:
    """A time in µs; – if it is not known."""
    return format_us(None if ns is None else ns / 1e3)


def refused(results: Sequence[Doubtful]) -> None:
    """How many runs do not count."""
    number = sum(1 for one in results if one.doubts)
    if number:
        line(f"{number} of {len(results)} runs do not count")


def save(json_file: Path | None, what: str, setup: Setup, document: dict[str, object]) -> None:
    """Everything measured, in a file if one is wanted."""
    if json_file:
        head = {"what": what, "where": provenance.here(), "setup": asdict(setup)}
        write_json(json_file, {**head, **document})
        console().print(f"Everything measured: {json_file}", markup=False)
