# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Carries a script out: statement by statement, moving the stack's clock from one of its timers to
the next, so that what it sends has an exact time.

A statement's relative time counts from the moment at which the one before was done with. A packet
that must be sent may come earlier or later than the script says by the tolerance (`config`), and
nothing else that the connection sends may come before it. A call that waits (`+0...0.2 read(...)`)
is tried again after everything that happens, while the script goes on.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from lab.pkt import calls, code, match, notation, settings, symbols
from lab.pkt.config import Config
from lab.pkt.errors import BadScript, Failed, ScriptError, Unsupported
from lab.pkt.flow import Flow, Sent, State
from lab.pkt.notation import seconds
from lab.pkt.script import (
    SECOND,
    Beyond,
    Call,
    Code,
    Command,
    Ellipsis,
    IcmpPacket,
    Script,
    Statement,
    TcpPacket,
    When,
)
from lab.pkt.stack import NEVER, Stack
from lab.pkt.wire import Address, Segment, decode, encode, encode_icmp

TRACE = 12
# How long "*" waits for a packet, and how far a failure looks ahead for one that comes late.
PATIENCE = 3600 * SECOND
# Timers of the stack that are due without time going on: it hangs.
MOST_AT_ONCE = 100_000
FIRST_PORT = 40000


@dataclass
class Waiting:
    """A call that has not returned."""

    statement: Statement
    call: Call
    attempt: calls.Attempt
    begin: int
    due: int  # when it must return
    tolerance: int
    deadline: int | None  # when it returns by itself (a timeout)


@dataclass
class Seen:
    """A packet, for the list that a failure shows."""

    time: int
    flow: Flow | None
    packet: TcpPacket | IcmpPacket | Segment


def check(script: Script) -> list[ScriptError]:
    """What cannot be carried out whatever the engine is, with its line."""
    found: list[ScriptError] = []
    for statement in script.statements:
        action = statement.action
        try:
            if isinstance(action, Beyond):
                raise (BadScript if action.bad else Unsupported)(action.why)
            if isinstance(action, Call):
                calls.check(action)
            elif isinstance(action, Command):
                settings.check(action.text)
            elif isinstance(action, Code):
                code.check(action.text)
        except ScriptError as error:
            error.line = error.line or statement.line
            found.append(error)
    return found


