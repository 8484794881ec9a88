# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Applications and homads of different days: each uses what both can do."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator

import pytest
from attachtool import ATTACH, CAN_PLACES, LISTEN, LISTEN_ON, RPCS, Client, request
from homad import PROGRAMS, Host, needs_homad, needs_root, one_host, protocol, two_hosts
from netns import eventually
from ops_tools import snapshot
from test_operation import probe

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

NEWER_MINOR = "7"
RECORD = 72  # struct homa_ctl_rpc


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with one_host(arguments=["--udp-only"]) as host:
        yield host


def rings(host: Host, submit: int, complete: int, release: int, *version: str) -> str:
    sizes = [str(size) for size in (submit, complete, release)]
    (line,) = probe(host, "rings", *sizes, *version)
    return line


def test_former_application__finds_all_where_it_was(host: Host) -> None:
    """It wraps every ring, the one for releases last (8,192 entries, two for each RPC)."""
    out = host.run([PROGRAMS / "former", "4200"]).stdout
    assert out.split() == ["ok", str(4200 * 4201)]


@pytest.mark.parametrize("version", ["0", "1", NEWER_MINOR, "255"])
def test_other_minor_version__is_served(host: Host, version: str) -> None:
    assert rings(host, 0, 0, 0, version).startswith("ok ")


def test_answer__is_of_the_version_of_the_question(host: Host) -> None:
    with Client(host.homad.socket) as client:
        client.send(request(ATTACH, version=int(NEWER_MINOR)))
        answer = client.answer()
        assert answer is not None
        assert (answer.error, answer.version) == (0, int(NEWER_MINOR))


def test_application_that_lies_about_the_bell__harms_only_itself(host: Host) -> None:
    """It says that it rings, and does not: homad finds its commands before it would sleep."""
    (line,) = probe(host, "mute")
    assert line.startswith("ok ")


@pytest.mark.parametrize("sizes", [(16, 16, 64), (1024, 8192, 65536), (64, 0, 128), (0, 4096, 0)])
def test_sizes_that_were_asked_for__are_given_and_work(
    host: Host, sizes: tuple[int, int, int]
) -> None:
    assert rings(host, *sizes).startswith("ok ")


@pytest.mark.parametrize(
    "sizes",
    [(8, 0, 0), (2048, 0, 0), (17, 0, 0), (0, 8, 0), (0, 16384, 0), (0, 0, 32), (0, 0, 1 << 31)],
)
def test_other_sizes__are_refused_with_a_sentence(host: Host, sizes: tuple[int, int, int]) -> None:
    line = rings(host, *sizes)
    assert line.startswith(f"error {errno.EINVAL} ") and "powers of two" in line


def test_sizes__are_charged_and_shown(host: Host) -> None:
    def attached(*sizes: int) -> tuple[int, tuple[int, ...]]:
        with Client(host.homad.socket) as client:
            asked = struct.pack("<IIII", *sizes, 0)
            client.send(request(ATTACH, features=CAN_PLACES, ip=asked))
            answer = client.answer()
            assert answer is not None and answer.error == 0
            (app,) = (app for app in snapshot(host.homad)["apps"] if app["phase"] == "open")
            kinds = ("submit", "complete", "release")
            return app["memory_bytes"], tuple(app[f"{kind}_entries"] for kind in kinds)

    usual, entries = attached(0, 0, 0)
    assert entries == (256, 1024, 8192)
    small, entries = attached(16, 16, 64)
    assert entries == (16, 16, 64)
    # Completions, releases and one ring of submissions, but for what pages round up.
    assert 160 << 10 < usual - small < 180 << 10
    large, entries = attached(1024, 8192, 65536)
    assert entries == (1024, 8192, 65536)
    assert large - usual > 1 << 20


def test_rpcs__that_are_listed_are_all() -> None:
    """More requests wait for a server than the places that it has for them and for its own."""
    places, many = 16, 60
    config = {**protocol("timeout_us=20000000,tombstone_ms=25000"), "quota": {"rpcs": places}}
    with two_hosts(config=config) as (here, there), Client(there.homad.socket) as server:
        server.attach()
        assert server.ask(LISTEN, size=LISTEN_ON, port=4000).error == 0
        askers = [
            here.start([PROGRAMS / "rpcs", "ask", there.v4, "4000", "0", "100", str(places)])
            for _ in range(many // places + 1)
        ]
        wanted = places * len(askers)
        assert wanted > 2 * places

        def listed() -> int:
            answer = server.ask(RPCS)
            assert answer.error == 0
            assert len(server.records(answer.total, RECORD)) == answer.total
            return answer.total

        eventually(lambda: listed() == wanted)
