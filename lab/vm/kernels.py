# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Kernels to test under: Debian's newest cloud kernel of three series, the same series with
PREEMPT_RT ("-rt"), and builds of our own that notice mistakes (debug) and data races (kcsan).

A cloud kernel is Debian's kernel with drivers for virtual machines only, so it is small and
boots fast under emulation; a PREEMPT_RT kernel has all drivers. Suites move on, so packages are
found by the pattern of their names; what is in the cache serves as long as nothing newer can be
had.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from lab.vm import apt, cache
from lab.vm.errors import Missing

_PARTS = r"linux-(?:headers|kbuild)-.*"
_BOOKWORM = ("bookworm", "bookworm-updates", "bookworm-security", "bookworm-backports")


@dataclass(frozen=True)
class Series:
    """Where a kernel series comes from. `host_compiler`: what this machine has can build for it."""

    name: str
    suites: tuple[str, ...]
    pattern: str
    packages: tuple[str, ...]
    host_compiler: bool = True


SERIES = {
    s.name: s
    for s in (
        Series(
            "6.1",
            _BOOKWORM,
            r"linux-image-(6\.1\.[0-9][0-9.]*-[0-9]+-cloud-amd64)",
            ("linux-image-{}",),
        ),
        Series(
            "6.12",
            _BOOKWORM,
            r"linux-image-(6\.12\.[0-9][a-z0-9.+~]*-cloud-amd64)",
            ("linux-image-{}",),
        ),
        Series(
            "7.2",
            ("forky",),
            r"linux-binary-unsigned-(7\.2\.[0-9][a-z0-9.+~]*-cloud-amd64)",
            ("linux-binary-unsigned-{}", "linux-modules-{}"),
            host_compiler=False,
        ),
        Series(
            "6.1-rt",
            _BOOKWORM,
            r"linux-image-(6\.1\.[0-9][0-9.]*-[0-9]+-rt-amd64)",
            ("linux-image-{}",),
        ),
        Series(
            "6.12-rt",
            _BOOKWORM,
            r"linux-image-(6\.12\.[0-9][a-z0-9.+~]*-rt-amd64)",
            ("linux-image-{}",),
        ),
        Series(
            "7.2-rt",
            ("forky",),
            r"linux-binary-unsigned-(7\.2\.[0-9][a-z0-9.+~]*-rt-amd64)",
            ("linux-binary-unsigned-{}", "linux-modules-{}"),
            host_compiler=False,
        ),
    )
}

