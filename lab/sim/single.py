# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa sim run`: one simulation with a progress bar, and what came out as tables."""

from __future__ import annotations

import signal
import threading

from rich.table import Table

from lab.console import console, table
from lab.errors import LabError, UsageError
from lab.sim import program, warmup
from lab.sim import spec as specs
from lab.sim.flags import FLAGS, check
from lab.sim.progress import Single
from lab.sim.spec import Spec
from lab.sim.store import write
from lab.sim.sweep import pick
from lab.sim.tails import LEAST
from lab.units import format_bytes, format_us

_LEVELS = {
    "host-up": "host to switch",
    "tor-up": "rack switch up",
    "core-up": "up to core",
    "core-down": "down from core",
    "tor-down": "down to rack",
    "host-down": "switch to host",
}


def main(flags: Spec, outputs: dict[str, object]) -> None:
    """Run `flags`, show the result, write the files of `outputs`."""
    if "set" in flags:
        texts = flags["set"]
        assert isinstance(texts, list)
        flags = {**flags, "set": specs.settings_of([str(t) for t in texts])}
    spec = specs.normal(flags)
    spec = specs.normal({**spec, **warmup.begin(spec)})
    program.check(spec)
    result = _run(spec, _extra(outputs))
    out = console()
    if outputs["json"]:
        write(outputs["json"], result)  # type: ignore[arg-type]
    out.print(slowdown_table(spec, result))
    out.print(facts_table(result))
    out.print(queue_table(result))
    for name in ("json", "trace", "pcap", "record"):
        if outputs[name]:
            out.print(f"wrote {outputs[name]}", markup=False)
    if result.get("interrupted"):
        raise LabError("interrupted: these numbers are of the part that was simulated")


def _extra(outputs: dict[str, object]) -> list[str]:
    extra = []
    for name in ("trace", "pcap", "record"):
        if outputs[name]:
            extra += [f"--{name}", str(outputs[name])]
    for name in ("trace_from", "trace_until"):
        if outputs[name]:
            flag = f"--{name.replace('_', '-')}"
            if not (outputs["trace"] or outputs["pcap"]):
                raise UsageError(f"{flag} needs --trace FILE or --pcap FILE")
            try:
                extra += [flag, check(FLAGS["warmup"], outputs[name])]
            except UsageError as error:
                raise UsageError(f"{flag} {error}") from None
    return extra


