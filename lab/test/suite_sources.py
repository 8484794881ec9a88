# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs whose own tests `./homa test --tcp-suites` runs and that no package brings: Debian's source, built once and
kept beside the kernels (lab/vm/cache.py)."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from lab.test import process
from lab.test.context import Context
from lab.vm import apt, cache
from lab.vm.errors import Missing

# One release for all machines, so that the tests are the same everywhere.
RELEASE = ("bookworm", "bookworm-security")
BUILD_SECONDS = 900
# What is not TCP, or would need a library, is left out; tests of it are skipped then.
_WITHOUT = ("ssl", "zlib", "brotli", "zstd", "libpsl", "libidn2", "nghttp2", "librtmp", "libssh2")


@dataclass(frozen=True)
class Source:
    """A program to be built: what it needs, and the commands that build it in its folder."""

    headers: tuple[
        tuple[str, str], ...
    ]  # a file below /usr/include, and Debian's package that has it
    commands: tuple[str, ...]


SOURCES = {
    "curl": Source(
        (),
        (
            "./configure -q --disable-shared --disable-ldap --disable-manual CFLAGS=-O1 "
            + " ".join(f"--without-{name}" for name in _WITHOUT),
            "make -s -j2",
            "make -s -j2 -C tests all",
            "make -s -j2 -C tests/server all",
            "make -s -j2 -C tests/libtest all",
        ),
    ),
    # Its tests speak TCP only if it has no UNIX sockets.
    "memcached": Source(
        (("event.h", "libevent-dev"),),
        (
            "./configure -q --disable-unix-socket --disable-docs CFLAGS='-O1 -Wno-error'",
            "make -s -j2 memcached-debug sizes testapp timedrun",
        ),
    ),
}


def folder(context: Context, name: str) -> Path:
    """Where the program is, with its tests; Missing, with the reason."""
    source = SOURCES[name]
    for tool, package in (("perl", "perl"), ("make", "make"), ("gcc", "gcc")):
        if not shutil.which(tool):
            raise Missing(f"apt install {package}")
    for header, package in source.headers:
        if not Path("/usr/include", header).exists():
            raise Missing(f"apt install {package}")
    return cache.entry(f"suites/{name}", lambda into: _make(context, name, into)) / name


def _make(context: Context, name: str, into: Path) -> None:
    where = into / name
    apt.Apt(RELEASE, sources=True).source(name, where)
    log = context.log(f"build-{name}")
    script = " && ".join(SOURCES[name].commands)
    env = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    command = ["/bin/sh", "-c", script]
    status = process.run(
        command, log, cwd=where, env=env, timeout=BUILD_SECONDS, verbose=context.verbose
    )
    if status:
        raise Missing(f"{name} cannot be built; see {log}")
