# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packages from suites that the machine itself does not use, without touching its own apt.

A private state folder with a private list of sources lets apt fetch them. The mirrors in it
are the ones the machine is configured with; HOMA_VM_MIRROR names a Debian mirror for a
machine that has none. apt checks signatures as always, with Debian's keyring.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from lab.vm import cache
from lab.vm.errors import Missing

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FRESH_S = 12 * 3600
_SOURCE = re.compile(r"^\s*deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)$")
# Debian's suites by name; a name ends in -security, -updates or -backports.
_DEBIAN = re.compile(
    r"^(?:buster|bullseye|bookworm|trixie|forky|sid|(?:old)*stable|testing|unstable)(?:-\w+)*$"
)


@dataclass(frozen=True)
class Source:
    """One suite of one mirror as the machine has it configured."""

    uri: str
    suite: str
    components: str
    debian: bool


def configured() -> list[Source]:
    """The machine's own sources of packages."""
    layout = "$(REPO_URI)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)"
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", layout, "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = []
    for line in sorted(set(done.stdout.splitlines())):
        uri, suite, component, origin = (*line.split("|"), "", "", "")[:4]
        found.append(Source(uri, suite, component, origin == "Debian"))
    return found or _read_files()


def _read_files() -> list[Source]:
    """The same from the files: apt names no source before its first update."""
    found = []
    folder = Path("/etc/apt")
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*.list"))]:
        for line in _text(path).splitlines():
            match = _SOURCE.match(line)
            if match:
                uri, suite, components = match.groups()
                found.append(Source(uri, suite, components, bool(_DEBIAN.match(suite))))
    for path in sorted((folder / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", _text(path)):
            lines = [line for line in stanza.splitlines() if not line.startswith("#")]
            fields = {k.strip().lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
            for uri in fields.get("uris", "").split():
                for suite in fields.get("suites", "").split():
                    debian = bool(_DEBIAN.match(suite))
                    found.append(Source(uri, suite, fields.get("components", "main"), debian))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def mirror(security: bool = False) -> str:
    """A Debian mirror (or the one for security updates, "" if there is none); Missing."""
    named = os.environ.get("HOMA_VM_MIRROR")
    if named and not security:
        return named
    for source in configured():
        if source.debian and source.suite.endswith("-security") == security:
            return source.uri
    if security:
        return ""
    raise Missing(
        "no Debian mirror is configured for apt on this machine; set HOMA_VM_MIRROR=URI to use one"
    )


class Apt:
    """A private apt over `suites` of Debian, for packages or, with `sources`, for their sources."""

    def __init__(self, suites: tuple[str, ...], sources: bool = False) -> None:
        self.name = name = suites[0] + ("-src" if sources else "")
        self.suites = suites
        self._kind = ("deb-src", "Sources") if sources else ("deb", "Packages")
        self._folder = cache.root() / "apt" / name

    def _sources(self) -> str:
        if not KEYRING.exists():
            raise Missing(f"{KEYRING} is missing; install the package debian-archive-keyring")
        stanzas = []
        for suite in self.suites:
            uri = mirror(security=suite.endswith("-security"))
            if uri:
                stanzas.append(
                    f"Types: {self._kind[0]}\nURIs: {uri}\nSuites: {suite}\nComponents: main\n"
                    f"Signed-By: {KEYRING}\nTargets: {self._kind[1]}\n"
                )
        return "\n".join(stanzas)

    def _options(self) -> list[str]:
        state, store = self._folder / "state", self._folder / "cache"
        for path in (state / "lists/partial", store / "archives/partial"):
            path.mkdir(parents=True, exist_ok=True)
        values = {
            "Dir::State": state,
            "Dir::State::status": "/var/lib/dpkg/status",
            "Dir::Cache": store,
            "Dir::Cache::pkgcache": "packages.bin",
            "Dir::Cache::srcpkgcache": "sources.bin",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::sourcelist": self._folder / "homa.sources",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::Check-Valid-Until": "false",
            "Debug::NoLocking": "true",
            "Dpkg::Use-Pty": "0",
        }
        return [word for key, value in values.items() for word in ("-o", f"{key}={value}")]

    def _run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [words[0], *self._options(), *words[1:]]
        try:
            return subprocess.run(
                command,
                cwd=cwd,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
                timeout=900,
            )
        except FileNotFoundError:
            raise Missing("there is no apt here: kernels come as Debian packages") from None
        except subprocess.TimeoutExpired:
            raise Missing("apt has not ended within 15 minutes: is the network slow?") from None

    def update(self) -> None:
        """Read the package lists if those here are older than half a day; Missing."""
        with cache.locked(f"apt-{self.name}"):
            stamp = self._folder / ".updated"
            sources = self._sources()
            listing = self._folder / "homa.sources"
            fresh = stamp.exists() and time.time() - stamp.stat().st_mtime < _FRESH_S
            if fresh and _text(listing) == sources:
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            listing.write_text(sources)
            done = self._run("apt-get", "-q", "update")
            if done.returncode != 0 or re.search(r"^W: (Failed|Some index)", done.stderr, re.M):
                raise Missing(f"the package lists of {self.name} cannot be read: {_why(done)}")
            stamp.touch()

    def newest(self, pattern: str) -> tuple[str, str]:
        """(name, version) of the package with the newest version whose name matches; Missing."""
        self.update()
        start = re.split(r"[\\[(.*]", pattern)[0]
        names = self._run("apt-cache", "pkgnames", start).stdout.split()
        names = [n for n in names if re.fullmatch(pattern, n)]
        shown = self._run("apt-cache", "show", "--no-all-versions", *names).stdout if names else ""
        found = re.findall(r"^Package: (\S+)$(?:\n.+)*?\nVersion: (\S+)$", shown, re.M)
        if not found:
            raise Missing(f"{self.name} has no package like {pattern}")
        best = found[0]
        for candidate in found[1:]:
            if _is_newer(candidate[1], best[1]):
                best = candidate
        return best

    def depends(self, name: str, pattern: str) -> list[str]:
        """`name` and what it depends on, directly or not, as far as the names match."""
        self.update()
        found, todo = [], [name]
        while todo:
            found.append(todo.pop())
            shown = self._run("apt-cache", "depends", "--important", found[-1]).stdout
            names = re.findall(r"^ *\|?(?:Pre)?Depends: (\S+)$", shown, re.M)
            todo += [n for n in names if re.fullmatch(pattern, n) and n not in found + todo]
        return found

    def download(self, names: list[str], into: Path) -> list[Path]:
        """The packages as files in `into`; Missing."""
        self.update()
        into.mkdir(parents=True, exist_ok=True)
        done = self._run("apt-get", "-q", "download", *names, cwd=into)
        if done.returncode != 0:
            raise Missing(f"cannot download {' '.join(names)}: {_why(done)}")
        return sorted(into.glob("*.deb"))

    def source(self, name: str, into: Path) -> None:
        """The newest source of the package with Debian's patches, as the folder `into`; Missing."""
        self.update()
        store = self._folder / "cache/sources"
        store.mkdir(parents=True, exist_ok=True)
        with cache.locked(f"apt-{self.name}-sources"):
            for old in store.glob(f"{name}_*"):
                old.unlink()
            done = self._run("apt-get", "-q", "source", "--download-only", name, cwd=store)
            found = sorted(store.glob(f"{name}_*.dsc"))
            if done.returncode != 0 or not found:
                raise Missing(f"cannot download the source of {name}: {_why(done)}")
            command = ["dpkg-source", "--no-check", "-x", str(found[-1]), str(into)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                raise Missing("dpkg-source is missing: apt install dpkg-dev") from None
            if done.returncode != 0:
                raise Missing(f"cannot unpack the source of {name}: {done.stderr.strip()}")

    def download_missing(self, names: list[str], into: Path, release: str = "") -> list[Path]:
        """The packages and everything they need that this machine does not have."""
        self.update()
        store = self._folder / "cache/archives"
        with cache.locked(f"apt-{self.name}-archives"):
            for old in store.glob("*.deb"):
                old.unlink()
            words = ["-q", "-y", "--no-install-recommends", "--download-only", "--reinstall"]
            if release:
                words += ["-t", release]
            done = self._run("apt-get", *words, "install", *names)
            files = sorted(store.glob("*.deb"))
            if done.returncode != 0 or not files:
                raise Missing(f"cannot download {' '.join(names)}: {_why(done)}")
            into.mkdir(parents=True, exist_ok=True)
            return [f.rename(into / f.name) for f in files]


def _is_newer(left: str, right: str) -> bool:
    command = ["dpkg", "--compare-versions", left, "gt", right]
    return subprocess.run(command, check=False).returncode == 0


def _why(done: subprocess.CompletedProcess[str]) -> str:
    lines = [x for x in done.stderr.splitlines() if x.startswith(("E:", "W:"))]
    return (lines or done.stderr.strip().splitlines() or ["no reason given"])[0][:300]


def unpack(packages: list[Path], into: Path) -> None:
    """`dpkg -x` of each package, which is deleted then."""
    into.mkdir(parents=True, exist_ok=True)
    for package in packages:
        done = subprocess.run(
            ["dpkg", "-x", str(package), str(into)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise Missing(f"cannot unpack {package.name}: {done.stderr.strip()}")
        package.unlink()
