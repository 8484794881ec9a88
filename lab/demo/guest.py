# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The demo with Homa as a module of the kernel: in a virtual machine, all hosts in one guest.

The machine is emulated, so that nothing is loaded into the kernel that runs here and no root is
needed. Time in it is counted in instructions, not measured: a busy machine makes the demo take
longer and changes no result.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from lab import machine
from lab.bench import results
from lab.console import Steps, console
from lab.demo.report import Report
from lab.demo.settings import Settings
from lab.demo.text import headline
from lab.errors import LabError
from lab.net.switch import buffer_bytes, nominal_rtt
from lab.units import format_rate
from lab.vm import VmError, build
from lab.vm.bench import loads
from lab.vm.kernels import prepare

KERNEL = "6.1"
SAMPLES = 10  # round trips of each size on the idle network
PREPARE_S = 60.0  # what steps take, for the progress bar
IDLE_S = 100.0
RUN_S = 6.0  # for each virtual second of a run


def measure(settings: Settings) -> Report:
    """Boot twice: for times on the idle network, and under load."""
    plan = loads.Plan(
        settings.workload, settings.load, settings.hosts, settings.link_bps, settings.seconds,
        settings.seed, settings.transports, settings.homa_config,
    )  # fmt: skip
    here = machine.describe()
    out = console()
    out.print(
        f"{settings.hosts} hosts in a virtual machine, all client and server, "
        f"{format_rate(settings.link_bps)} links, workload {settings.workload} at "
        f"{settings.load:.0%} load, seed {settings.seed}.",
        markup=False,
    )
    loaded_s = len(settings.transports) * settings.seconds * RUN_S
    with Steps(PREPARE_S + IDLE_S + loaded_s) as steps:
        try:
            with steps("a kernel, and homa.ko for it", PREPARE_S):
                kernel = prepare(KERNEL)
                module = build(kernel)
            with steps("all transports on the idle network", IDLE_S):
                idle = loads.idle(kernel, module, plan, SAMPLES)
            best = results.best_unloaded(list(idle.values()))
            with steps("all transports under load", loaded_s):
                found = loads.measure(
                    kernel, module, plan, rounds=1, denominators=json.dumps({"unloaded": best})
                )
        except VmError as error:
            raise LabError(str(error)) from None
    if found.failed:
        raise LabError("; ".join(found.failed))
    network = {
        "mode": "kernel",
        "kernel": kernel.release,
        "link_bps": settings.link_bps,
        "nominal_rtt_us": nominal_rtt(settings.link_bps) * 1e6,
        "buffers": [buffer_bytes(settings.link_bps)],
        "unloaded": {name: [asdict(row) for row in rows] for name, rows in idle.items()},
        "denominators": best,
    }
    runs = [run for name in settings.transports for run in found.runs.get(name, [])]
    return Report({**asdict(settings), **headline(settings)}, here.as_json(), network, runs)
