# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa hw demo`: two hosts whose Homa goes through a Verilated card each: one echo, then messages
of workload W4, of which every byte is checked; the cards' counters before and after."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.hw import card
from lab.hw.host import CardHost, card_host
from lab.net.hosts import Lab
from lab.paths import BUILD, homa_bench

PORT = 4000
# The simulated card is some thousand times slower than one of silicon.
CONFIG = "timeout_us=30000000,restart_guard_us=1"
TEXT = "hello through the RTL"
# What is shown of the counters, with their names in docs/hardware-registers.md in small letters.
SHOWN = (
    *("sent", "super", "got", "units", "pieces", "no_slot", "kernel_out", "kernel_in"),
    *("tx_frames", "rx_frames", "tx_bytes", "rx_bytes", "lso_sent", "lso_refused", "lso_other"),
    *("lro_frame", "lro_passed", "lro_opened", "lro_merged", "lro_timed", "lro_ended"),
    *("lro_urgent", "lro_differs", "rss_homa", "rss_undecoded", "cycles"),
)


@dataclass(frozen=True)
class Options:
    """`seconds`: for which messages are sent; `wave`: where the waveform of the echo goes;
    `without`: offloads that the cards do not have."""

    seconds: int = 10
    wave: Path | None = None
    without: tuple[str, ...] = ()


def main(options: Options) -> int:
    if os.geteuid() != 0:
        raise LabError("the demo makes network namespaces and TAP interfaces, so it needs root")
    examples = BUILD / "examples"
    if not (examples / "echo-client").exists():
        raise LabError(f"{examples} has no echo-client; run ./homa build")
    print("Building the Verilated card, unless it is there ...", flush=True)
    program = card.build()
    features = [f"--no-{name}" for name in options.without]
    with Lab() as net, ExitStack() as stack:
        a, b = net.pair()
        wave = ["--wave", str(options.wave.resolve())] if options.wave else []
        client = stack.enter_context(card_host(program, a, *features, *wave))
        server = stack.enter_context(card_host(program, b, *features))
        _echo(client, server, examples)
        if options.wave:
            print(f"waveform of this RPC in the client's card: {options.wave}")
        before = client.counters(), server.counters()
        _messages(client, server, options.seconds)
        after = client.counters(), server.counters()
    _show(before, after)
    print("The times of a simulated card say nothing about one of silicon.")
    return 0


def _start(stack: ExitStack, command: list[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _echo(client: CardHost, server: CardHost, examples: Path) -> None:
    with ExitStack() as stack:
        serve = server.command([str(examples / "echo-server"), str(PORT)], HOMA_CONFIG=CONFIG)
        out = _start(stack, serve).stdout
        if not out or not out.readline():
            raise LabError("the echo server ended at once")
        argv = [str(examples / "echo-client"), f"{server.host.address}:{PORT}", TEXT]
        done = subprocess.run(
            client.command(argv, HOMA_CONFIG=CONFIG), capture_output=True, text=True, check=False
        )
    if done.stdout != f"{TEXT}\n":
        raise LabError(f"the echo did not come back: {done.stderr or done.stdout}")
    print(f"echo: {done.stdout}", end="", flush=True)


def _messages(client: CardHost, server: CardHost, seconds: int) -> None:
    """W4 both ways for some seconds; LabError unless all were answered as they should."""
    bench = [str(homa_bench())]
    homa = ["--transport", "homa", "--check", "--via", "message", "--homa-config", CONFIG]
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        _start(stack, server.command([*bench, "server", "--bind", f":{PORT}", *homa]))
        result = Path(folder) / "result.json"
        argv = [*bench, "client", "--peer", f"{server.host.address}:{PORT}", *homa]
        argv += ["--workload", "w4", "--outstanding", "4", "--duration", str(seconds)]
        argv += ["--timeout", "60", "--drain", "60", "--connect-timeout", "30"]
        argv += ["--json", str(result), "--no-histograms"]
        done = subprocess.run(client.command(argv), capture_output=True, text=True, check=False)
        if done.returncode or not result.exists():
            raise LabError(f"homa-bench failed: {done.stderr or done.stdout}")
        said = json.loads(result.read_text())
    rpcs, sizes = said["rpcs"], said["deciles"]
    wrong = rpcs["issued"] - rpcs["completed"]
    print(
        f"W4, 4 at a time for {seconds} s and until the last is answered: {rpcs['issued']} RPCs of "
        f"{sizes[0]['size_min']:,} to {sizes[-1]['size_max']:,} bytes, {wrong} failed, every byte "
        "but the first four of each checked on both hosts"
    )
    if wrong or not rpcs["issued"]:
        raise LabError("not all RPCs were answered")


def _show(
    before: tuple[dict[str, int], dict[str, int]], after: tuple[dict[str, int], dict[str, int]]
) -> None:
    print(f"{'':<16}{'client before':>16}{'after':>12}{'server before':>16}{'after':>12}")
    for name in SHOWN:
        row = (before[0][name], after[0][name], before[1][name], after[1][name])
        print(f"{name:<16}{row[0]:>16,}{row[1]:>12,}{row[2]:>16,}{row[3]:>12,}")
