# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The main demonstration: Homa and kernel TCP under the same load through the same switch.

First every transport is measured on the idle network: the best median of any of them, per
size, is what slowdowns are divided by. Then each carries the same arrivals (same seed), once
with the switch's usual buffer and once with four times that.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from lab import machine
from lab.bench import results
from lab.net import rootless, tcp
from lab.net.homad import homads
from lab.console import Steps, console
from lab.demo import guest
from lab.demo.text import announce, headline, show
from lab.errors import LabError
from lab.net.hosts import Lab
from lab.output import write_json
from lab.paths import homa_bench, known_transports
from lab.demo.report import HOMA, LABELS, Report, Run
from lab.net.runner import Job, measure_again, run_jobs
from lab.demo.settings import BUFFER_FACTORS, Settings
from lab.net.switch import Switch, build_switch, loopback, nominal_rtt

PORT = 4000
WARMUP_S = 1.0
DRAIN_S = 2.0
START_S = 0.7  # from starting the processes to the first arrival
UNLOADED_S = 4.0  # what measuring the idle network takes per transport, for the progress bar


def main(settings: Settings, json_file: Path | None, plot: Path | None) -> None:
    """Run the demo and show what it found."""
    out = console()
    plot = plot or Path("homa-demo.png")
    if settings.via == "kernel":
        report = guest.measure(settings)
    else:
        mode = rootless.mode()
        out.print(f"Running {rootless.MODES[mode]}.", markup=False)
        report = measure(settings, mode)
    show(report, plot)
    if json_file:
        write_json(json_file, report.as_json())
        out.print(f"Everything measured: {json_file}", markup=False)


@contextmanager
def network_of(settings: Settings, mode: str) -> Iterator[Switch]:
    """The hosts around their switch, as far as `mode` allows; gone afterwards."""
    if mode == "loopback":
        yield loopback(settings.hosts, settings.link_bps)
        return
    with Lab() as lab:
        yield build_switch(lab, settings.hosts, settings.link_bps)


def expected_seconds(settings: Settings, mode: str) -> float:
    """About how long the demo takes."""
    loaded = (1 if mode == "loopback" else len(BUFFER_FACTORS)) * (
        settings.seconds + WARMUP_S + START_S + DRAIN_S / 2
    )
    return len(settings.transports) * (UNLOADED_S + loaded)


def measure(settings: Settings, mode: str) -> Report:
    """Build the network, run everything, take the network down again."""
    if settings.via == "service" and mode == "loopback":
        raise LabError("--via service needs hosts of their own, and no namespaces can be made here")
    missing = sorted(set(settings.transports) - known_transports())
    if missing:
        raise LabError(f"homa-bench was built without transport '{missing[0]}'; run ./homa build")
    here = machine.describe()
    with (
        Steps(expected_seconds(settings, mode)) as steps,
        network_of(settings, mode) as switch,
        tempfile.TemporaryDirectory() as folder,
    ):
        tuned = tcp.tune(switch.hosts) if switch.ports else {}
        usual = switch.buffer
        network = {
            "mode": mode,
            "link_bps": settings.link_bps,
            "nominal_rtt_us": nominal_rtt(settings.link_bps) * 1e6,
            "buffers": [usual * factor for factor in BUFFER_FACTORS] if switch.ports else [],
            "buffer_shared_by_classes": switch.shared,
            "tcp": tuned,
        }
        report = Report({**asdict(settings), **headline(settings)}, here.as_json(), network, [])
        announce(settings, switch, here)
        factors = BUFFER_FACTORS if switch.ports else (1,)
        denominators = Path(folder) / "denominators.json"
        unloaded = {}
        for name in settings.transports:
            with (
                steps(f"{LABELS[name]} on the idle network", UNLOADED_S) as step,
                daemons(settings, switch, name, mode) as env,
            ):
                jobs = unloaded_jobs(settings, switch, name, mode, env)
                found, _ = measure_again(partial(run_jobs, jobs, 120, step.tick))
                unloaded[name] = results.parse_unloaded(found[1])
        best = results.best_unloaded(list(unloaded.values()))
        denominators.write_text(json.dumps({"unloaded": best}))
        network["unloaded"] = {
            name: [asdict(row) for row in rows] for name, rows in unloaded.items()
        }
        network["denominators"] = best
        for factor in factors:
            for name in settings.transports:
                switch.buffer = usual * factor
                text = f"{LABELS[name]} under load"
                if switch.ports:
                    text += f", {switch.buffer // 1024} KB of buffer per port"
                with steps(text, settings.seconds + WARMUP_S + START_S + DRAIN_S / 2) as step:
                    report.runs.append(
                        loaded_run(settings, switch, name, mode, denominators, step.tick)
                    )
    return report


