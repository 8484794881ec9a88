# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-flows: what bounds a stream, and when its window opens."""

import json
import socket
import subprocess
import time

from conftest import needs_bench

from lab.paths import homa_flows


def _flows(pace: int, *more: str) -> dict:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            homa_flows(),
            "server",
            "127.0.0.1",
            str(port),
            "--mode",
            "receive",
            "--pace",
            str(pace),
            "--size",
            "65536",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        done = subprocess.run(
            [homa_flows(), "client", "127.0.0.1", str(port), "--mode", "receive", *more,
             "--duration", "0.5", "--json", "-"],
            capture_output=True, check=True,
        )  # fmt: skip
    finally:
        server.terminate()
        server.wait()
    return json.loads(done.stdout)


@needs_bench
def test_flows__a_pace_bounds_a_stream_and_a_window_opens_when_told() -> None:
    at = time.monotonic() + 0.5
    slow = _flows(2_000_000, "--warmup", "0", "--measure-at", str(at))
    # What waited in buffers comes on top; without a pace it is some thousand times as much.
    assert 0 < slow["bits_per_s"] < 20e6
    assert slow["opened_at_s"] >= at
    fast = _flows(0, "--warmup", "0.1", "--measure-at", "1")
    assert fast["bits_per_s"] > slow["bits_per_s"] and fast["opened_at_s"] > at
