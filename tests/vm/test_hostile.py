# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Hostile packets and calls: each known way to break a Homa receiver by its name, then at random.

The random ones print their seed and are short here; `./homa fuzz --kernel` runs them for long.
"""

from __future__ import annotations

import os

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

__all__ = ["tap"]

SECONDS = float(os.environ.get("HOMA_VM_FUZZ_SECONDS", "4"))
SEED = int(os.environ.get("HOMA_VM_FUZZ_SEED", "1"))


@pytest.mark.once
@pytest.mark.parametrize(
    ("version", "way"), [pytest.param(4, "frags", marks=pytest.mark.long), (6, "napi")]
)
def test_hostile__packets(guest: RunGuest, tap: Tap, version: int, way: str) -> None:
    tap(guest(f"hostile {version} {way}", "hostile", options=options(), timeout=400, check=False))


@pytest.mark.once
@pytest.mark.debug
def test_fuzz__packets_and_calls(guest: RunGuest) -> None:
    runs = [
        f"fuzz_packets {version} {way} {SEED + n} {SECONDS}"
        for n, (version, way) in enumerate([(4, "plain"), (6, "frags"), (4, "napi"), (6, "napi")])
    ]
    runs.append(f"fuzz_calls {SEED} {2 * SECONDS}")
    done = guest(
        # What a program does to itself without memory is no complaint of the kernel's.
        " && ".join(["echo 0 >/proc/sys/debug/exception-trace", *runs]),
        "fuzz_packets",
        "fuzz_calls",
        timeout=300 + 20 * SECONDS,
        check=False,
    )
    done.check()
    assert done.output.count("\nok\n") == len(runs)
    print(done.output)
