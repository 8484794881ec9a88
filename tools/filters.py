# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which attachments, RPCs and peers somebody wants to see."""

from __future__ import annotations

import ipaddress
import pwd
from dataclasses import dataclass
from functools import cache

from lab.errors import UsageError
from tools.connection import Json


@dataclass(frozen=True)
class Filter:
    """Empty fields match everything."""

    app: str = ""
    peer: str = ""
    port: int = 0
    phase: str = ""
    user: str = ""
    listening: bool = False

    def wants_app(self, app: Json) -> bool:
        """An attachment: by number or name, by user, and by port."""
        return self._app(app) and self._user(app) and (not self.port or app["port"] == self.port)

    def wants_flow(self, flow: Json) -> bool:
        """A TCP connection or listener: by application, user, peer, either port, state."""
        return (
            self._app(flow)
            and self._user(flow)
            and (not self.peer or self.wants_peer({"peer": flow.get("peer", "")}))
            and (not self.port or self.port in (flow["local_port"], flow.get("peer_port")))
            and (not self.phase or flow["state"] == self.phase)
            and (not self.listening or flow["state"] == "listen")
        )

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

    def _user(self, thing: Json) -> bool:
        if not self.user:
            return True
        uid = thing.get("uid")
        return uid is not None and self.user in (str(uid), user_of(int(uid)))


@cache
def user_of(uid: int) -> str:
    """A user's name, or his number if he has none here."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def host_of(address: str) -> str:
    """The IP address in "10.0.0.1", "10.0.0.1:54321", "fd::1" or "[fd::1]:54321"."""
    if address.startswith("["):
        return address[1 : address.index("]")]
    return address.rsplit(":", 1)[0] if address.count(":") == 1 else address


def check(
    app: str, peer: str, port: int, phase: str = "", user: str = "", listening: bool = False
) -> Filter:
    """A filter from the command line; UsageError if it makes no sense."""
    if peer:
        try:
            ipaddress.ip_address(host_of(peer))
        except ValueError:
            raise UsageError(f"--peer {peer}: give an IPv4 or IPv6 address") from None
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: a port is 1 to 65535")
    if phase and phase not in PHASES + STATES:
        raise UsageError(
            f"--state {phase}: choose from {', '.join(PHASES)} for RPCs, "
            f"from {', '.join(STATES)} for TCP"
        )
    return Filter(app, peer, port, phase, user, listening)


PHASES = ("outgoing", "incoming", "no-buffer", "ready", "in-service", "failed")
STATES = (
    "listen", "syn-sent", "syn-received", "established", "fin-wait-1", "fin-wait-2", "close-wait",
    "closing", "last-ack", "time-wait", "closed",
)  # fmt: skip
