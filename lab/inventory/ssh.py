# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs a script on many hosts at once over SSH, in a process of its own that has asyncssh.

The wheels of requirements.txt are in a folder that only this process sees. It reads {"hosts": [...],
"script": {name: text}} and writes for each host what came out, or why nothing did.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from lab import wheels
from lab.errors import LabError
from lab.inventory.hosts import RealHost
from lab.paths import BUILD, ROOT

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_PIP_S = 300
CONNECT_S, SCRIPT_S = 15, 30
KEEPALIVE_S = (
    5  # between two questions whether the host is there; after three without an answer it is not
)
_MOST = 100_000  # characters of a host's answer


def site() -> Path:
    """The folder with the wheels, made if need be; LabError."""
    try:
        return wheels.site(BUILD / "inventory", _REQUIREMENTS, _PIP_S)
    except LabError as error:
        raise LabError(
            f"pip cannot fetch asyncssh, which --inventory needs; it says: {error}"
        ) from None


def ask(hosts: list[RealHost], scripts: dict[str, str]) -> dict[str, dict]:
    """For each host, by name: {"out", "before", "after"} with the times, by our clock, at which its
    script was sent and had ended; or {"problem"}."""
    question = {"hosts": [host.__dict__ for host in hosts], "scripts": scripts}
    done = subprocess.run(
        [wheels.PYTHON, "-m", "lab.inventory.ssh"],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise LabError(f"asyncssh cannot be used; its process says: {last}")
    return json.loads(done.stdout)


def environment() -> dict[str, str]:
    """Of a process that has asyncssh."""
    return {**os.environ, "PYTHONPATH": f"{site()}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}


def connect(host: dict):  # noqa: ANN201 (asyncssh is imported late)
    """A connection to `host`, which is a RealHost's fields, as an asynchronous context."""
    import asyncssh

    files = {}
    if host["key"]:
        files["client_keys"] = [str(Path(host["key"]).expanduser())]
    if host["known_hosts"]:
        files["known_hosts"] = str(Path(host["known_hosts"]).expanduser())
    return asyncssh.connect(
        host["ssh"],
        port=host["ssh_port"],
        username=host["user"],
        connect_timeout=CONNECT_S,
        login_timeout=CONNECT_S,
        keepalive_interval=KEEPALIVE_S,
        **files,
    )


def problem(host: dict, error: Exception) -> str:
    """What `error`, of a connection, means."""
    import asyncssh

    where = f"{host['user']}@{host['ssh']} port {host['ssh_port']}"
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return f"{where} shows a host key that known_hosts does not have ({error})"
    if isinstance(error, asyncssh.PermissionDenied):
        return f"{where} does not accept the key"
    if isinstance(error, TimeoutError):
        return f"{where} does not answer in time"
    return f"{where} cannot be reached: {error}"


async def _one(host: dict, script: str) -> dict:
    import asyncssh

    try:
        async with connect(host) as connection:
            before = time.time()
            run = connection.run("sh -s", input=script, check=False, errors="replace")
            done = await asyncio.wait_for(run, SCRIPT_S)
            return {"out": str(done.stdout)[:_MOST], "before": before, "after": time.time()}
    except (OSError, TimeoutError, asyncssh.Error, ValueError) as error:
        return {"problem": problem(host, error)}


async def _all(question: dict) -> dict:
    hosts = question["hosts"]
    answers = [_one(host, question["scripts"][host["name"]]) for host in hosts]
    found = await asyncio.gather(*answers)
    return {host["name"]: answer for host, answer in zip(hosts, found, strict=True)}


if __name__ == "__main__":
    json.dump(asyncio.run(_all(json.load(sys.stdin))), sys.stdout)
