# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Laboratories that outlive the command that made them: made, found, taken down, healed.

A laboratory's namespaces are named "hlb-NAME-…". What it is stands in /run/homa-lab/NAME.json,
written last when it is made and removed first when it goes. So namespaces without that file are
the rest of a command that was killed, unless one is at work: whoever makes or removes a
laboratory holds the lock of its name, which the kernel gives back however the holder ends. Each
`up` and `down` first removes such rests, of every name.

With another folder for the files, namespaces are named "hlbXXXXXX-NAME-…", with a hash of the
folder's name: who does not see a file must not take its namespaces for rests.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import provenance
from lab.cluster.plan import Plan, from_json
from lab.errors import LabError
from lab.net import guardian, tcp
from lab.net.hosts import Namespaces
from lab.net.switch import PortCounters, build_switch, read_port

_FOLDER = Path("/run/homa-lab")


def folder() -> Path:
    """Where the files and locks are; root's."""
    return Path(os.environ.get("HOMA_LAB_STATE") or _FOLDER)


def _prefix() -> str:
    """How the names of all namespaces begin whose files are in this folder."""
    if folder() == _FOLDER:
        return "hlb-"
    return f"hlb{hashlib.sha256(bytes(folder())).hexdigest()[:6]}-"


def prefix_of(name: str) -> str:
    """How the names of a laboratory's namespaces begin."""
    return f"{_prefix()}{name}-"


@dataclass(frozen=True)
class Standing:
    """A laboratory that is up: its plan, whether the classes of a port share its buffer, the
    namespaces of switch and hosts, the hosts' addresses, and where and when it was made."""

    plan: Plan
    shared: bool
    switch: str
    ports: list[str]
    hosts: list[list[str]]  # namespace, address
    where: dict

    def counters(self) -> list[PortCounters]:
        """What each port of the switch has counted since the laboratory is up."""
        return [read_port(self.switch, port, self.shared) for port in self.ports]


def need_root() -> None:
    """LabError for whoever cannot make namespaces that stay."""
    if os.geteuid() != 0:
        raise LabError("a lab that stays needs root; ./homa demo makes one for its own time")


def _file(name: str) -> Path:
    return folder() / f"{name}.json"


@contextmanager
def _lock(name: str) -> Iterator[bool]:
    """Hold the lock of `name` if it is free; whether it was."""
    folder().mkdir(mode=0o755, parents=True, exist_ok=True)
    with (folder() / f"{name}.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _names_seen() -> set[str]:
    """Names of laboratories that have a namespace."""
    return {full.split("-")[1] for full in guardian.namespaces(_prefix()) if full.count("-") >= 2}


def heal() -> list[str]:
    """Remove what killed commands left of any laboratory; the names. Root only."""
    healed = []
    for name in sorted(_names_seen()):
        if _file(name).exists():
            continue
        with _lock(name) as free:
            # Looked at again under the lock: it may just have come up.
            if free and not _file(name).exists() and guardian.remove(prefix_of(name)):
                healed.append(name)
    for path in folder().glob("*.json"):  # the other way round: a machine that was started again
        with _lock(path.stem) as free:
            if free and not guardian.namespaces(prefix_of(path.stem)):
                path.unlink(missing_ok=True)
    return healed


def up(plan: Plan) -> Standing:
    """Make the laboratory of `plan`; whole or not at all."""
    with _lock(plan.name) as free:
        if not free:
            raise LabError(f"another command makes or removes lab '{plan.name}' at this moment")
        if _file(plan.name).exists():
            raise LabError(f"lab '{plan.name}' is up; ./homa lab down {plan.name} removes it")
        try:
            spaces = Namespaces(prefix_of(plan.name))
            switch = build_switch(
                spaces, plan.hosts, plan.link_bps, plan.buffer, plan.traits, uplinks=True
            )
            tcp.tune(switch.hosts)
            made = Standing(
                plan,
                switch.shared,
                switch.namespace,
                switch.ports,
                [[host.namespace, host.address] for host in switch.hosts],
                provenance.here(),
            )
            _write(made)
            return made
        except BaseException:
            guardian.remove(prefix_of(plan.name))
            raise


def _write(made: Standing) -> None:
    document = {**made.__dict__, "plan": made.plan.as_json()}
    part = folder() / f".{made.plan.name}.part"
    part.write_text(json.dumps(document, indent=1) + "\n")
    part.replace(_file(made.plan.name))


def down(name: str) -> bool:
    """Remove laboratory `name` with all that runs in it; whether there was anything."""
    with _lock(name) as free:
        if not free:
            raise LabError(f"another command makes or removes lab '{name}' at this moment")
        known = _file(name).exists()
        _file(name).unlink(missing_ok=True)
        return bool(guardian.remove(prefix_of(name))) or known


def load(name: str) -> Standing:
    """Laboratory `name`; LabError if it is not up or not whole."""
    try:
        document = json.loads(_file(name).read_text())
        found = Standing(**{**document, "plan": from_json(document["plan"])})
    except FileNotFoundError:
        raise LabError(f"there is no lab '{name}'; ./homa lab up {name} makes it") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LabError(
            f"{_file(name)} cannot be used ({error}); ./homa lab down {name} removes the lab"
        ) from None
    here = set(guardian.namespaces(prefix_of(name)))
    if not {found.switch, *(space for space, _ in found.hosts)} <= here:
        raise LabError(f"lab '{name}' has lost namespaces; ./homa lab down {name} removes the rest")
    return found


def names() -> list[str]:
    """All laboratories that have a file."""
    return sorted(path.stem for path in folder().glob("*.json"))