@contextmanager
def daemons(
    settings: Settings, switch: Switch, name: str, mode: str
) -> Iterator[dict[str, dict[str, str]]]:
    """What programs of each host, by its address, must know to find their homad, if Homa is run by
    one. It serves what the program would: AF_XDP as root, otherwise UDP; packets leave at the
    rate of the shaped link and none takes the way of long messages over virtual devices."""
    if name != HOMA or settings.via != "service":
        yield {}
        return
    text = f'[network]\nlink_mbps = {settings.link_bps // 10**6}\nbulk = "off"\n'
    words = [] if mode == "root" else ["--udp-only"]
    for setting in filter(None, settings.homa_config.split(",")):
        words += ["--set", setting]
    with homads(switch.hosts, arguments=tuple(words), settings=text) as running:
        yield {daemon.host.address: daemon.env for daemon in running}


def common_options(settings: Settings, name: str, mode: str) -> list[str]:
    """What every homa-bench of the demo is told."""
    options = [
        "--transport",
        name,
        "--workload",
        settings.workload,
        "--link",
        f"{settings.link_bps}bit",
    ]
    if name == HOMA and settings.via == "service":
        options += ["--via", "service"]
    elif name == HOMA:
        options += ["--via", "afxdp" if mode == "root" else "udp"]
        options += ["--homa-config", settings.homa_config] if settings.homa_config else []
    return options


def unloaded_samples(link_bps: int) -> int:
    """RPCs per size on the idle network: as many as fit into about UNLOADED_S seconds."""
    return max(5, min(100, 20 * link_bps // 200_000_000))


def unloaded_jobs(
    settings: Settings, switch: Switch, name: str, mode: str, env: dict[str, dict[str, str]]
) -> list[Job]:
    """A server and a client that measures round trips one at a time."""
    client, server = switch.hosts[:2]
    program, options = str(homa_bench()), common_options(settings, name, mode)
    return [
        Job(
            f"{name} server",
            [program, "server", "--bind", f"{server.address}:{PORT}", *options],
            server,
            True,
            env=env.get(server.address, {}),
        ),
        Job(
            f"{name} client",
            [
                program,
                "client",
                "--peer",
                f"{server.address}:{PORT}",
                "--bind",
                client.address,
                "--unloaded",
                "--samples",
                str(unloaded_samples(settings.link_bps)),
                *options,
                "--json",
                "{json}",
                "--quiet",
            ],
            client,
            env=env.get(client.address, {}),
        ),
    ]


def loaded_run(
    settings: Settings,
    switch: Switch,
    name: str,
    mode: str,
    denominators: Path,
    tick: Callable[[], None],
) -> Run:
    """All hosts client and server of each other."""

    def attempt() -> list[dict | None]:
        switch.set_buffer(switch.buffer)
        with daemons(settings, switch, name, mode) as env:
            start = time.monotonic() + START_S
            return run_jobs(
                loaded_jobs(settings, switch, name, mode, denominators, start, env),
                settings.seconds + 60,
                tick,
            )

    found, note = measure_again(attempt)
    run = results.combine(name, switch.buffer, [results.parse_load(data) for data in found])
    ports = switch.counters()
    peaks = [port.peak_backlog for port in ports if port.peak_backlog is not None]
    return replace(
        run,
        drops=sum(port.drops for port in ports),
        peak_backlog=max(peaks) if peaks else None,
        notes=[note, *run.notes] if note else run.notes,
    )


def loaded_jobs(
    settings: Settings,
    switch: Switch,
    name: str,
    mode: str,
    denominators: Path,
    start: float,
    env: dict[str, dict[str, str]],
) -> list[Job]:
    """A node per host; all begin at `start` (CLOCK_MONOTONIC)."""
    program = str(homa_bench())
    jobs = []
    for index, host in enumerate(switch.hosts):
        others = [other for other in switch.hosts if other is not host]
        peers = [word for other in others for word in ("--peer", f"{other.address}:{PORT}")]
        argv = [
            program,
            "node",
            "--bind",
            f"{host.address}:{PORT}",
            *peers,
            *common_options(settings, name, mode),
            "--load",
            str(settings.load),
            "--seed",
            str(settings.seed),
            "--host-index",
            str(index),
            "--warmup",
            str(WARMUP_S),
            "--duration",
            str(settings.seconds),
            "--drain",
            str(DRAIN_S),
            "--start-at",
            f"mono:{start:.6f}",
            "--denominators",
            str(denominators),
            "--json",
            "{json}",
            "--quiet",
        ]
        jobs.append(
            Job(
                f"{name} on host {index + 1}",
                argv,
                host,
                urgent=True,
                env=env.get(host.address, {}),
            )
        )
    return jobs
