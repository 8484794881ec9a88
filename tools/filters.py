# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which attachments, RPCs and peers somebody wants to see."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from lab.errors import UsageError
from tools.connection import Json


@dataclass(frozen=True)
class Filter:
    """Empty fields match everything."""

    app: str = ""
    peer: str = ""
    port: int = 0
    phase: str = ""

    def wants_app(self, app: Json) -> bool:
        """An attachment: by number or name, and by port."""
        return self._app(app) and (not self.port or app["port"] == self.port)

    def wants_rpc(self, rpc: Json) -> bool:
        """An RPC: by application, address of the peer, either port, phase."""
        return (
            self._app(rpc)
            and self.wants_peer(rpc)
            and (not self.port or self.port in (rpc["port"], rpc["peer_port"]))
            and (not self.phase or rpc["phase"] == self.phase)
        )

    def wants_peer(self, peer: Json) -> bool:
        """A peer: by address, with or without its UDP port."""
        return not self.peer or self.peer in (peer["peer"], host_of(str(peer["peer"])))

    def _app(self, thing: Json) -> bool:
        return not self.app or self.app in (str(thing["app"]), thing["name"])


def host_of(address: str) -> str:
    """The IP address in "10.0.0.1", "10.0.0.1:54321", "fd::1" or "[fd::1]:54321"."""
    if address.startswith("["):
        return address[1 : address.index("]")]
    return address.rsplit(":", 1)[0] if address.count(":") == 1 else address


def check(app: str, peer: str, port: int, phase: str = "") -> Filter:
    """A filter from the command line; UsageError if it makes no sense."""
    if peer:
        try:
            ipaddress.ip_address(host_of(peer))
        except ValueError:
            raise UsageError(f"--peer {peer}: give an IPv4 or IPv6 address") from None
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: a Homa port is 1 to 65535")
    if phase and phase not in PHASES:
        raise UsageError(f"--state {phase}: choose from {', '.join(PHASES)}")
    return Filter(app, peer, port, phase)


PHASES = ("outgoing", "incoming", "no-buffer", "ready", "in-service", "failed")
