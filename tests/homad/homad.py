# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad under test: started in a namespace, awaited, stopped or killed, and looked into.

    with two_hosts() as (a, b):                 # two namespaces on a veth pair, a homad in each
        server = b.start(["some-server"])       # environment: HOMA_VIA=service and b's socket
        a.run(["some-client", a.address(b, 4000)])

    with one_host(config={"quota": {"rpcs": 10}}) as host:
        host.homad.kill()
        host.homad.start()

A daemon's files (attach and monitor socket, configuration, log) are in a folder of its own under
/tmp, since two tests may run at once. At the end of the `with` block the daemon must still live and
must end with status 0 after SIGTERM, unless the test stopped it; a sanitizer's report fails it. It
is ready when it says so by sd_notify, the same way as to systemd.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from netns import ROOT, Namespace, Net, Process, eventually

BUILD = Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve()
HOMAD = Path(os.environ.get("HOMA_HOMAD") or BUILD / "host" / "homad" / "homad")
SANITIZED = "HOMA_SANITIZED" in os.environ
# The most memory of its own, in kB, of a homad that keeps nothing it should not; it takes about 30 MB, or 100 MB with
# a sanitizer that keeps_little().
MOST_KB = 200_000 if SANITIZED else 100_000
PROGRAMS = BUILD / "tests" / "homad"
API_PROGRAMS = BUILD / "tests" / "net"
READY_SECONDS = 60 if SANITIZED else 20

needs_homad = pytest.mark.skipif(not HOMAD.exists(), reason=f"{HOMAD} is not built")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="makes network namespaces, so it needs root"
)

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_REPORT = re.compile(r"^.*(?:Sanitizer|runtime error:).*$", re.M)


def report(**figures: object) -> None:
    """Add figures to the file $HOMA_REPORT, for `./homa fuzz --json`; and print them."""
    print(figures)
    path = Path(os.environ.get("HOMA_REPORT") or os.devnull)
    if path != Path(os.devnull):
        known = json.loads(path.read_text()) if path.exists() and path.stat().st_size else {}
        path.write_text(json.dumps(known | figures, indent=2) + "\n")


Table = Mapping[str, object]
Settings = Mapping[str, Table | Sequence[Table]]


def toml(settings: Settings) -> str:
    """A configuration file: {"quota": {"rpcs": 10}} as "[quota]" and "rpcs = 10"; a list has a
    "[[tcp_rule]]" for each of its tables."""

    def value(v: object) -> str:
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, (list, tuple)):
            return f"[{', '.join(map(value, v))}]"
        return (
            str(v)
            if isinstance(v, (int, float))
            else '"' + str(v).replace("\\", "\\\\").replace('"', '\\"') + '"'
        )

    lines: list[str] = []
    for name, table in settings.items():
        single = isinstance(table, Mapping)
        for one in [table] if single else table:
            lines += [f"[{name}]" if single else f"[[{name}]]"] if name else []
            lines += [f"{key} = {value(v)}" for key, v in one.items()]
    return "".join(f"{line}\n" for line in lines)


def protocol(settings: str) -> Settings:
    """A configuration with libhoma's "name=value,name=value" (HOMA_CONFIG) as protocol settings."""
    pairs = (pair.split("=") for pair in settings.split(",") if pair)
    return {"protocol": {name: int(value) for name, value in pairs}}


# On a busy machine a homad that a sanitizer slows down is silent for seconds, and what it then says comes later
# than servers usually remember requests: either makes an RPC time out.
PATIENT = protocol("timeout_us=20000000,tombstone_ms=25000,restart_guard_us=1")