class Runner:
    def __init__(self, script: Script, config: Config, stack: Stack, strict: bool = False) -> None:
        self.script, self.config, self.stack, self.strict = script, config, stack, strict
        self.clock = 0
        self.flows: list[Flow] = []
        self.tested: Flow | None = None  # the flow that a packet without ports belongs to
        self.strangers: deque[Sent] = deque()
        self.trace: deque[Seen] = deque(maxlen=TRACE)
        self.waiting: Waiting | None = None
        self.ports = FIRST_PORT
        self.variables: dict[str, object] = {}
        self.calls = calls.Calls(
            stack,
            config,
            lambda: self.clock,
            self._on_socket,
            self._on_listen,
            self._on_connect,
            self._on_accept,
        )

    def run(self) -> None:
        """ScriptError, with the line of the statement."""
        statement = self.script.statements[0]
        try:
            for statement in self.script.statements:
                self._statement(statement)
            self._finish_waiting()
            if self.strict:
                self._nothing_left(statement)
        except ScriptError as error:
            error.line = error.line or statement.line
            raise
        except OSError as error:
            raise Failed(f"the engine: {error}", statement.line) from error

    def _statement(self, statement: Statement) -> None:
        action, when = statement.action, statement.when
        base = self.clock if when.relative else 0
        if isinstance(action, TcpPacket) and not action.inbound:
            self._expect(action, when, base)
            return
        waiting = self.waiting
        if waiting and base + when.begin > waiting.due + waiting.tolerance:
            self._finish_waiting()
        self._advance(base + when.begin)
        if base + when.begin + self._tolerance(0) < self.clock:
            raise Failed(
                f"at {seconds(self.clock)} already, the statement is due at "
                f"{seconds(base + when.begin)}"
            )
        if isinstance(action, TcpPacket):
            self._arrive(action)
        elif isinstance(action, IcmpPacket):
            self._arrive_icmp(action)
        elif isinstance(action, Call):
            self._call(statement, action, base)
        elif isinstance(action, Command):
            settings.apply(action.text, self.stack)
        elif isinstance(action, Code):
            code.run(action.text, self._figure, self.variables)
        self._happened()

    # Time

    def _advance(self, until: int, stop: Callable[[], bool] | None = None) -> None:
        """Moves the clock to `until`, or to where `stop()` becomes true."""
        at_once = 0
        while True:
            if stop is not None and stop():
                return
            due = self.stack.next()
            if self.waiting and self.waiting.deadline is not None:
                due = min(due, self.waiting.deadline)
            if due == NEVER or due > until:
                break
            at_once = at_once + 1 if due <= self.clock else 0
            if at_once > MOST_AT_ONCE:
                raise Failed(f"the engine's timer stays due at {seconds(due)}")
            self.clock = max(self.clock, due)
            if self.waiting and self.waiting.deadline is not None and due == self.waiting.deadline:
                self.waiting.deadline = None
            self.stack.run(self.clock)
            self._happened()
        if until > self.clock:
            self.clock = until
            self.stack.run(self.clock)
            self._happened()

    def _happened(self) -> None:
        """Something was done to the stack: collect what it sent, try the call that waits."""
        self.stack.run(self.clock)
        self._collect()
        if self.waiting:
            self._try_waiting()

    def _collect(self) -> None:
        while packet := self.stack.packet_out():
            segment = decode(packet)
            sent = Sent(self.clock, segment)
            flow = self._owner(segment)
            self.trace.append(Seen(self.clock, flow, segment))
            if flow is None:
                self.strangers.append(sent)
            else:
                flow.learn(segment)
                flow.queue.append(sent)

    def _owner(self, segment: Segment) -> Flow | None:
        if segment.source != self.config.local:
            return None
        return next((f for f in reversed(self.flows) if f.owns(segment)), None)

    def _tolerance(self, distance: int) -> int:
        by_percent = int(distance * self.config.tolerance_percent / 100)
        return max(self.config.tolerance_usecs * 1000, by_percent)

    # Packets that arrive

    def _flow_of(self, packet: TcpPacket) -> Flow:
        """The flow that a packet of the script belongs to; one that arrives may begin it."""
        ports = packet.ports
        if ports:
            key = ports if packet.inbound else (ports[1], ports[0])
            for known in reversed(self.flows):
                if known.script_ports == key:
                    return known
        flow = self.tested
        if flow is not None and flow.state == State.NEW:
            # Nothing can arrive for it yet, so the connection before it is meant.
            others = (
                f for f in reversed(self.flows) if f.state not in (State.NEW, State.LISTENING)
            )
            flow = next(others, flow)
        if flow is None or flow.state in (State.NEW, State.LISTENING):
            if packet.inbound:
                return self._new_passive(ports)
            raise BadScript("no connection is there that the packet could belong to")
        if packet.inbound and ports and (flow.script_ports or flow.state == State.PASSIVE):
            return self._new_passive(ports)
        if ports:
            flow.script_ports = flow.script_ports or key
        return flow

    def _new_passive(self, ports: tuple[int, int] | None) -> Flow:
        listening = next((f for f in reversed(self.flows) if f.state == State.LISTENING), None)
        local = listening.local_port if listening else self.config.bind_port
        self.ports += 1
        flow = Flow(State.PASSIVE, None, self.ports, local)
        if ports:
            flow.script_ports = ports
            flow.remote_port = ports[0] or flow.remote_port
            flow.local_port = ports[1] or flow.local_port
        self.flows.append(flow)
        self.tested = flow
        return flow

    def _arrive(self, packet: TcpPacket) -> None:
        flow = self._flow_of(packet)
        self.trace.append(Seen(self.clock, None, packet))
        for segment in flow.inbound(packet, self.config):
            self.stack.packet_in(encode(segment))

    def _arrive_icmp(self, packet: IcmpPacket) -> None:
        flow = self.tested
        if flow is None or flow.state in (State.NEW, State.LISTENING):
            raise BadScript("no connection is there that the ICMP error could be about")
        self.trace.append(Seen(self.clock, None, packet))
        about = flow.quoted(packet, self.config)
        self.stack.packet_in(encode_icmp(packet, self.config.remote, about, packet.length))

    # Packets that are sent

    def _expect(self, want: TcpPacket, when: When, base: int) -> None:
        flow = self._flow_of(want)
        if flow.state == State.CONNECTING and "S" in want.flags:
            flow.state = State.OPENING
        begin, end = base + when.begin, base + (when.begin if when.end is None else when.end)
        if when.any:
            begin, end = 0, self.clock + PATIENCE
        tolerance = (
            0 if when.any else self._tolerance(when.begin if when.relative else end - self.clock)
        )
        self._advance(end + tolerance, lambda: bool(flow.queue))
        if not flow.queue:
            raise self._missing(want, flow, begin, end)
        first = flow.queue.popleft()
        flow.expect(want, first.segment)
        got = flow.outbound(first.segment, want)
        last = first.time
        while got.length < want.length and not self.config.strict_segments:
            if not flow.queue:
                self._advance(end + tolerance, lambda: bool(flow.queue))
            if not flow.queue:
                break
            next_ = flow.outbound(flow.queue[0].segment, want)
            if not match.joins(got, next_):
                break
            last = flow.queue.popleft().time
            got = match.joined(got, next_)
        wrong = match.differences(want, got, self.config, self.strict)
        for time in dict.fromkeys((first.time, last)):
            if not begin - tolerance <= time <= end + tolerance:
                wrong.append(_off(time, begin, end, tolerance))
        if wrong:
            raise self._wrong(want, got, wrong, begin, first.time)

    def _wrong(
        self, want: TcpPacket, got: Segment, wrong: list[str], begin: int, time: int
    ) -> Failed:
        lines = ["the packet that was sent is another", *(f"    {w}" for w in wrong)]
        lines.append(f"    expected: {seconds(begin)} {notation.scripted(want)}")
        lines.append(
            f"    got:      {seconds(time)} {notation.segment(got, inbound=False, like=want)}"
        )
        return Failed("\n".join(lines + self._history()))

    def _missing(self, want: TcpPacket, flow: Flow, begin: int, end: int) -> Failed:
        history = self._history()
        self._advance(self.clock + PATIENCE, lambda: bool(flow.queue))
        lines = ["no packet was sent", f"    expected: {seconds(begin)} {notation.scripted(want)}"]
        if flow.queue:
            late = flow.queue[0]
            shown = notation.segment(flow.outbound(late.segment, want), inbound=False, like=want)
            lines.append(f"    got:      nothing until {seconds(late.time)} {shown}")
        else:
            lines.append(f"    got:      nothing, until an hour after {seconds(end)}")
        return Failed("\n".join(lines + history))

    def _nothing_left(self, last: Statement) -> None:
        for flow in self.flows:
            if flow.queue:
                raise self._extra(flow.queue[0], flow, last)
        if self.strangers:
            raise self._extra(self.strangers[0], None, last)

    def _extra(self, sent: Sent, flow: Flow | None, last: Statement) -> Failed:
        segment = flow.outbound(sent.segment) if flow else sent.segment
        shown = notation.segment(segment, inbound=False)
        whose = "" if flow else " (of no connection of the script; its numbers are the wire's)"
        lines = [
            "a packet was sent that no statement expects",
            f"    got:      {seconds(sent.time)} {shown}{whose}",
            f"    the script ends with line {last.line}",
        ]
        return Failed("\n".join(lines + self._history()))

    def _history(self) -> list[str]:
        if not self.trace:
            return []
        lines = ["    the last packets:"]
        for seen in self.trace:
            if isinstance(seen.packet, TcpPacket):
                shown = notation.scripted(seen.packet)
            elif isinstance(seen.packet, IcmpPacket):
                shown = notation.icmp(seen.packet)
            else:
                segment = seen.flow.outbound(seen.packet) if seen.flow else seen.packet
                shown = notation.segment(segment, inbound=False)
            lines.append(f"        {seconds(seen.time)} {shown}")
        return lines

    # System calls

    def _call(self, statement: Statement, call: Call, base: int) -> None:
        self._finish_waiting()
        due = self.clock if call.end is None else base + call.end
        tolerance = self._tolerance(due - self.clock)
        deadline = self.calls.deadline(call)
        attempt = self.calls.attempt(call)
        self.waiting = Waiting(statement, call, attempt, self.clock, due, tolerance, deadline)
        self._try_waiting()
        if call.end is None and self.waiting:
            self._finish_waiting()

    def _try_waiting(self) -> None:
        waiting = self.waiting
        if waiting is None:
            return
        # What the attempt does may make something happen, which must not try it again.
        self.waiting = None
        try:
            result = waiting.attempt()
            if result is calls.BLOCKS:
                self.waiting = waiting
                return
            self.stack.run(self.clock)
            self._collect()
            self._returned(waiting, result)
        except ScriptError as error:
            error.line = error.line or waiting.statement.line
            raise

    def _finish_waiting(self) -> None:
        """The call that waits must return now, or before anything else is done."""
        waiting = self.waiting
        if waiting is None:
            return
        until = max(waiting.due, self.clock) + waiting.tolerance
        self._advance(until, lambda: self.waiting is None)
        if self.waiting is not None:
            raise Failed(
                f"{waiting.call.name}() waits\n"
                f"    expected: it returns at {seconds(waiting.due)}\n"
                f"    got:      it still waits at {seconds(self.clock)}"
                + "".join(f"\n{line}" for line in self._history()),
                waiting.statement.line,
            )

    def _returned(self, waiting: Waiting, result: int) -> None:
        call = waiting.call
        want = call.result
        if not isinstance(want, Ellipsis):
            number = symbols.number(want, "the result")
            wanted = -symbols.errno_of(call.error) if call.error else number
            if call.error is None and number == -1:
                wanted = result if result < 0 else -errno.EINVAL
            if result != wanted:
                raise Failed(
                    f"{call.name}() returns something else\n"
                    f"    expected: {_result(wanted)}\n"
                    f"    got:      {_result(result)}"
                    + "".join(f"\n{line}" for line in self._history())
                )
        if not waiting.due - waiting.tolerance <= self.clock <= waiting.due + waiting.tolerance:
            raise Failed(
                f"{call.name}() returns at another time\n"
                f"    {_off(self.clock, waiting.due, waiting.due, waiting.tolerance)}"
            )

    def _on_socket(self, script: int) -> None:
        self.tested = Flow(State.NEW, script)
        self.flows.append(self.tested)

    def _on_listen(self, script: int, port: int) -> None:
        for flow in self.flows:
            if flow.fd == script and flow.state in (State.NEW, State.LISTENING):
                flow.state, flow.local_port = State.LISTENING, port

    def _on_connect(self, script: int, address: Address | None, port: int) -> None:
        for flow in self.flows:
            if flow.fd == script and flow.state == State.NEW:
                if address is not None and address.version == 6 and address.ipv4_mapped:
                    address = address.ipv4_mapped
                if address != self.config.remote:
                    raise Unsupported("connections to other addresses than the remote one")
                flow.state, flow.remote_port = State.CONNECTING, port

    def _on_accept(self, script: int) -> None:
        """Connections are accepted in the order in which they came to be."""
        for flow in self.flows:
            if flow.state == State.PASSIVE and flow.fd is None and flow.local_isn is not None:
                flow.fd = script
                return

    def _figure(self, field: str) -> int | None:
        scripts = [self.tested.fd] if self.tested and self.tested.fd is not None else []
        for script in [*scripts, *reversed(self.calls.open)]:
            descriptor = self.calls.open.get(script)
            if descriptor is not None:
                return self.stack.info(descriptor.live, field)
        raise BadScript("no socket is open that the code could ask")


def _off(time: int, begin: int, end: int, tolerance: int) -> str:
    wanted = seconds(begin) if begin == end else f"{seconds(begin)} to {seconds(end)}"
    allowed = f"tolerance {tolerance / 1000:g} us"
    return f"the time is {seconds(time)}, not {wanted} ({allowed})"


def _result(value: int) -> str:
    return f"-1 {symbols.errno_name(-value)}" if value < 0 else str(value)
