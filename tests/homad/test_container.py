# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad and applications in containers: docs/containers.md, tried with what containers are made of.

The image is what `meson install` makes, two programs compiled against it by pkg-config, and the
libraries that they need: nothing else of this machine. Its programs run by container.py in mount, PID,
IPC, host name and user namespaces of their own without a capability; the attach socket's folder is a
volume, bound to /run/homa.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from homad import (
    BUILD,
    Homad,
    Host,
    Settings,
    finishing,
    needs_homad,
    needs_root,
    one_host,
    two_hosts,
)
from netns import ROOT, Net, Process, eventually
from ops_tools import tool

CONTAINER = Path(__file__).with_name("container.py")
PREFIX = "usr/local"
OUTER = 100000  # first of the machine's ids in a mapped container
TEXT = "through the wall"
SOCKETS = BUILD / "tests/preload/sock_server"
RIGHTS = (12, 13, 14, 39)  # CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_BPF
OTHER_NAMESPACES = ("pid", "mnt", "ipc", "uts")


def _refusal() -> str:
    """Why this machine does not let even root make such namespaces; "" if it does."""
    if os.geteuid() != 0:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name in ("proc", "tmp"):
            (Path(folder) / name).mkdir()
        words = [sys.executable, str(CONTAINER), "--user", str(OUTER), folder, "/nothing"]
        said = subprocess.run(words, capture_output=True, text=True).stderr.strip()
    # All went well until there was no such program.
    return "" if "'/nothing'" in said else said


pytestmark = [needs_homad, needs_root,
              pytest.mark.skipif(bool(_refusal()), reason=f"no containers here: {_refusal()}"),
              pytest.mark.skipif(not shutil.which("gcc"), reason="compiles a program: gcc is not there")]  # fmt: skip


def libraries(*programs: Path) -> set[str]:
    """What the distribution has to bring for these."""
    found = set()
    for program in programs:
        text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        found |= set(re.findall(r"(/\S+) \(0x", text))
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file system of all containers here."""
    root = tmp_path_factory.mktemp("image")
    env = {**os.environ, "DESTDIR": str(root)}
    subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
        check=True,
        env=env,
        timeout=300,
    )
    place = root / PREFIX
    pkgconfig = next(place.glob("lib/**/libhoma.pc")).parent
    lib = pkgconfig.parent
    env |= {"PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_LIBDIR": str(pkgconfig)}
    words = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libhoma"],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    ).stdout.split()
    (root / "app").mkdir()
    programs = []
    for name in ("echo_client", "echo_server"):
        programs.append(root / "app" / name)
        subprocess.run(["gcc", "-o", programs[-1], ROOT / f"examples/{name}.c", *words], check=True)
    if SOCKETS.exists():
        shutil.copy(SOCKETS, root / "app")
        shutil.copy(SOCKETS.with_name("sock_client"), root / "app")
    for path in libraries(
        place / "sbin/homad", *lib.glob("libhoma-embedded.so.0"), Path("/bin/sh")
    ):
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    for folder in ("proc", "tmp", "run/homa", "etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "etc/ld.so.conf").write_text(f"/{lib.relative_to(root)}\n")
    subprocess.run(["ldconfig", "-r", root], check=True)
    root.chmod(0o755)
    # pytest's folders are for their owner alone.
    moved = Path("/tmp") / f"homad-image-{os.getpid()}"
    shutil.rmtree(moved, ignore_errors=True)
    shutil.move(root, moved)
    try:
        yield moved
    finally:
        shutil.rmtree(moved, ignore_errors=True)


def contained(
    image: Path, volume: Path, argv: Sequence[str], user: int | None = None, uid: int = 1000,
    groups: Sequence[int] = (), net: bool = False, env: dict[str, str] | None = None,
) -> list[str]:  # fmt: skip
    """The command that runs `argv` in a container whose /run/homa is `volume`."""
    env = {"HOMA_VIA": "service", "HOMA_SERVICE_SOCKET": "/run/homa/homad.sock"} | (env or {})
    options = ["--uid", str(uid), "--bind", str(volume), "/run/homa"]
    options += ["--user", str(user)] if user is not None else []
    options += ["--groups", ",".join(map(str, groups))] if groups else []
    options += ["--net"] if net else []
    options += [w for name, value in env.items() for w in ("--env", f"{name}={value}")]
    return [sys.executable, str(CONTAINER), *options, str(image), *argv]


def child_of(process: Process) -> int:
    """The machine's number of the contained program."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return int(str(eventually(path.read_text)).split()[0])


@contextmanager
def serving(
    host: Host, image: Path, port: int = 4000, **how: int | bool | Sequence[int] | None
) -> Iterator[Process]:
    """An echo server in a container on `host`."""
    server = host.space.start(
        contained(image, host.homad.folder, ["/app/echo_server", str(port)], **how)
    )
    line = server.line()
    assert line.startswith(f"serving port {port} over service"), line
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


