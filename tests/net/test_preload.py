# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs for Homa sockets without a kernel that has them: over UDP in the process itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from apitool import PATIENT, SERVER, environment
from netns import ROOT, Namespace, Net
from preloadtool import (
    CHECKS, LIBRARY, PROGRAMS, RUN, SERVERS, client, errors, said_ok, script, server, under,
)  # fmt: skip

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces, so it needs root")

HOMA_SOCKET = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 146)"
TRY = f"""
import os, socket
try:
    print("open", {HOMA_SOCKET}.fileno())
except OSError as error:
    print("errno", error.errno)
"""
EPROTONOSUPPORT = 93


def words(argv: list[str], **env: str) -> list[str]:
    return [*environment(**{"HOMA_VIA": "udp", "HOMA_CONFIG": PATIENT} | env), *argv]


def run(argv: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    argv = words(argv, **env)
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Namespace, Namespace]]:
    with Net() as net:
        yield net.pair()


@pytest.fixture(scope="module", params=["v4", "v6"])
def bed(request: pytest.FixtureRequest) -> Iterator[tuple[str, Namespace, Namespace]]:
    with Net() as net:
        a, b = net.pair()
        process = b.start(words(server(request.param), HOMA_CONFIG=SERVER))
        assert process.line() == "ready"
        yield request.param, a, b
        assert process.running(), process.stderr.rest(5)


@needs_root
@pytest.mark.parametrize("check", CHECKS)
def test_client__over_udp(bed: tuple[str, Namespace, Namespace], check: str) -> None:
    family, a, b = bed
    argv = words(client(family, b.v4 if family == "v4" else b.v6, check))
    said_ok(a.start(argv).wait(90), argv)


@needs_root
def test_client__no_room_for_more(hosts: tuple[Namespace, Namespace]) -> None:
    """A socket waits for room as long as SO_SNDTIMEO lets it."""
    a, b = hosts
    process = b.start(words(server("v4"), HOMA_CONFIG=SERVER))
    assert process.line() == "ready"
    argv = words(client("v4", b.v4, "full"), HOMA_CONFIG="max_rpcs=64")
    said_ok(a.start(argv).wait(60), argv)
    process.stop()


@needs_root
@pytest.mark.parametrize("check", ["sizes", "async"])
def test_client__v4_to_a_v6_socket(bed: tuple[str, Namespace, Namespace], check: str) -> None:
    _family, a, b = bed
    argv = words(client("v4", b.v4, check))
    said_ok(a.start(argv).wait(90), argv)


@needs_root
@pytest.mark.parametrize("check", ["sizes", "async", "failures", "information"])
def test_client__v4_mapped(bed: tuple[str, Namespace, Namespace], check: str) -> None:
    """An AF_INET6 socket reaches IPv4 servers as ::ffff:a.b.c.d and hears of them so."""
    _family, a, b = bed
    argv = words(client("v6", b.v4, check))
    said_ok(a.start(argv).wait(90), argv)


@needs_root
@pytest.mark.parametrize("how", SERVERS)
def test_server__waits_in_all_ways(hosts: tuple[Namespace, Namespace], how: str) -> None:
    a, b = hosts
    process = b.start(words(server("v4", how), HOMA_CONFIG=SERVER))
    assert process.line() == "ready"
    for check in ("sizes", "async", "threads"):
        argv = words(client("v4", b.v4, check))
        said_ok(a.start(argv).wait(90), argv)
    assert process.running(), process.stderr.rest(5)
    process.stop()


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_errors__as_the_kernel_says(family: str) -> None:
    done = run(errors(family))
    said_ok((done.returncode, done.stdout, done.stderr), ["sock_errors", family])


def test_socket__off() -> None:
    """HOMA_PRELOAD=off leaves everything to the kernel, which has no Homa."""
    assert run(script(TRY), HOMA_PRELOAD="off").stdout == f"errno {EPROTONOSUPPORT}\n"
    assert run(script(TRY)).stdout.startswith("open ")


def test_socket__leaves_it_to_a_kernel_with_homa() -> None:
    """The kernel's socket is the program's; with_module.so plays the kernel."""
    code = f"""
import socket
s = {HOMA_SOCKET}
print(s.getsockopt(socket.SOL_SOCKET, 38), s.sendto(b"x", ("127.0.0.1", 9)))
"""
    assert run(script(code), LD_PRELOAD=str(PROGRAMS / "with_module.so")).stdout == "17 1\n"
    # Ours does not take sendto().
    assert "[Errno 22]" in run(script(code)).stderr


