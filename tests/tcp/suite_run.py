# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""One suite in one way, for lab/test/suites.py: suite_run.py SUITE kernel|homad REPORT."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE.parent / "net", HERE.parent / "homad", HERE, HERE.parents[1]):
    sys.path.insert(0, str(folder))

import suite_built  # noqa: E402 - found by the paths above
from netns import Process  # noqa: E402
from ways import Side, opened, port, two_sides  # noqa: E402

PYTHON = "/usr/bin/python3"
# Whatever port a suite takes; and IPC by what it likes.
CONFIG = """
[[tcp_rule]]
listen = [1, 65535]
connect = [1, 65535]
"""
SECONDS = 600


def python_module(side: Side, module: str, report: Path) -> None:
    """Its tests in one namespace: its servers and clients are one process."""
    words = [PYTHON, HERE / "python_suite.py", module, report]
    process = side.start(["timeout", "-k", "5", SECONDS, *words])
    # Its output goes to ours, the log, as it comes.
    deadline = time.monotonic() + SECONDS + 30
    while time.monotonic() < deadline and (line := process.stderr.line(SECONDS + 30)) is not None:
        sys.stdout.write(line)
        sys.stdout.flush()
    process.wait(60)


KINDS = ("-tls1_2", "-tls1_3", "-tls1_2 -cipher AES128-GCM-SHA256", "-tls1_3 -reconnect",
         "-tls1_2 -reconnect", "-tls1_2 -no_ticket")  # fmt: skip


def openssl(server: Side, client: Side, report: Path) -> None:
    """s_server and s_client on two hosts: each kind of session, 5 MB down, and lines both ways."""
    with tempfile.TemporaryDirectory() as name, report.open("w") as out:
        folder = Path(name)
        data = random.Random(5).randbytes(5_000_000)
        (folder / "big").write_bytes(data)
        make = (
            "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=test -days 2 -keyout key -out cert"
        )
        server.space.run(["/bin/sh", "-ec", f"cd {folder}; {make}"])
        for kind in KINDS:
            for what in ("page", "lines"):
                out.write(f"begun {what} {kind}\n")
                out.flush()
                try:
                    (page if what == "page" else lines)(server, client, folder, kind, data)
                    out.write(f"passed {what} {kind}\n")
                except Exception as error:
                    print(what, kind, repr(error), flush=True)
                    out.write(f"failed {what} {kind}\n")


def serve(server: Side, client: Side, folder: Path, how: str) -> tuple[Process, int]:
    number = port()
    words = (
        f"cd {folder}; exec openssl s_server {how} -accept {server.v4}:{number} -key key -cert cert"
    )
    process = server.start(["/bin/sh", "-ec", words])
    client.run([PYTHON, HERE / "peers.py", "await", server.v4, number])
    return process, number


def page(server: Side, client: Side, folder: Path, kind: str, data: bytes) -> None:
    process, number = serve(server, client, folder, "-quiet -WWW")
    ask = f"printf 'GET /big HTTP/1.0\\r\\n\\r\\n' | openssl s_client {kind.replace('-reconnect', '')} -quiet"
    client.run(
        ["/bin/sh", "-ec", f"{ask} -connect {server.v4}:{number} > {folder}/got 2> {folder}/said"]
    )
    assert (folder / "got").read_bytes().partition(b"\r\n\r\n")[2] == data
    process.stop()


def lines(server: Side, client: Side, folder: Path, kind: str, data: bytes) -> None:
    del data
    process, number = serve(server, client, folder, "-quiet -rev")
    ask = f"(echo hello; sleep 0.5) | openssl s_client {kind} -connect {server.v4}:{number}"
    said = client.run(["/bin/sh", "-ec", f"{ask} 2> {folder}/said"]).stdout
    assert "Verification" in said, said[-500:]
    if "-reconnect" not in kind:
        assert "olleh" in said, said[-500:]
    process.stop()


def main() -> int:
    suite, way, report = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    with two_sides(way, CONFIG) as (server, client):
        before = [opened(side)[0] for side in (server, client)]
        if suite == "openssl":
            openssl(server, client, report)
        elif suite in ("curl", "memcached"):
            getattr(suite_built, suite)(server, report)
        else:
            python_module(server, suite, report)
        kernels = sum(opened(side)[0] for side in (server, client)) - sum(before)
        with report.open("a") as out:
            out.write(f"kernel {kernels}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