def call(
    host: Host, image: Path, address: str, **how: int | bool | Sequence[int] | None
) -> subprocess.CompletedProcess:
    """One RPC from a container on `host`."""
    words = contained(image, host.homad.folder, ["/app/echo_client", address, TEXT], **how)
    return host.space.run(words, check=False, timeout=60)


def called(done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0 and done.stdout.strip() == TEXT, done.stdout + done.stderr


def attached(homad: Homad) -> list[dict]:
    """The attachments that ./homa ss shows."""
    found = json.loads(tool(homad, "ss", "--json").stdout)
    return next(v for v in found.values() if isinstance(v, list) and v and "pid" in v[0])


def namespaces(pid: int) -> dict[str, str]:
    return {
        kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("user", "net", *OTHER_NAMESPACES)
    }


@pytest.mark.parametrize("user", [None, OUTER], ids=["machine-ids", "mapped-ids"])
def test_application__in_its_own_namespaces(image: Path, user: int | None) -> None:
    """Client and server in containers on two hosts; the server has no rights and little in common with homad."""
    with two_hosts() as (a, b), serving(b, image, user=user) as server:
        pid = child_of(server)
        status = Path(f"/proc/{pid}/status").read_text()
        assert len(re.findall(r"^Cap\w+:\s+0{16}$", status, re.M)) == 5
        assert re.search(r"^NSpid:\s+\d+\s+1$", status, re.M) and re.search(
            r"^NoNewPrivs:\s+1$", status, re.M
        )
        outside, inside = namespaces(b.homad.pid), namespaces(pid)
        assert all(outside[kind] != inside[kind] for kind in OTHER_NAMESPACES)
        assert (outside["user"] != inside["user"]) == (user is not None)
        called(call(a, image, f"{b.v4}:4000", user=user))
        called(call(a, image, f"[{b.v6}]:4000", user=user))


def test_application__needs_no_network(image: Path) -> None:
    """The volume is enough: an application in an empty network namespace calls other hosts, and serves them."""
    with two_hosts() as (a, b), serving(b, image, net=True, user=OUTER) as server:
        assert namespaces(child_of(server))["net"] != namespaces(b.homad.pid)["net"]
        called(call(a, image, f"{b.v4}:4000", net=True, user=OUTER))


@pytest.mark.skipif(not SOCKETS.exists(), reason="tests/preload is not built")
def test_preload__unmodified_program(image: Path) -> None:
    """Programs for Homa sockets, in containers, by LD_PRELOAD alone."""
    library = next((image / PREFIX).glob("lib/**/libhoma-preload.so")).relative_to(image)
    env = {"LD_PRELOAD": f"/{library}"}
    with two_hosts() as (a, b):
        server = b.space.start(
            contained(image, b.homad.folder, ["/app/sock_server", "4", "4000", "block"], env=env)
        )
        assert server.line() == "ready"
        done = a.space.run(
            contained(
                image, a.homad.folder, ["/app/sock_client", "4", b.v4, "4000", "sizes"], env=env
            ),
            check=False,
        )
        assert done.returncode == 0 and done.stdout.splitlines()[-1] == "ok", (
            done.stdout + done.stderr
        )
        server.stop(signal.SIGKILL)


def test_pid__is_the_machines(image: Path) -> None:
    """A homad outside of the container knows the application by the number that the machine knows it by."""
    with one_host() as host, serving(host, image, user=OUTER) as server:
        (app,) = attached(host.homad)
        assert app["pid"] == child_of(server) and app["uid"] == OUTER + 1000


def test_kill__of_a_container_frees_everything(image: Path) -> None:
    with one_host() as host:
        before = host.homad.resources()
        with serving(host, image, user=OUTER):
            assert host.homad.resources() > before
        host.homad.await_resources(before)


def test_rules__are_about_the_machines_ids(image: Path) -> None:
    """A container's root is nobody special outside; users and groups count as they are mapped."""
    rules = f"""
[[rule]]
user = {OUTER + 1000}
ports = [4000, 4000]

[[rule]]
group = {OUTER + 7}
ports = []

[[rule]]
user = 0
ports = [1, 32767]

[[rule]]
allow = false
"""
    with one_host(config=rules) as host:
        with serving(host, image, user=OUTER, uid=1000):
            address = f"{host.v4}:4000"
            called(call(host, image, address, user=OUTER, uid=1000))
            called(call(host, image, address, user=OUTER, uid=1001, groups=[5, 7]))
            called(call(host, image, address, uid=0))  # without a user namespace root is root
            for refused in ({"uid": 1001}, {"uid": 0}, {"uid": 1001, "groups": [5, 8]}):
                done = call(host, image, address, user=OUTER, **refused)
                assert done.returncode == 1 and not done.stdout, refused
                assert (
                    done.stderr.startswith("echo_client: ") and len(done.stderr.splitlines()) == 1
                ), done.stderr
        # The right user, another port.
        words = contained(image, host.homad.folder, ["/app/echo_server", "4001"], user=OUTER)
        done = host.space.run(words, check=False)
        assert done.returncode == 1 and "not 4001; a [[rule]]" in done.stderr, done.stderr


class Sidecar(Homad):
    """homad from the image in a container of its own."""

    def __init__(
        self,
        space: object,
        image: Path,
        config: Settings | str,
        uid: int,
        user: int | None,
        rights: Sequence[int],
    ) -> None:
        super().__init__(space, config, [] if rights else ["--udp-only"])
        self.image, self.uid, self.user, self.rights = image, uid, user, rights
        owner = uid + (user or 0)
        os.chown(self.folder, owner, owner)

    def argv(self) -> list[str]:
        folder = str(self.folder)
        options = ["--uid", str(self.uid), "--bind", folder, folder]
        options += ["--user", str(self.user)] if self.user is not None else []
        options += ["--capabilities", ",".join(map(str, self.rights))] if self.rights else []
        words = [f"/{PREFIX}/sbin/homad", *super().argv()[super().argv().index("--config") :]]
        assert self.space
        return self.space.command(
            [sys.executable, str(CONTAINER), *options, str(self.image), *words]
        )

    @property
    def pid(self) -> int:
        assert self._popen
        return int(
            Path(f"/proc/{self._popen.pid}/task/{self._popen.pid}/children").read_text().split()[0]
        )


@contextmanager
def sidecars(
    image: Path,
    config: Settings | str = "",
    uid: int = 4242,
    user: int | None = None,
    rights: Sequence[int] = (),
) -> Iterator[list[Host]]:
    """Two pods: a network namespace with a homad in a container of its own each; without `rights` in UDP."""
    with Net() as net:
        hosts = [
            Host(space, Sidecar(space, image, config, uid, user, rights)) for space in net.pair()
        ]
        with finishing(*(h.homad for h in hosts)):
            for host in hosts:
                host.homad.start()
            yield hosts


def test_sidecar__process_of_another_namespace(image: Path) -> None:
    """Beside each other containers do not see each other's processes: the number is 0, and all else works.

    The configuration is that of packaging/container; homad has no right at all.
    """
    with sidecars(image, (ROOT / "packaging/container/homad.toml").read_text()) as (a, b):
        status = Path(f"/proc/{b.homad.pid}/status").read_text()
        assert len(re.findall(r"^Cap\w+:\s+0{16}$", status, re.M)) == 5
        before = b.homad.resources()
        with serving(b, image) as server:
            inside = namespaces(child_of(server))
            assert all(namespaces(b.homad.pid)[kind] != inside[kind] for kind in OTHER_NAMESPACES)
            (app,) = attached(b.homad)
            assert app["pid"] == 0 and app["uid"] == 1000
            called(call(a, image, f"{b.v4}:4000"))
        b.homad.await_resources(before)


def test_sidecar__afxdp_with_four_capabilities(image: Path) -> None:
    """Packets of its own without root. CAP_IPC_LOCK stands for a higher limit of locked memory."""
    config = {"network": {"interfaces": ["eth0"], "afxdp": "on", "udp": False}}
    with sidecars(image, config, rights=RIGHTS) as (a, b), serving(b, image):
        called(call(a, image, f"{b.v4}:4000"))
        status = Path(f"/proc/{b.homad.pid}/status").read_text()
        assert re.search(r"^Uid:\s+4242\s+4242\s+4242\s+4242$", status, re.M)


def test_sidecar__ids_are_those_of_its_own_user_namespace(image: Path) -> None:
    """Containers with one map of ids: rules say what the containers say."""
    rules = "[[rule]]\nuser = 1000\nports = [4000, 4000]\n[[rule]]\nallow = false\n"
    with sidecars(image, rules, user=OUTER) as (a, b), serving(b, image, user=OUTER):
        called(call(a, image, f"{b.v4}:4000", user=OUTER))
        assert call(a, image, f"{b.v4}:4000", user=OUTER, uid=1001).returncode == 1


def test_sidecar__ids_that_it_has_no_name_for(image: Path) -> None:
    """Containers with different maps: the kernel shows every foreign id as 65534, for rules and quotas alike."""
    rules = "[[rule]]\nuser = 65534\nports = [4000, 4000]\n[[rule]]\nallow = false\n"
    with sidecars(image, rules, user=OUTER) as (a, b), serving(b, image, user=OUTER + 65536):
        called(call(a, image, f"{b.v4}:4000", user=OUTER + 2 * 65536))
        assert call(a, image, f"{b.v4}:4000", user=OUTER).returncode == 1


def test_volume__outlives_a_restart(image: Path) -> None:
    """The folder is shared, not the socket: when homad is back, the server in its container serves again."""
    with sidecars(image) as (a, b), serving(b, image) as server:
        called(call(a, image, f"{b.v4}:4000"))
        for end in (b.homad.stop, b.homad.kill):
            end()
            b.homad.start()
            assert server.running()

            def again() -> bool:
                return call(a, image, f"{b.v4}:4000").returncode == 0

            eventually(again, 60)
