# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What homad records (`./homa trace --pcap`) through the dissector."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from homad import needs_homad, needs_root, two_hosts
from ops_tools import RPCS, ask, serving
from shark import ROOT, experts, fields, needs_tshark

pytestmark = [needs_homad, needs_root, needs_tshark,
              pytest.mark.skipif(not RPCS.exists(), reason="tests/homad is not built")]  # fmt: skip


def test_trace__every_rpc_of_a_client_is_followed(tmp_path: Path) -> None:
    """Over AF_XDP and UDP and between applications of one machine; times are plausible."""
    capture = tmp_path / "homad.pcapng"
    with two_hosts() as (a, b), serving(b), serving(a, port=4001):
        trace = a.space.start(
            [sys.executable, "-c", RECORD, str(ROOT), str(a.homad.monitor), str(capture)]
        )
        assert trace.line() == "recording"
        ask(a, b, 20, 100)
        ask(a, b, 3, 300_000)
        ask(a, a, 10, 100, port=4001)
        status, _, error = trace.stop()
        assert status == 0, error
    assert set().union(*experts(capture)) <= {"retransmit", "resend", "rpc_unknown"}
    names = ["homa.encap", "homa.message_length", "homa.dport", "homa.response_time", "homa.stream"]
    rows = fields(capture, names)
    assert rows and all(r["homa.encap"] for r in rows)
    assert "native" in {e for r in rows for e in r["homa.encap"]}
    done = [r for r in rows if r["homa.response_time"]]
    assert len(done) == 33
    assert all(0 < float(t) < 60 for r in done for t in r["homa.response_time"])


# Without the tool's packages: the request, then bytes until SIGTERM.
RECORD = """
import signal, socket, sys
root, monitor, capture = sys.argv[1:]
sys.path.insert(0, root)
s = socket.socket(socket.AF_UNIX)
s.connect(monitor)
s.sendall(b'{"op": "trace", "format": "pcapng"}\\n')
line = b""
while not line.endswith(b"\\n"):
    line += s.recv(1)
signal.signal(signal.SIGTERM, lambda *_: s.sendall(b'{"op": "stop"}\\n'))
print("recording", flush=True)
with open(capture, "wb") as file:
    while data := s.recv(65536):
        file.write(data)
"""
