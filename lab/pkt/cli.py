# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs scripts and says how each ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError
from lab.pkt import config, parser, runner
from lab.pkt.config import Config
from lab.pkt.errors import ScriptError, Unsupported
from lab.pkt.script import Script
from lab.pkt.stack import Stack

PASSED, FAILED, UNSUPPORTED = 0, 1, 3

Make = Callable[[Config], Stack]


@dataclass
class Result:
    path: str
    status: int
    messages: list[str]


def run(path: Path, make: Make, strict: bool = False) -> Result:
    """One script. `make`: a fresh stack."""
    try:
        script = parser.read(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ScriptError as error:
        return Result(str(path), FAILED, [f"{path}:{error.line}: {error.kind}: {error}"])
    return run_script(script, make, strict)


def run_script(script: Script, make: Make, strict: bool = False) -> Result:
    beyond: list[ScriptError] = []
    settings = Config()
    try:
        settings = config.of(script)
    except ScriptError as error:
        beyond.append(error)
    beyond += runner.check(script)
    if beyond:
        return _result(script, beyond)
    try:
        stack = make(settings)
    except ScriptError as error:
        return _result(script, [error])
    try:
        runner.Runner(script, settings, stack, strict).run()
    except ScriptError as error:
        return _result(script, [error])
    finally:
        stack.close_bed()
    return Result(script.path, PASSED, [])


def _result(script: Script, errors: Iterable[ScriptError]) -> Result:
    errors = sorted(errors, key=lambda e: e.line)
    unsupported = all(isinstance(e, Unsupported) for e in errors)
    return Result(
        script.path,
        UNSUPPORTED if unsupported else FAILED,
        [_message(script, error) for error in errors],
    )


def _message(script: Script, error: ScriptError) -> str:
    """FILE:LINE: what is wrong, and the statement under it."""
    said = [s.text for s in script.statements if s.line == error.line]
    first, newline, rest = str(error).partition("\n")
    lines = [f"{script.path}:{error.line}: {error.kind}: {first}"]
    lines += [f"    {text}" for text in said]
    return "\n".join(lines) + newline + rest


def main(paths: list[str], make: Make, strict: bool = False, verbose: bool = False) -> int:
    """Prints what did not pass, and the count; FAILED before UNSUPPORTED before PASSED."""
    results = []
    for path in paths:
        result = run(Path(path), make, strict)
        results.append(result)
        for message in result.messages:
            print(message)
        if verbose and result.status == PASSED:
            print(f"{path}: passed")
        sys.stdout.flush()
    counts = [sum(r.status == status for r in results) for status in (PASSED, FAILED, UNSUPPORTED)]
    print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} not supported")
    if counts[1]:
        return FAILED
    return UNSUPPORTED if counts[2] else PASSED