class Homad:
    """A daemon, perhaps started several times; `log` collects its standard error over all of them.

    `prefix`: command words before it (setpriv ..., a shell); `expect_failure`: start() does not wait.
    """

    def __init__(
        self, space: Namespace | None, config: Settings | str = "", arguments: Sequence[str] = (),
        prefix: Sequence[str] = (), folder: Path | None = None, env: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.space = space
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="homad-test-"))
        self.folder.chmod(0o755)
        self.socket = self.folder / "homad.sock"
        self.monitor = self.folder / "monitor.sock"
        self.log_file = self.folder / "log"
        self.config_file = self.folder / "homad.toml"
        self.arguments, self.prefix, self.env = list(arguments), list(prefix), dict(env or {})
        self.configure(config)
        self._popen: subprocess.Popen[bytes] | None = None
        self.was_stopped = False

    def configure(self, config: Settings | str) -> None:
        """Write the configuration file; for the next start(), or before SIGHUP."""
        self.config_file.write_text(config if isinstance(config, str) else toml(config))

    def argv(self) -> list[str]:
        words = [*self.prefix, str(HOMAD), "--config", str(self.config_file), "--socket", str(self.socket),
                 "--monitor", str(self.monitor), *self.arguments]  # fmt: skip
        return self.space.command(words) if self.space else words

    def start(self, wait: bool = True) -> Homad:
        """Start it, and wait until it is ready unless told not to."""
        if self._popen is not None:
            assert self._popen.poll() is not None, "it runs already"
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = self.folder / "notify.sock"
        path.unlink(missing_ok=True)
        ready.bind(str(path))
        path.chmod(0o777)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HOMA_")}
        with self.log_file.open("ab") as log:
            self._popen = subprocess.Popen(
                self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=inherited | {"NOTIFY_SOCKET": str(path)} | self.env,
                preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
            )  # fmt: skip
        self.was_stopped = False
        with ready:
            if wait:
                self._await(ready)
        return self

    def _await(self, ready: socket.socket) -> None:
        ready.settimeout(0.1)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            try:
                if b"READY=1" in ready.recv(4096):
                    return
            except TimeoutError:
                pass
            if not self.running():
                raise AssertionError(
                    f"homad ended with {self._popen and self._popen.returncode}:\n{self.log()}"
                )
        raise AssertionError(f"homad was not ready within {READY_SECONDS} s:\n{self.log()}")

    @property
    def pid(self) -> int:
        """The daemon itself: `ip netns exec` and setpriv replace themselves by it."""
        assert self._popen
        return self._popen.pid

    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def await_log(self, pattern: str, timeout: float = 20) -> str:
        """Wait for a line that matches; the line."""

        def found() -> str:
            match = re.search(f"^.*(?:{pattern}).*$", self.log(), re.M)
            return match.group(0) if match else ""

        try:
            return str(eventually(found, timeout))
        except AssertionError:
            raise AssertionError(f"no line with {pattern!r}:\n{self.log()}") from None

    def send_signal(self, number: int) -> None:
        assert self._popen
        self._popen.send_signal(number)

    def wait(self, timeout: float = 30) -> int:
        """Wait for its end; its status, negative for a signal."""
        assert self._popen
        self.was_stopped = True
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self._popen.send_signal(signal.SIGABRT if SANITIZED else signal.SIGKILL)
            self._popen.wait()
            raise AssertionError(f"homad did not end within {timeout} s:\n{self.log()}") from None

    def stop(self, number: int = signal.SIGTERM, timeout: float = 30) -> int:
        """Ask it to end; its status."""
        if self.running():
            self.send_signal(number)
        return self.wait(timeout)

    def kill(self) -> None:
        """End it as a crash would; start() starts it anew."""
        self.stop(signal.SIGKILL)

    def reports(self) -> list[str]:
        """What a sanitizer complained about."""
        return _REPORT.findall(self.log())

    def check(self) -> None:
        """It lives and no sanitizer complained."""
        assert self.running(), (
            f"homad ended with {self._popen and self._popen.returncode}:\n{self.log()[-6000:]}"
        )
        assert not self.reports(), self.log()[-20000:]

    def finish(self) -> None:
        """The end of a test: it lives, ends well when asked, and nothing of it stays."""
        try:
            if not self.was_stopped and self._popen:
                self.check()
                status = self.stop(timeout=60)
                assert status == 0, f"homad ended with {status}:\n{self.log()[-6000:]}"
                assert not self.socket.exists(), "the attach socket was left behind"
            assert not self.reports(), self.log()[-20000:]
        finally:
            if self.running():
                self.stop(signal.SIGKILL)
            if self._own_folder:
                shutil.rmtree(self.folder, ignore_errors=True)

    # What the kernel says of it.

    def fds(self) -> dict[str, str]:
        """Its open descriptors and what they are."""
        found = {}
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                found[entry.name] = os.readlink(entry)
            except OSError:
                continue
        return found

    def maps(self) -> int:
        """How many shared-memory mappings of applications it has (a sanitizer makes others)."""
        return Path(f"/proc/{self.pid}/maps").read_text().count("memfd:")

    def status(self, name: str) -> int:
        """A number of /proc/PID/status: VmRSS (kB), Threads."""
        match = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text(), re.M)
        assert match, name
        return int(match.group(1))

    def rss(self) -> int:
        """Resident memory without the applications' shared memory, kB."""
        return self.status("RssAnon")

    def switches(self) -> int:
        """How often its threads went to sleep and woke up."""
        total = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            match = re.search(
                r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M
            )
            total += int(match.group(1)) if match else 0
        return total

    def _resources(self) -> tuple[int, int]:
        return len(self.fds()), self.maps()

    def resources(self) -> tuple[int, int]:
        """What must be the same again when applications are gone: descriptors and their memory.

        Taken twice: at its start a daemon has a descriptor now and then for a moment.
        """
        while True:
            first = self._resources()
            time.sleep(0.1)
            if self._resources() == first:
                return first

    def await_resources(self, before: tuple[int, int], timeout: float = 30) -> None:
        """Wait until resources() are no more than `before`; an AssertionError that names them if not."""

        def gone() -> bool:
            now = self._resources()
            return now[0] <= before[0] and now[1] <= before[1]

        try:
            eventually(gone, timeout)
        except AssertionError:
            kinds = sorted(self.fds().values())
            raise AssertionError(
                f"{self.resources()} instead of {before}: {kinds}\n{self.log()[-4000:]}"
            ) from None


