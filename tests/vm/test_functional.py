# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa.ko as programs use it: over loopback, veth and bridges, under loss, in sickness and death."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import BUILD, RunGuest
from taps import Tap, options, tap

from lab.vm import Kernel, Options, Result
from lab.vm.kernels import BUILT
from lab.vm.module import compile_in

__all__ = ["tap"]

HERE = Path(__file__).parent
PRELOAD = BUILD.resolve() / "tests/preload"
SOCK = tuple(PRELOAD / name for name in ("sock_client", "sock_server", "sock_errors"))


# Under the debug kernel all of it takes minutes: what is the same for both versions once.
QUICK = "QUICK=1;" if os.environ.get("HOMA_VM_DEBUG") == "0" else ""


def run(
    guest: RunGuest, script: str, timeout: float, *programs: str | Path, before: str = ""
) -> Result:
    """A script of tests/vm/guest in a fresh guest; the result is for tap() to judge."""
    script = f"{before} . /t/{script}.sh"
    return guest(script, *programs, options=options(), timeout=timeout, check=False)


@pytest.mark.debug
@pytest.mark.oldest
def test_lo__api_sizes_and_life(kernel: Kernel, guest: RunGuest, tap: Tap) -> None:
    quick = QUICK if kernel.is_debug else ""
    tap(run(guest, "lo", 300, "rpc", "life", *SOCK, before=quick))


@pytest.mark.once
def test_veth__offloads_mtus_and_a_bridge(guest: RunGuest, tap: Tap) -> None:
    tap(run(guest, "veth", 300, "rpc"))


@pytest.mark.once
def test_bridge__frames_that_it_has_not_decided_about(guest: RunGuest, tap: Tap) -> None:
    netfilter = options(Options(load=("br_netfilter",)))
    tap(guest(". /t/bridge.sh", "rpc", options=netfilter, timeout=300, check=False))


@pytest.mark.once
def test_path__a_locked_mtu_is_no_black_hole(guest: RunGuest, tap: Tap) -> None:
    tap(run(guest, "path", 300, "rpc"))


@pytest.mark.oldest
def test_route__what_changes_is_followed_by_the_next_send(guest: RunGuest, tap: Tap) -> None:
    tap(run(guest, "route", 300, "rpc", "look"))


@pytest.mark.once
def test_death__module_namespaces_and_devices(guest: RunGuest, tap: Tap) -> None:
    tap(run(guest, "death", 300, "rpc", "look"))


@pytest.mark.once
def test_users__one_takes_all_he_can(guest: RunGuest, tap: Tap) -> None:
    tap(run(guest, "users", 300, "rpc", "look", "users"))


@pytest.mark.once
def test_loss__reordering_duplicates_and_delay(guest: RunGuest, tap: Tap) -> None:
    tap(run(guest, "loss", 300, "rpc"))


def test_memory__allocations_that_fail(kernel: Kernel, guest: RunGuest, tap: Tap) -> None:
    if not kernel.is_debug:
        pytest.skip("only the debug kernel fails on demand")
    tap(run(guest, "nomem", 600, "rpc", "fuzz_calls"))


def test_cpu__programs_of_all_priorities_share_one(guest: RunGuest, tap: Tap) -> None:
    tap(run(guest, "cpu", 300, "rpc"))


@pytest.mark.once
@pytest.mark.debug
def test_requeue__packets_come_back_in_a_task(
    kernel: Kernel, guest: RunGuest, tap: Tap, tmp_path: Path
) -> None:
    """As behind a firewall's NFQUEUE rule, by a module, since guests have no nft."""
    if kernel.name not in ("6.1", *BUILT):
        pytest.skip("later kernels let no module put packets back")
    shutil.copytree(HERE / "requeue", tmp_path, dirs_exist_ok=True)
    queue = {"t/requeue.ko": compile_in(kernel, tmp_path)}
    made = replace(options(), files={**options().files, **queue})
    tap(guest(". /t/requeue.sh", "rpc", options=made, timeout=300, check=False))
