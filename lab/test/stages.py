# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The stages of a run, in order. A stage's function takes the context and the names of
the tests to run (none: all) and returns a tally."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lab.test import (
    builds,
    cbmc,
    compiled,
    counts,
    explore,
    fuzz,
    hardware,
    interop,
    pkt,
    python_tests,
    vm_tests,
)
from lab.test.context import Context, Tally

# Of libFuzzer in all, and before a release.
FUZZ_SECONDS, FUZZ_LONG_SECONDS = 30, 120
PYTEST_SECONDS = 1200
VM_SECONDS = 2400

Run = Callable[[Context, list[str]], Tally]


@dataclass(frozen=True)
class Stage:
    """`suite`: the meson suite whose tests it runs, if any."""

    name: str
    what: str
    run: Run
    suite: str = ""


def build(context: Context, _names: list[str]) -> Tally:
    tally = Tally()
    for name, configuration in builds.BUILDS.items():
        if not shutil.which(configuration.compiler):
            tally.skip(f"build {name}", f"{configuration.compiler} is not installed")
            continue
        try:
            builds.ensure(context, name)
            tally.passed += 1
        except builds.BuildError as error:
            tally.fail(f"build {name} ({configuration.why})", str(error))
    return tally


def in_builds(
    context: Context,
    names: list[str],
    *,
    suite: str,
    where: tuple[str, ...],
    long: tuple[str, ...] = (),
) -> Tally:
    """`long`: builds in which a test runs only if it is named, or before a release."""
    tally = Tally()
    for name in (*(long if context.long or names else ()), *where):
        tally.add(compiled.run(context, name, suite, names))
    return tally


def fuzzing(context: Context, names: list[str]) -> Tally:
    return fuzz.smoke(context, names, FUZZ_LONG_SECONDS if context.long else FUZZ_SECONDS)


def packets(context: Context, names: list[str]) -> Tally:
    tally = in_builds(context, names, suite="pkt", where=("plain", "asan"))
    if not names:
        tally.add(pkt.scripts(context))
    return tally


def net(context: Context, names: list[str]) -> Tally:
    if os.geteuid() != 0:
        tally = Tally()
        tally.skip("net", "network namespaces need root")
        return tally
    return python_tests.in_parts(context, "net", names, PYTEST_SECONDS, python_tests.WAITING)


def homad(context: Context, names: list[str]) -> Tally:
    if os.geteuid() != 0:
        tally = Tally()
        tally.skip("homad", "network namespaces need root")
        return tally
    return python_tests.homad(context, names, PYTEST_SECONDS)


def tcp(context: Context, names: list[str]) -> Tally:
    if os.geteuid() != 0:
        tally = Tally()
        tally.skip("tcp", "network namespaces need root")
        return tally
    return python_tests.in_parts(context, "tcp", names, PYTEST_SECONDS, python_tests.WAITING)


def lab(context: Context, names: list[str]) -> Tally:
    return python_tests.in_parts(context, "lab", names, PYTEST_SECONDS, python_tests.WAITING)


def virtual(context: Context, names: list[str]) -> Tally:
    return vm_tests.run(context, names, VM_SECONDS)


def dissector(context: Context, names: list[str]) -> Tally:
    return python_tests.in_parts(context, "dissector", names, PYTEST_SECONDS)


def packaging(context: Context, names: list[str]) -> Tally:
    with tempfile.TemporaryDirectory(prefix="homa-packages-") as shared:
        env = {"HOMA_PACKAGES": shared}
        return python_tests.in_parts(context, "packaging", names, PYTEST_SECONDS, env=env)


def _compiled(suite: str, what: str, *where: str, long: tuple[str, ...] = ()) -> Stage:
    return Stage(suite, what, partial(in_builds, suite=suite, where=where, long=long), suite)


STAGES = (
    Stage("build", "every configuration compiles", build),
    Stage("purity", "the engine asks nothing of the outside", python_tests.purity),
    _compiled("unit", "source files alone; plain, ASan and UBSan", "plain", "asan"),
    _compiled("pair", "engines under virtual time; ASan and UBSan", "asan", long=("plain",)),
    Stage("pkt", "TCP under virtual time: hosts in pairs; packet scripts", packets, suite="pkt"),
    Stage("explore", "every state of two engines and two faults", explore.stage),
    _compiled("world", "clusters with faults from a seed; plain, ASan and UBSan", "plain", "asan"),
    _compiled("sim", "the simulator's models; plain, ASan and UBSan", "plain", "asan"),
    Stage("counts", "instructions per packet and RPC beside tests/counts/ratchet.toml", counts.run),
    _compiled("threads", "one engine, several threads; TSan, lock order", "tsan"),
    Stage("fuzz", f"libFuzzer, {FUZZ_SECONDS} s in all", fuzzing),
    Stage("net", "real packets between network namespaces", net),
    Stage("homad", "homad and applications of all kinds; plain, ASan and UBSan", homad),
    Stage("tcp", "unmodified programs on TCP sockets between network namespaces", tcp),
    Stage("vm", "homa.ko in virtual machines under several kernels", virtual),
    Stage("dissector", "Homa in Wireshark, by tshark", dissector),
    Stage("hw", "the NIC's blocks in a simulator, beside the C codec", hardware.smoke),
    Stage("packaging", "what is installed, Debian packages, the unit", packaging),
    Stage("lab", "experiments, figures, the launcher", lab),
)

# Minutes of a solver, so only if it is asked for.
CBMC = Stage("cbmc", "proofs about the codec, ranges, heap, wheel and pages", cbmc.run)

# Hours, so only if it is asked for; without the option stage hw does a hundredth of it.
HW = Stage("hw", "the NIC's blocks in a simulator, a million frames each", hardware.everything)

# Minutes, and cargo may fetch a crate, so only if it is asked for; stage tcp has short cases with lwIP.
INTEROP = Stage("interop", "TCP through homad against the TCP of others", interop.run)
