# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""System calls of a script, carried out on a stack.

A call becomes an `Attempt`: a function that is tried at once and, while it answers BLOCKS, again
after everything that happens. Descriptors of the script are mapped to those of the stack.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from lab.pkt import symbols
from lab.pkt.config import Config
from lab.pkt.errors import BadScript, Failed, Unsupported
from lab.pkt.script import Call, Ellipsis, Expression, Record, Word
from lab.pkt.stack import Stack, mapped
from lab.pkt.symbols import number

BLOCKS = None
AGAIN = -errno.EAGAIN

# What an engine in virtual time may not know and a script loses nothing by.
_HARMLESS = {
    (socket.SOL_SOCKET, getattr(socket, name))
    for name in ("SO_REUSEADDR", "SO_REUSEPORT", "SO_PRIORITY", "SO_MARK")
}
_UNSUPPORTED_FLAGS = ("MSG_FASTOPEN", "MSG_ZEROCOPY", "MSG_ERRQUEUE")

Attempt = Callable[[], "int | None"]


@dataclass
class Descriptor:
    live: int
    blocking: bool = True
    port: int | None = None
    listening: bool = False


@dataclass
class Calls:
    """`on_*`: the runner is told what the calls mean for its flows. `now`: the clock."""

    stack: Stack
    config: Config
    now: Callable[[], int]
    on_socket: Callable[[int], None]
    on_listen: Callable[[int, int], None]
    on_connect: Callable[[int, ipaddress.IPv4Address | ipaddress.IPv6Address | None, int], None]
    on_accept: Callable[[int], None]
    open: dict[int, Descriptor] = field(default_factory=dict)

    def attempt(self, call: Call) -> Attempt:
        """The call has passed check()."""
        if call.name not in ("socket", "poll") and self._fd(call)[1].live < 0:
            return lambda: -errno.EBADF
        return getattr(self, f"_{call.name}")(call)

    # Sockets

    def _fd(self, call: Call, position: int = 0) -> tuple[int, Descriptor]:
        script = number(call.arguments[position], "the descriptor")
        return script, self.open.get(script) or Descriptor(-1)

    def _new(self, call: Call, live: int, blocking: bool) -> int:
        """The script's descriptor for one of the stack: the number that the script expects."""
        wanted = call.result if isinstance(call.result, int) and call.result >= 0 else live
        if wanted in self.open:
            raise Failed(f"the descriptor {wanted} is open already")
        self.open[wanted] = Descriptor(live, blocking)
        return wanted

    def _socket(self, call: Call) -> Attempt:
        kind = number(call.arguments[1], "the type")
        if kind & 0xF != socket.SOCK_STREAM:
            raise Unsupported("sockets other than SOCK_STREAM")
        protocol = number(call.arguments[2], "the protocol")
        if protocol not in (0, socket.IPPROTO_TCP):
            raise Unsupported("sockets other than TCP's")

        def run() -> int:
            live = self.stack.socket()
            if live < 0:
                return live
            script = self._new(call, live, not kind & socket.SOCK_NONBLOCK)
            self.on_socket(script)
            return script

        return run

    def _bind(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        address, port = symbols.address(call.arguments[1]) or (
            self.config.local,
            self.config.bind_port,
        )

        def run() -> int:
            done = self.stack.bind(fd.live, mapped(address), port)
            if done == 0:
                fd.port = port
            return done

        return run

    def _listen(self, call: Call) -> Attempt:
        script, fd = self._fd(call)
        backlog = number(call.arguments[1], "the backlog")

        def run() -> int:
            done = self.stack.listen(fd.live, backlog)
            if done == 0:
                fd.listening = True
                self.on_listen(script, fd.port or self.config.bind_port)
            return done

        return run

    def _connect(self, call: Call) -> Attempt:
        script, fd = self._fd(call)
        to = symbols.address(call.arguments[1]) or (self.config.remote, self.config.connect_port)
        told = False

        def run() -> int | None:
            nonlocal told
            if not told:
                told = True
                self.on_connect(script, *to)
                done = self.stack.connect(fd.live, mapped(to[0]), to[1])
                if done == -errno.EINPROGRESS and fd.blocking:
                    return BLOCKS
                return done
            done = self.stack.connect(fd.live, mapped(to[0]), to[1])
            return BLOCKS if done in (-errno.EALREADY, -errno.EINPROGRESS) else done

        return run

    def _accept(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        if len(call.arguments) > 1 and not isinstance(call.arguments[1], Ellipsis):
            raise Unsupported("checks of the address that accept() gives")
        flags = number(call.arguments[3], "the flags") if len(call.arguments) > 3 else 0

        def run() -> int | None:
            live = self.stack.accept(fd.live)
            if live < 0:
                return _waits(live, fd, 0)
            script = self._new(call, live, not flags & socket.SOCK_NONBLOCK)
            self.on_accept(script)
            return script

        return run

    _accept4 = _accept

    def _close(self, call: Call) -> Attempt:
        script, fd = self._fd(call)

        def run() -> int:
            self.open.pop(script, None)
            return self.stack.close(fd.live)

        return run

    def _shutdown(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        how = number(call.arguments[1], "the direction")
        return lambda: self.stack.shutdown(fd.live, how)

    # Data

    def _out(self, call: Call, fd: Descriptor, length: int, flags: int) -> Attempt:
        done = 0

        def run() -> int | None:
            nonlocal done
            while done < length or not length:
                wrote = self.stack.write(fd.live, length - done, flags)
                if wrote < 0:
                    return _waits(wrote, fd, flags) if not done or wrote == AGAIN else done
                done += wrote
                if not fd.blocking or flags & socket.MSG_DONTWAIT or not wrote:
                    break
            return done

        def some() -> int | None:
            result = run()
            # Part of it went out of a call that does not block.
            return done if result == AGAIN and done else result

        return some

    def _in(self, fd: Descriptor, length: int, flags: int) -> Attempt:
        done = 0
        whole = flags & socket.MSG_WAITALL

        def run() -> int | None:
            nonlocal done
            while True:
                got = self.stack.read(fd.live, length - done, flags & ~socket.MSG_WAITALL)
                if got == -errno.EBADMSG:
                    raise Failed(
                        "a byte that was read is not its position in the stream modulo 251"
                    )
                if got < 0:
                    return done if done and got != AGAIN else _waits(got, fd, flags)
                done += got
                if not whole or not got or done >= length:
                    return done

        return run

    def _write(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        return self._out(call, fd, number(call.arguments[2], "the length"), 0)

    def _send(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        length = number(call.arguments[2], "the length")
        return self._out(call, fd, length, self._flags(call.arguments[3]))

    def _sendto(self, call: Call) -> Attempt:
        if len(call.arguments) > 4 and not isinstance(call.arguments[4], (Ellipsis, int)):
            raise Unsupported("sendto() with an address")
        return self._send(call)

    def _read(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        return self._in(fd, number(call.arguments[2], "the length"), 0)

    def _recv(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        length = number(call.arguments[2], "the length")
        return self._in(fd, length, self._flags(call.arguments[3]))

    _recvfrom = _recv

    def _writev(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        return self._out(call, fd, _vector(call.arguments[1]), 0)

    def _readv(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        return self._in(fd, _vector(call.arguments[1]), 0)

    def _sendmsg(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        return self._out(call, fd, _message(call.arguments[1]), self._flags(call.arguments[2]))

    def _recvmsg(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        return self._in(fd, _message(call.arguments[1]), self._flags(call.arguments[2]))

    def _flags(self, value: Expression) -> int:
        flags = number(value, "the flags")
        for name in _UNSUPPORTED_FLAGS:
            if flags & symbols.symbol(name):
                raise Unsupported(name)
        return flags

    # Options and events

    def _setsockopt(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        level, name = (number(call.arguments[n], "the option") for n in (1, 2))
        room = call.arguments[4]
        value = _value(call.arguments[3], room if isinstance(room, int) else 0)

        def run() -> int:
            done = self.stack.setsockopt(fd.live, level, name, value)
            if done == -errno.ENOPROTOOPT and (level, name) in _HARMLESS:
                return 0
            return self._known(done, call)

        return run

    def _getsockopt(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        level, name = (number(call.arguments[n], "the option") for n in (1, 2))
        want = call.arguments[3]
        if not isinstance(want, (Ellipsis, list, str, Record)):
            raise Unsupported("this value of getsockopt()")
        room = call.arguments[4]
        room = number(room[0], "the length") if isinstance(room, list) and room else 4

        def run() -> int:
            got = self.stack.getsockopt(fd.live, level, name, room)
            if isinstance(got, int):
                return self._known(got, call)
            if not isinstance(want, Ellipsis):
                _compare(_value(want, room), got)
            return 0

        return run

    def _known(self, done: int, call: Call) -> int:
        if done == -errno.ENOPROTOOPT and call.error != "ENOPROTOOPT":
            names = [a.name if isinstance(a, Word) else str(a) for a in call.arguments[1:3]]
            raise Unsupported(f"the engine does not have the socket option {' '.join(names)}")
        return done

    def _fcntl(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        what = call.arguments[1]
        if not isinstance(what, Word) or what.name not in ("F_GETFL", "F_SETFL"):
            raise Unsupported("fcntl() other than F_GETFL and F_SETFL")
        flags = number(call.arguments[2], "the flags") if len(call.arguments) > 2 else 0

        def run() -> int:
            if what.name == "F_GETFL":
                return os.O_RDWR | (0 if fd.blocking else os.O_NONBLOCK)
            fd.blocking = not flags & os.O_NONBLOCK
            return 0

        return run

    def _ioctl(self, call: Call) -> Attempt:
        _, fd = self._fd(call)
        names = {"SIOCINQ": "inq", "FIONREAD": "inq", "SIOCOUTQ": "outq", "SIOCOUTQNSD": "outqnsd"}
        names["SIOCATMARK"] = "atmark"
        what = call.arguments[1]
        if not isinstance(what, Word) or what.name not in names:
            raise Unsupported("ioctl() other than SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK")
        want = call.arguments[2]

        def run() -> int:
            got = self.stack.info(fd.live, names[what.name])
            if got is None:
                raise Unsupported(f"the engine has no figure '{names[what.name]}' ({what.name})")
            if isinstance(want, list) and want:
                _compare(_value(want, 4), struct.pack("i", got))
            return 0

        return run

    def _poll(self, call: Call) -> Attempt:
        entries = call.arguments[0]
        if not isinstance(entries, list) or not all(isinstance(e, Record) for e in entries):
            raise BadScript("the first argument of poll() is not [{fd=, events=, revents=}]")
        timeout = number(call.arguments[2], "the timeout")
        deadline = self.now() + timeout * 1_000_000 if timeout > 0 else None

        def run() -> int | None:
            seen = [self._events(e.fields) for e in entries]
            count = sum(1 for got in seen if got)
            if not count and timeout < 0 or (not count and deadline and self.now() < deadline):
                return BLOCKS
            for entry, got in zip(entries, seen):
                want = number(entry.fields.get("revents", 0), "revents")
                if got != want:
                    raise Failed(
                        f"poll() finds {_events(got)} at descriptor {entry.fields['fd']}, "
                        f"not {_events(want)}"
                    )
            return count

        return run

    def _events(self, entry: dict[str, Expression]) -> int:
        fd = self.open.get(number(entry.get("fd"), "fd"))
        if fd is None:
            return select.POLLNVAL
        always = select.POLLERR | select.POLLHUP | select.POLLNVAL
        return self.stack.poll(fd.live) & (number(entry.get("events"), "events") | always)

    def deadline(self, call: Call) -> int | None:
        """When a call that waits ends by itself."""
        if call.name != "poll":
            return None
        timeout = number(call.arguments[2], "the timeout")
        return self.now() + timeout * 1_000_000 if timeout > 0 else None


# How many arguments each call has at least, and at most.
ARGUMENTS = {
    **{"socket": (3, 3), "bind": (3, 3), "listen": (2, 2), "connect": (3, 3), "close": (1, 1)},
    **{"accept": (1, 3), "accept4": (4, 4), "shutdown": (2, 2), "fcntl": (2, 3), "ioctl": (3, 3)},
    **{"read": (3, 3), "recv": (4, 4), "recvfrom": (4, 6), "readv": (3, 3), "recvmsg": (3, 3)},
    **{"write": (3, 3), "send": (4, 4), "sendto": (4, 6), "writev": (3, 3), "sendmsg": (3, 3)},
    **{"setsockopt": (5, 5), "getsockopt": (5, 5), "poll": (3, 3)},
}


def check(call: Call) -> None:
    """Unsupported or BadScript if the call cannot be carried out whatever the engine is."""
    if call.name not in ARGUMENTS:
        raise Unsupported(f"the system call {call.name}()")
    least, most = ARGUMENTS[call.name]
    if not least <= len(call.arguments) <= most:
        raise BadScript(f"{call.name}() has {least} to {most} arguments, not {len(call.arguments)}")
    if call.error is not None:
        symbols.errno_of(call.error)


def _waits(result: int, fd: Descriptor, flags: int) -> int | None:
    # For an urgent byte no call waits.
    at_once = flags & (socket.MSG_DONTWAIT | socket.MSG_OOB)
    waits = result == AGAIN and fd.blocking and not at_once
    return BLOCKS if waits else result


def _vector(value: Expression) -> int:
    """The bytes of [{..., 10}, {..., 20}]."""
    if not isinstance(value, list):
        raise BadScript("the vector is not [{..., LENGTH}]")
    total = 0
    for entry in value:
        if not isinstance(entry, Record) or "1" not in entry.fields:
            raise BadScript("an entry of the vector is not {..., LENGTH}")
        total += number(entry.fields["1"], "the length")
    return total


def _message(value: Expression) -> int:
    if not isinstance(value, Record) or "msg_iov" not in value.fields:
        raise BadScript("the message is not {msg_name(...)=..., msg_iov(N)=[...], msg_flags=0}")
    if "msg_control" in value.fields:
        raise Unsupported("control messages")
    if not isinstance(value.fields.get("msg_name", Ellipsis()), Ellipsis):
        raise Unsupported("messages with an address")
    if number(value.fields.get("msg_flags", 0), "msg_flags"):
        raise Unsupported("msg_flags")
    return _vector(value.fields["msg_iov"])


def _value(value: Expression, room: int) -> bytes:
    """The bytes of [1], "cubic" or {onoff=1, linger=0}."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Record) and {"onoff", "linger"} == set(value.fields):
        return struct.pack("ii", *(number(value.fields[n], n) for n in ("onoff", "linger")))
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], (str, Record)):
        size = room if room in (1, 2, 4, 8) else 4
        whole = number(value[0], "the value") & ((1 << 8 * size) - 1)
        return whole.to_bytes(size, "little")
    raise Unsupported("this value of a socket option")


def _compare(want: bytes, got: bytes) -> None:
    got, want = got.rstrip(b"\0"), want.rstrip(b"\0")
    if got == want:
        return
    if len(max(got, want, key=len)) <= 8:
        numbers = [int.from_bytes(v, "little") for v in (got, want)]
        raise Failed(f"the value is {numbers[0]}, not {numbers[1]}")
    raise Failed(f"the value is {got!r}, not {want!r}")


def _events(bits: int) -> str:
    names = ("POLLIN", "POLLPRI", "POLLOUT", "POLLERR", "POLLHUP", "POLLNVAL", "POLLRDHUP")
    found = [name for name in names if bits & getattr(select, name)]
    return "|".join(found) or "nothing"
