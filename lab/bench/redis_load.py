# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""redis-benchmark as a job of run_jobs(): GETs of 50 connections, one after the other on each, for about so long.

    python3 redis_load.py ADDRESS PORT SECONDS JSON-FILE [WORD…]

The words come before redis-benchmark's name (homa-run). The server need not be up yet.
"""

from __future__ import annotations

import csv
import io
import json
import socket
import subprocess
import sys
import time

SCHEMA = "homa-redis/1"
PROBE = 5000  # requests after which the rate is known well enough to say how many fill the time
UP_S = 20.0


def await_server(address: str, port: int) -> None:
    """Return when somebody listens there; OSError if nobody does for UP_S."""
    end = time.monotonic() + UP_S
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


def rate(words: list[str], address: str, port: int, requests: int) -> float:
    """Requests per second that redis-benchmark reports."""
    argv = ["redis-benchmark", "-h", address, "-p", str(port), "-t", "get", "-c", "50", "-P", "1"]
    argv = [*words, *argv, "-n", str(requests), "--csv"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"redis-benchmark: {done.stderr.strip() or done.stdout.strip()}")
    for line in csv.reader(io.StringIO(done.stdout)):
        if line and line[0].startswith("GET"):
            return float(line[1])
    raise ValueError(f"redis-benchmark printed no rate: {done.stdout!r}")


def main(argv: list[str]) -> None:
    """Find out how many requests fill the time, then measure."""
    address, port, seconds, file, *words = argv
    await_server(address, int(port))
    requests = int(rate(words, address, int(port), PROBE) * float(seconds)) or 1
    found = {"schema": SCHEMA, "rate": rate(words, address, int(port), requests)}
    with open(file, "w", encoding="utf-8") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main(sys.argv[1:])