def test_socket__no_host_says_why(tmp_path: Path) -> None:
    env = {"HOMA_VIA": "service", "HOMA_SERVICE_SOCKET": str(tmp_path / "none")}
    quiet = run(script(TRY), **env)
    assert quiet.stdout == f"errno {EPROTONOSUPPORT}\n" and quiet.stderr == ""
    told = run(script(TRY), HOMA_PRELOAD_DEBUG="1", **env)
    assert told.stdout == quiet.stdout
    assert "homa-preload: no Homa here: " in told.stderr, told.stderr


OTHERS = """
import os, select, selectors, socket, subprocess, sys, threading
homa = %s
a, b = socket.socketpair()
sel = selectors.DefaultSelector()
for s in (a, homa):
    sel.register(s, selectors.EVENT_READ)
b.send(b"x")
assert [key.fileobj for key, _ in sel.select(5)] == [a]
assert a.recv(1) == b"x" and sel.select(0) == []
# Subprocesses close what they do not need, by vfork or fork; we keep ours.
out = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l; exit 3"], capture_output=True)
assert out.returncode == 3 and int(out.stdout) <= 5, out
pid = os.fork()
if not pid:
    homa.close()
    os.closerange(3, 100)
    os._exit(7)
assert os.waitpid(pid, 0)[1] == 7 << 8
assert homa.getsockname()[1] >= 32768
with open(__import__("tempfile").mktemp(), "w+b", buffering=0) as f:
    os.unlink(f.name)
    f.write(b"file"); f.seek(0); assert f.read(9) == b"file"
server = socket.create_server(("127.0.0.1", 0))
thread = threading.Thread(target=lambda: server.accept()[0].sendall(b"y" * 100000))
thread.start()
with socket.create_connection(server.getsockname()) as c:
    got = b"".join(iter(lambda: c.recv(70000), b""))
assert len(got) == 100000
thread.join()
number = homa.fileno()
homa.close()
r, w = os.pipe()
assert number in (r, w)
os.write(w, b"z")
assert os.read(r, 5) == b"z"
try:
    %s.listen()
except OSError as error:
    assert error.errno == 95
print("ok")
""" % (HOMA_SOCKET, HOMA_SOCKET)


def test_others__untouched() -> None:
    """Pipes, files, TCP, subprocesses and selectors beside a Homa socket."""
    done = run(script(OTHERS))
    said_ok((done.returncode, done.stdout, done.stderr), ["OTHERS"])


def test_run__status_and_arguments(tmp_path: Path) -> None:
    done = run(under("sh", "-c", 'echo "$#" "$2"; exit 5', "sh", "a b", "c  d"))
    assert (done.returncode, done.stdout) == (5, "2 c  d\n")
    done = run([str(RUN), "--nonsense"])
    assert done.returncode == 2 and "--help" in done.stderr
    assert "--via" in run([str(RUN), "--help"]).stdout
    show = ["sh", "-c", "echo $HOMA_VIA $HOMA_SERVICE_SOCKET"]
    done = run(under("--via", "afxdp", "--socket", "/x", *show))
    assert done.stdout == "afxdp /x\n", done.stderr
    alone = tmp_path / "homa-run"
    alone.write_bytes(RUN.read_bytes())
    done = run(["sh", str(alone), "true"])
    assert done.returncode in (0, 127)
    assert ("not installed" in done.stderr) == (done.returncode == 127)


@pytest.mark.parametrize(("compiler", "language"), [("cc", "c"), ("c++", "c++")])
def test_header__compiles(compiler: str, language: str, tmp_path: Path) -> None:
    """Under its usual name, with warnings as errors; its asserts hold."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    command = [compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
               f"-I{ROOT / 'include' / 'compat'}", "-"]  # fmt: skip
    code = "#include <homa.h>\nint main(void) { struct homa_info i; return sizeof(i) != 136; }\n"
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_programs__know_nothing_of_libhoma() -> None:
    for name in ("sock_client", "sock_server", "sock_errors"):
        command = ["nm", "-D", PROGRAMS / name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "homa" not in done.stdout
