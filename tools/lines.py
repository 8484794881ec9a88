# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa trace` without a file: one line for each thing that happens, like tcpdump."""

from __future__ import annotations

import time
from typing import TextIO

from tools.records import DELIVER, END, LOST, PACKETS, RX, SUBMIT, TX, Record, packet, segment

_KNOWN = 100_000  # RPCs remembered


class Lines:
    """Prints records as they come."""

    def __init__(self, out: TextIO, ports: list[str]) -> None:
        self._out = out
        self.ports = ports
        self._known: dict[int, None] = {}
        self.count = 0
        self.lost = 0

    def record(self, record: Record) -> None:
        """One record."""
        if record.kind == LOST:
            self.lost += record.rpc
            text = f"{record.rpc} records lost"
        elif not self._belongs(record):
            return
        elif record.kind in PACKETS:
            text = self._packet(record)
        else:
            text = self._event(record)
        self.count += record.kind != LOST
        second, rest = divmod(record.at_ns, 1_000_000_000)
        clock = time.strftime("%H:%M:%S", time.localtime(second))
        self._out.write(f"{clock}.{rest // 1000:06} {text}\n")

    def _belongs(self, record: Record) -> bool:
        """The end of an RPC has no address; it is wanted if its beginning was."""
        if record.kind in PACKETS or record.peer_port:
            self._known[record.rpc] = None
            if len(self._known) > _KNOWN:
                del self._known[next(iter(self._known))]
            return True
        return record.rpc in self._known

    def _packet(self, record: Record) -> str:
        port = self.ports[record.port] if record.port < len(self.ports) else "?"
        arrow = {RX: "<", TX: ">"}.get(record.kind, "=")
        if record.tcp:
            ends = f"{port} :{record.own_port} {arrow} {record.peer}:{record.peer_port}"
            return f"{ends} TCP {segment(record)}"
        what = packet(record)
        args = " ".join(f"{name} {value}" for name, value in what.args.items())
        return (
            f"{port} :{record.own_port} {arrow} {record.peer}:{record.peer_port} "
            f"rpc {record.rpc} {what.name} {args}"
        )

    def _event(self, record: Record) -> str:
        side = "client" if record.client else "server"
        peer = f" {record.peer}:{record.peer_port}" if record.peer_port else ""
        verb = {SUBMIT: "submits", DELIVER: "gets", END: "ends"}.get(record.kind, "?")
        what = "" if record.kind == END else f" {record.length} bytes"
        error = f" errno {record.error}" if record.error else ""
        return f"app {record.app} {side}{peer} rpc {record.rpc} {verb}{what}{error}"

    def finish(self) -> None:
        """Everything is printed."""
        self._out.flush()

    def summary(self) -> str:
        """One line about it."""
        return f"{self.count} records" + (f", {self.lost} more were lost" if self.lost else "")
