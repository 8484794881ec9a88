# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The builds that tests run: plain, two with sanitizers, one for fuzzing.

Each has a directory that runs share, under a lock while it is being built: of two runs
at once the second finds its work done. Only what the tests need is compiled.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.test import process
from lab.test.context import ROOT, Context

# Not meson's "supports arguments -Werror: YES".
_ERROR = re.compile(r"(?<![Ww])error:|\bERROR\b|undefined reference")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
BUILD_TIMEOUT = 900
ALL_SUITES = ("purity", "unit", "pair", "pkt", "world", "sim", "threads")


class BuildError(Exception):
    """The message is the end of the compiler's output."""


@dataclass(frozen=True)
class Build:
    """A configuration: its options, and the suites whose tests it runs (none: all).

    `programs`: executables that tests outside of meson start.
    """

    name: str
    why: str
    options: tuple[str, ...]
    suites: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    compiler: str = "gcc"
    env: dict[str, str] = field(default_factory=dict, hash=False)


_ASAN = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}
# Reports name functions and lines. What debuggers want beside that takes clang a sixth of its time.
_LINES = ("-Dc_args=-g1", "-Dcpp_args=-g1")
_TSAN = {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}

BUILDS = {
    b.name: b
    for b in (
        Build("plain", "gcc, warnings are errors", ("--werror",)),
        Build(
            "asan",
            "ASan and UBSan",
            (
                "-Db_sanitize=address,undefined",
                "-Db_lundef=false",
                "-Dassertions=true",
                # With the sanitizers -O1 takes gcc 1.7 times as long, and -O2 2.5 times as that.
                "-Doptimization=g",
                *_LINES,
            ),
            suites=("unit", "pair", "pkt", "world", "sim"),
            programs=("homad",),
            env=_ASAN,
        ),
        Build(
            "tsan",
            "TSan and the lock-order checker",
            (
                "-Db_sanitize=thread",
                "-Db_lundef=false",
                "-Dlock_check=true",
                "-Dassertions=true",
                "-Doptimization=1",
                *_LINES,
            ),
            suites=("threads",),
            env=_TSAN,
        ),
        Build(
            "fuzz",
            "clang with libFuzzer, ASan and UBSan",
            (
                "-Db_sanitize=address,undefined",
                "-Db_lundef=false",
                "-Dfuzz=true",
                "-Dassertions=true",
                *_LINES,
            ),
            suites=("fuzz",),
            compiler="clang",
            env=_ASAN,
        ),
    )
}

# Not for `./homa test`: what one command alone needs.
OTHERS = {
    b.name: b
    for b in (
        Build(
            "cover",
            "gcov counts lines and branches of the engine",
            ("-Db_coverage=true", "-Doptimization=0"),
            suites=("cover",),
            programs=("explore",),
        ),
    )
}


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Nobody else builds in `directory` meanwhile."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(context: Context, name: str) -> Path:
    """The build directory, up to date; BuildError. Once per run."""
    build = BUILDS.get(name) or OTHERS[name]
    directory = context.builds / name
    if name in context.built:
        if context.built[name]:
            raise BuildError(context.built[name])
        return directory
    context.built[name] = "interrupted"
    try:
        with locked(directory):
            _configure(context, build, directory)
            _compile(context, build, directory)
    except BuildError as error:
        context.built[name] = str(error) or "the build failed"
        raise
    context.built[name] = ""
    return directory


def configured(context: Context, name: str) -> Path:
    """The build directory, set up but not compiled: its lists of tests and targets are today's."""
    build = BUILDS.get(name) or OTHERS[name]
    directory = context.builds / name
    with locked(directory):
        _configure(context, build, directory)
        _must(context, build, ["ninja", "-C", str(directory), "build.ninja"], {})
    return directory


def _configure(context: Context, build: Build, directory: Path) -> None:
    stamp = directory / ".source"
    signature = f"{ROOT}\n{build.compiler} {' '.join(build.options)}\n"
    known = stamp.read_text() if stamp.exists() else ""
    if known == signature and (directory / "build.ninja").exists():
        return
    for entry in directory.iterdir():
        if entry.name != ".lock":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    command = ["meson", "setup", *build.options, str(directory), str(ROOT)]
    _must(context, build, command, {"CC": build.compiler})
    stamp.write_text(signature)


def _compile(context: Context, build: Build, directory: Path) -> None:
    command = ["ninja", "-j2", "-C", str(directory)]
    # build.ninja first: the list of tests must be that of today's files.
    _must(context, build, [*command, "build.ninja"], {})
    if build.suites:
        files = needed(directory, build.suites, build.programs)
    else:
        # "all" alone leaves out what only tests need.
        files = ["all", *needed(directory, ALL_SUITES)]
    if files:
        _must(context, build, [*command, *files], {})


def _must(context: Context, build: Build, command: list[str], env: dict[str, str]) -> None:
    log = context.log(f"build-{build.name}")
    status = process.run(
        command, log, cwd=ROOT, env=env, timeout=BUILD_TIMEOUT, verbose=context.verbose
    )
    if status != 0:
        raise BuildError(_complaint(log.read_text(errors="replace")))


def _complaint(text: str) -> str:
    """The interesting lines of a failed build."""
    lines = _COLOUR.sub("", text).splitlines()
    hits = [i for i, line in enumerate(lines) if _ERROR.search(line)]
    if not hits:
        return "\n".join(lines[-25:])
    return "\n".join(lines[max(0, hits[0] - 1) : hits[0] + 25])


def introspect(directory: Path, what: str) -> list[dict]:
    done = subprocess.run(
        ["meson", "introspect", str(directory), f"--{what}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def suites_of(test: dict) -> set[str]:
    """{"unit"} of "homa:unit"; a test that names no suite is a unit test."""
    return {s.partition(":")[2] for s in test["suite"] if ":" in s} or {"unit"}


def tests(directory: Path, suites: tuple[str, ...]) -> list[dict]:
    return [t for t in introspect(directory, "tests") if suites_of(t) & set(suites)]


def needed(directory: Path, suites: tuple[str, ...], programs: tuple[str, ...] = ()) -> list[str]:
    """Ninja targets that the tests (or the fuzz targets) of the suites need, and the programs."""
    wanted = {d for t in tests(directory, suites) for d in t["depends"]}
    files = []
    for target in introspect(directory, "targets"):
        in_fuzz = "fuzz" in suites and "/tests/fuzz/" in target["defined_in"]
        named = target["type"] == "executable" and target["name"] in programs
        if target["id"] in wanted or in_fuzz or named:
            files += [os.path.relpath(f, directory) for f in target["filename"]]
    return files


def program(directory: Path, name: str) -> Path | None:
    """Where the executable `name` is built, None if there is none."""
    for target in introspect(directory, "targets"):
        if target["type"] == "executable" and target["name"] == name:
            return Path(target["filename"][0])
    return None