class Host:
    """A namespace with a homad; programs started on it find it as their service."""

    def __init__(self, space: Namespace, homad: Homad, peer: Namespace | None = None) -> None:
        self.space, self.homad, self.peer = space, homad, peer
        self.v4, self.v6 = space.v4, space.v6

    def words(self, argv: Sequence[str], via: str = "service", **env: str) -> list[str]:
        inherited = [name for name in os.environ if name.startswith("HOMA_")]
        env = {"HOMA_VIA": via, "HOMA_SERVICE_SOCKET": str(self.homad.socket)} | env
        return [
            "env",
            *(w for name in inherited for w in ("-u", name)),
            *(f"{k}={v}" for k, v in env.items()),
            *argv,
        ]

    def start(self, argv: Sequence[str], via: str = "service", **env: str) -> Process:
        return self.space.start(self.words(list(map(str, argv)), via, **env))

    def run(
        self,
        argv: Sequence[str],
        timeout: float = 60,
        via: str = "service",
        check: bool = True,
        **env: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; an AssertionError with what it said unless its status is 0."""
        done = self.space.run(
            self.words(list(map(str, argv)), via, **env), check=False, timeout=timeout
        )
        if check and done.returncode:
            raise AssertionError(f"{argv}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}\n"
                                 f"homad: {self.homad.log()[-3000:]}")  # fmt: skip
        return done

    def address(self, other: Host, port: int, family: str = "v4") -> str:
        """How programs here call `other`'s Homa port."""
        return f"{other.v4}:{port}" if family == "v4" else f"[{other.v6}]:{port}"


@contextmanager
def finishing(*daemons: Homad) -> Iterator[None]:
    """Every daemon is finished even if the test or another daemon failed. The test's failure wins,
    but a sanitizer's report is added to it: it is the reason, and allows no second chance."""
    failed, worst = True, None
    try:
        yield
        failed = False
    finally:
        for daemon in daemons:
            try:
                daemon.finish()
            except AssertionError as error:
                if worst is None and (not failed or _REPORT.search(str(error))):
                    worst = error
        if worst is not None:
            raise worst


@contextmanager
def two_hosts(
    config: Settings | str = PATIENT, arguments: Sequence[str] = (), mtu: int = 1500,
    env: Mapping[str, str] | None = None, queues: int = 1,
) -> Iterator[tuple[Host, Host]]:  # fmt: skip
    """Two namespaces, 10.9.0.1 and .2, fd09::1 and ::2, joined by a veth pair; a homad in each."""
    with Net() as net:
        spaces = net.pair(mtu=mtu, queues=queues)
        hosts = [Host(s, Homad(s, config, arguments, env=env)) for s in spaces]
        with finishing(*(h.homad for h in hosts)):
            for host in hosts:
                host.homad.start()
            yield hosts[0], hosts[1]


def keeps_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sanitizer keep 32 MB of freed memory, not 256 MB, in the homads that the test starts: a leak shows then."""
    if SANITIZED:
        usual = os.environ.get("ASAN_OPTIONS", "")
        monkeypatch.setenv("ASAN_OPTIONS", f"{usual}:quarantine_size_mb=32")


@contextmanager
def one_host(
    config: Settings | str = "", arguments: Sequence[str] = (), start: bool = True, prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Iterator[Host]:  # fmt: skip
    """A namespace with a homad. Its veth's other end is in a namespace of its own, without a daemon:
    `host.peer`, for programs with another way to speak Homa."""
    with Net() as net:
        space, peer = net.pair()
        host = Host(space, Homad(space, config, arguments, prefix, env=env), peer)
        with finishing(host.homad):
            if start:
                host.homad.start()
            yield host