# The kernel under whose headers sparse knows every construct.
SPARSE = "6.1"
DEBUG, KCSAN = "debug", "kcsan"
# Kernels that lab/vm/debug.py builds, each with the option of ./homa test that has it built.
BUILT = {DEBUG: "--vm-debug", KCSAN: "--vm-kcsan"}
# What every run of the tests takes, what it takes if it is asked to (PREEMPT_RT), and all.
RT = tuple(name for name in SERIES if name.endswith("-rt"))
TESTED = (*(name for name in SERIES if name not in RT), DEBUG)
NAMES = (*TESTED, KCSAN, *RT)
# Neither the oldest nor the newest of what is tested.
BETWEEN = TESTED[1:-2]


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be booted and built for.

    `modules` is its folder of modules (None: everything is built in), `headers` what modules
    are built against, `chroot` the system to build them in (None: this machine).
    """

    name: str
    release: str
    image: Path
    headers: Path
    modules: Path | None = None
    chroot: Path | None = None

    @property
    def is_debug(self) -> bool:
        """KASAN, lockdep and the like are in it."""
        return self.name == DEBUG

    @property
    def is_slow(self) -> bool:
        """What notices mistakes makes it several times slower."""
        return self.name in BUILT


def prepare(name: str, *, build: bool = True) -> Kernel:
    """The kernel `name` (one of NAMES), fetched if it is not in the cache; Missing.

    Those of BUILT take six to fifteen minutes to build: without `build` one is Missing unless an earlier
    run has built it.
    """
    if platform.machine() != "x86_64":
        raise Missing("virtual machines for tests are x86-64 only")
    if name in BUILT:
        from lab.vm import debug

        return debug.prepare(name, build=build)
    if name not in SERIES:
        raise Missing(f"no kernel '{name}'; known are {', '.join(NAMES)}")
    series = SERIES[name]
    with cache.locked(f"kernel-{name}"):
        folder = _fetch(series)
        chroot = None
        if not series.host_compiler:
            from lab.vm import chroot as chroots

            chroot = chroots.prepare(folder.name, series)
    return _describe(series, folder, chroot)


def newest_cached() -> str:
    """The newest series that needs no download, else the oldest, which builds everywhere."""
    for name in reversed([n for n in SERIES if n not in RT]):
        series = SERIES[name]
        folder = _cached(series)
        chroot = cache.root() / "chroots" / (folder.name if folder else "")
        if folder and (series.host_compiler or cache.is_complete(chroot)):
            return series.name
    return next(iter(SERIES))


def _fetch(series: Series) -> Path:
    source = apt.Apt(series.suites)
    try:
        package, _ = source.newest(series.pattern)
    except Missing:
        cached = _cached(series)
        if cached is None:
            raise
        return cached
    release = re.fullmatch(series.pattern, package).group(1)
    folder = cache.root() / "kernels" / release
    if not cache.is_complete(folder):
        try:
            cache.entry(f"kernels/{release}", lambda into: _download(series, source, release, into))
        except Missing:
            cached = _cached(series)
            if cached is None:
                raise
            return cached
    cache.confirm(folder)
    for other in _folders(series):
        if other != folder and cache.age(other) > 7 * 86400:
            cache.remove(other)
    return folder


def _folders(series: Series) -> list[Path]:
    """The kernels of the series that are in the cache, complete or not."""
    package = series.packages[0]
    folders = (cache.root() / "kernels").glob("*")
    return [f for f in folders if re.fullmatch(series.pattern, package.format(f.name))]


def _cached(series: Series) -> Path | None:
    """The one that was fetched last, for a machine without network."""
    folders = _folders(series)
    return min((f for f in folders if cache.is_complete(f)), key=cache.age, default=None)


def _download(series: Series, source: apt.Apt, release: str, into: Path) -> None:
    names = [p.format(release) for p in series.packages]
    names += source.depends(f"linux-headers-{release}", _PARTS)
    apt.unpack(source.download(names, into / "packages"), into)
    (into / "packages").rmdir()
    if series.host_compiler:
        _relocate(into, cache.root() / "kernels" / release)


def _relocate(into: Path, final: Path) -> None:
    """Headers name each other by absolute paths: make them those in the cache."""
    for makefile in into.glob("usr/src/linux-headers-*/Makefile"):
        text = makefile.read_text()
        makefile.write_text(re.sub(r"(?<![\w/])/usr/src/", f"{final}/usr/src/", text))
    for folder in into.glob("usr/src/linux-headers-*"):
        for link in [p for p in folder.iterdir() if p.is_symlink()]:
            target = os.readlink(link)
            if target.startswith("/"):
                link.unlink()
                link.symlink_to(f"{final}{target}")


def _describe(series: Series, folder: Path, chroot: Path | None) -> Kernel:
    release = folder.name
    images = [*folder.glob(f"boot/vmlinuz-{release}"), *folder.glob("usr/lib/**/vmlinuz*")]
    modules = next(
        (
            p
            for p in (folder / f"lib/modules/{release}", folder / f"usr/lib/modules/{release}")
            if (p / "kernel").is_dir()
        ),
        None,
    )
    if not images or modules is None:
        raise Missing(f"the packages of kernel {release} have no image or no modules in them")
    headers = folder / f"usr/src/linux-headers-{release}"
    if chroot:
        headers = Path(f"/usr/src/linux-headers-{release}")
    return Kernel(series.name, release, images[0], headers, modules, chroot)
