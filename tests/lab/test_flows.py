# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-flows: what bounds a stream, and when its window opens."""

import itertools
import json
import socket
import subprocess
import time
from contextlib import ExitStack

import pytest
from conftest import needs_bench

from lab.paths import homa_flows


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _flows(pace: int, *more: str) -> dict:
    port = _free_port()
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


@needs_bench
def test_flows__latencies_of_each_part_of_the_window() -> None:
    port = _free_port()
    echo = [homa_flows(), "server", "127.0.0.1", str(port)]
    with subprocess.Popen(echo, stdout=subprocess.DEVNULL) as server:
        try:
            words = ["--warmup", "0", "--duration", "0.5", "--parts", "0.1", "--json", "-"]
            ask = [homa_flows(), "client", "127.0.0.1", str(port), *words]
            done = subprocess.run(ask, capture_output=True, check=True)
            many = subprocess.run([*ask, "--parts", "0.0001"], capture_output=True, text=True)
        finally:
            server.terminate()
    found = json.loads(done.stdout)
    counts = [part["count"] for part in found["parts"]]
    # An answer that comes just after the window is in no part.
    assert len(counts) == 5 and sum(counts) <= found["requests"] <= sum(counts) + 64
    assert found["part_s"] == 0.1 and found["latency_ns"]["count"] == found["requests"]
    assert many.returncode == 2 and "1000 parts or more" in many.stderr


def _pipeline(stages: int, *words: str) -> dict:
    """What the sink says behind so many stages; `words` are for all programs."""
    ports = [_free_port() for _ in range(stages + 1)]
    with ExitStack() as running:

        def begin(role: str, port: int, *more: str) -> None:
            process = subprocess.Popen([homa_flows(), role, "127.0.0.1", str(port), *more, *words])
            running.callback(process.wait)
            running.callback(process.terminate)

        for port, after in itertools.pairwise(ports):
            begin("stage", port, "--next", f"127.0.0.1,{after}")
        begin("source", ports[0])
        done = subprocess.run(
            [homa_flows(), "sink", "127.0.0.1", str(ports[-1]), *words, "--warmup", "0",
             "--duration", "0.5", "--json", "-"],
            capture_output=True, check=True, timeout=60,
        )  # fmt: skip
    return json.loads(done.stdout)


@needs_bench
@pytest.mark.parametrize("stages", [0, 1, 3])
@pytest.mark.parametrize("size", [16, 64, 1000, 65536])
def test_pipeline__has_every_tuple_in_its_order(stages: int, size: int) -> None:
    found = _pipeline(stages, "--size", str(size))
    assert found["wrong"] == 0
    assert found["all_requests"] >= found["requests"] > 0
    assert found["latency_ns"]["count"] == found["requests"]
    assert found["bytes"] == found["requests"] * size


@needs_bench
def test_pipeline__waits_for_a_batch() -> None:
    """At random times, so that no stage is ever full: each of two waits for 20 ms."""
    alone = _pipeline(1, "--rate", "2000")
    batched = _pipeline(1, "--rate", "2000", "--batch-us", "20000")
    assert alone["wrong"] == batched["wrong"] == 0
    # The youngest tuple of a batch waits for nothing, the oldest for both.
    assert batched["latency_ns"]["max"] >= 20e6
    assert alone["latency_ns"]["min"] < 20e6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stage", "127.0.0.1", "9"], "--next ADDRESS,PORT"),
        (["stage", "127.0.0.1", "9", "--next", "here"], "say ADDRESS,PORT"),
        (["stage", "127.0.0.1", "9", "--next", "1.2.3,9"], "is no address"),
        (["sink", "127.0.0.1", "9", "--size", "15"], "at least 16 bytes"),
        (["drain", "127.0.0.1", "9"], "source, stage or sink"),
    ],
)
@needs_bench
def test_pipeline__a_mistake_is_told(words: list[str], said: str) -> None:
    done = subprocess.run([homa_flows(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and said in done.stderr


@needs_bench
def test_flows__an_open_loop_begins_a_warm_up_before_its_window() -> None:
    """Few requests are due before, however early the connections are there; else 3,000 would be."""
    port = _free_port()
    echo = [homa_flows(), "server", "127.0.0.1", str(port)]
    with subprocess.Popen(echo, stdout=subprocess.DEVNULL) as server:
        try:
            at = time.monotonic() + 3
            words = ["--rate", "1000", "--warmup", "0", "--duration", "0.2", "--json", "-"]
            done = subprocess.run(
                [homa_flows(), "client", "127.0.0.1", str(port), *words, "--measure-at", str(at)],
                capture_output=True, check=True,
            )  # fmt: skip
        finally:
            server.terminate()
    found = json.loads(done.stdout)
    assert 0 < found["requests"] <= found["all_requests"] < 2000