def _run(spec: Spec, extra: list[str]) -> dict:
    """Run it; the first Ctrl-C asks for what was measured so far, the second ends all."""
    stop = threading.Event()

    def ask(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        with Single() as bar:
            return program.run(spec, bar.tell, stop.is_set, extra, interruptible=True)
    finally:
        signal.signal(signal.SIGINT, before)


def _number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return "–"
    return f"{value:,.{digits}f}" if value < 99.95 else f"{value:,.0f}"


def _us(summary: dict, name: str) -> str:
    value = _told(summary, name)
    return format_us(None if value is None else value / 1e3)


def _slow(summary: dict, name: str) -> str:
    """Slowdown summaries hold what their histograms do, or plain ratios."""
    return _number(_told(summary, name))


def _told(summary: dict, name: str) -> float | None:
    """A percentile that has enough messages behind it."""
    value = summary.get(name)
    enough = summary.get("count", 0) >= LEAST
    return float(value) if enough and isinstance(value, (int, float)) else None


def slowdown_table(spec: Spec, result: dict) -> Table:
    """A row per tenth of the messages."""
    said = {"protocol": "homa", "workload": "w4", "load": "0.8", **spec}
    title = (
        f"{said['protocol']}, {said['workload']}, load {said['load']}, seed {said.get('seed', 1)}"
    )
    grid = table(
        title,
        "message\nbytes",
        "count",
        "latency\nP50",
        "\nP99",
        "slowdown\nP50",
        "\nP99",
        "\nP99.9",
    )
    for row in result.get("deciles") or []:
        latency, slow = row.get("latency_ns", {}), row.get("slowdown", {})
        low, high = format_bytes(row["size_min"]), format_bytes(row["size_max"])
        grid.add_row(
            low if low == high else f"{low} – {high}",
            f"{latency.get('count', 0):,}",
            _us(latency, "p50"),
            _us(latency, "p99"),
            *(_slow(slow, p) for p in ("p50", "p99", "p999")),
        )
    latency, slow = result.get("latency_ns", {}), result.get("slowdown", {})
    grid.add_row(
        "all sizes",
        f"{latency.get('count', 0):,}",
        _us(latency, "p50"),
        _us(latency, "p99"),
        *(_slow(slow, p) for p in ("p50", "p99", "p999")),
    )
    return grid


def facts_table(result: dict) -> Table:
    """Utilisation, waste, causes, speed."""
    sim = result.get("sim", {})

    def share(*place: str) -> str:
        value = pick(sim, place)
        return "–" if value is None else f"{value:.1%}"

    backlog = sim.get("backlog", {})
    counts = sim.get("counts", {})
    grid = table("", "", "", left=2)
    grid.show_header = False
    rows = [
        (
            "receivers' links",
            f"{share('utilisation', 'application')} application data, "
            f"{share('utilisation', 'total')} in all, {share('waste')} wasted",
        ),
        (
            "load",
            f"{_offered(result)}"
            + ("carried" if backlog.get("stable") else "the backlog grew (or the window is short)")
            + f"; {sim.get('unfinished', 0):,} messages unfinished",
        ),
        (
            "slow short messages",
            f"{_number(pick(sim, ('causes', 'wait_us')))} µs queueing, "
            f"{_number(pick(sim, ('causes', 'lag_us')))} µs preemption lag "
            f"({share('causes', 'share_lag')})",
        ),
        ("priorities P0 … P7", "  ".join(f"{100 * p:.1f} %" for p in sim.get("priorities", []))),
        (
            "packets",
            f"{_count(counts, 'packets_sent')} sent, "
            f"{_count(counts, 'packets_dropped')} dropped, {_count(counts, 'hops')} hops",
        ),
        (
            "speed",
            f"{1e3 * sim.get('simulated_s', 0):,.1f} ms simulated in {sim.get('wall_s', 0):.1f} s, "
            f"{sim.get('hops_per_s', 0) / 1e6:.1f} million hops/s, "
            f"{sim.get('memory_bytes', 0) / 2**20:,.0f} MiB",
        ),
        ("digest", str(sim.get("digest", "–"))),
    ]
    for row in rows:
        grid.add_row(*row)
    return grid


def _offered(result: dict) -> str:
    """What arrived in the window, of the links; chance makes it differ from what was asked for."""
    value = pick(result, ("throughput", "offered_load"))
    return "" if value is None else f"{value:.1%} offered in the window, "


def _count(counts: dict, name: str) -> str:
    return f"{counts[name]:,}" if name in counts else "–"


def queue_table(result: dict) -> Table:
    """Queues by place."""
    grid = table("queues", "", "mean", "worst port's mean", "largest")
    queues = result.get("sim", {}).get("queues", {})
    for level, name in _LEVELS.items():
        row = queues.get(level)
        if row and level != "host-up":
            grid.add_row(
                name,
                *(
                    f"{row.get(key, 0) / 1e3:,.1f} KB"
                    for key in ("mean_bytes", "mean_bytes_worst_port", "max_bytes")
                ),
            )
    return grid


def show_list() -> None:
    """Protocols, presets and settings of this homa-sim."""
    out = console()
    for row in program.catalogue()["protocols"]:
        presets = program.presets(row["name"])
        title = f"{row['name']}: {row.get('text', '')}"
        if presets:
            title += f"\npresets: {', '.join(presets)} (the first is the default)"
        grid = table(title, "--set", "default", "range", "what", left=1)
        grid.columns[3].justify = "left"
        grid.columns[3].no_wrap = False
        for option in [*(row.get("settings") or []), *(row.get("engine") or [])]:
            unit = option.get("unit", "")
            grid.add_row(
                option["name"],
                f"{option.get('default', '')} {unit}".strip(),
                f"{option.get('min', '')} … {option.get('max', '')}",
                option.get("text", ""),
            )
        out.print(grid)
