# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs of homa-bench for tests: its transports, servers and clients, and what any result must fulfil."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from netns import ROOT, Namespace, Net, Process

BUILD = Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve()
PROGRAM = BUILD / "bench" / "homa-bench"
SCHEMA = json.loads((ROOT / "bench" / "schema.json").read_text())

needs_bench = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="makes network namespaces, so it needs root"
)

Result = dict[str, Any]


def bench(*words: str, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *words], capture_output=True, text=True, timeout=timeout, check=False
    )


TRANSPORTS = ["tcp", "tcp-pool", "udp"]
if PROGRAM.exists():
    TRANSPORTS = [t["name"] for t in json.loads(bench("list", "--json").stdout)["transports"]]
    # Each way that libhoma can take is a transport of its own here.
    # UNIX sockets end at the machine: they have tests of their own.
    TRANSPORTS = [t for t in TRANSPORTS if not t.startswith("unix")]
    TRANSPORTS = [
        v for t in TRANSPORTS for v in (["homa/afxdp", "homa/udp"] if t == "homa" else [t])
    ]
STREAMS = [t for t in TRANSPORTS if t != "udp"]


def transport_words(transport: str) -> list[str]:
    name, _, via = transport.partition("/")
    return ["--transport", name, *(["--via", via] if via else [])]


def problems(value: Any, schema: dict[str, Any], where: str = "result") -> list[str]:
    """Why `value` does not follow `schema`: the part of JSON Schema that bench/schema.json uses."""
    if "$ref" in schema:
        return problems(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], where)
    if "anyOf" in schema:
        # Of several schemas all of which are broken, the one broken least is the one that was meant.
        return min((problems(value, one, where) for one in schema["anyOf"]), key=len)
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is not one of {schema['enum']}"]
    kinds = schema.get("type", [])
    python = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    allowed = [kinds] if isinstance(kinds, str) else kinds
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fits = [
        (number and (kind == "number" or float(value).is_integer()))
        if kind in ("number", "integer")
        else isinstance(value, python[kind])
        for kind in allowed
    ]
    if allowed and not any(fits):
        return [f"{where}: {value!r} is not {kinds}"]
    found = []
    if number and value < schema.get("minimum", value):
        found.append(f"{where}: {value} is below {schema['minimum']}")
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += problems(item, schema.get("items", {}), f"{where}[{number}]")
    if isinstance(value, dict):
        found += [
            f"{where}: {name} is missing"
            for name in schema.get("required", [])
            if name not in value
        ]
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            if inner is False:
                found.append(f"{where}: {name} is not in the schema")
            else:
                found += problems(item, inner, f"{where}.{name}")
    return found


def load(path: Path) -> Result:
    result = json.loads(path.read_text())
    assert problems(result, SCHEMA) == []
    return result


@pytest.fixture
def pair():
    with Net() as net:
        yield net.pair()


def serve(
    space: Namespace, transport: str, address: str, *words: str, before: Sequence[str] = ()
) -> Process:
    """Start a server and wait until it is ready."""
    argv = [*before, str(PROGRAM), "server", *transport_words(transport), "--bind", address, *words]
    server = space.start(argv)
    line = server.stderr.line(20)
    assert line and "ready" in line, f"{line}{server.stderr.rest(5)}"
    return server


def client(
    space: Namespace, tmp_path: Path, transport: str, peer: str, *words: str, status: int = 0,
    before: Sequence[str] = (),
) -> Result:  # fmt: skip
    """Run a client to its end and give its checked result."""
    path = tmp_path / "client.json"
    argv = [
        *before,
        str(PROGRAM),
        "client",
        *transport_words(transport),
        "--peer",
        peer,
        "--json",
        str(path),
        *words,
    ]
    done = space.run(argv, check=False, timeout=60)
    assert done.returncode == status, done.stderr
    return load(path)


def at(address: str) -> str:
    return f"[{address}]:4000" if ":" in address else f"{address}:4000"


def consistent(result: Result) -> None:
    """What must hold in any result of a client."""
    rpcs = result["rpcs"]
    assert rpcs["measured"] == rpcs["completed"] + rpcs["failed"]
    assert result["latency_ns"]["count"] == rpcs["completed"] + rpcs["censored"]
    assert sum(result["errors"].values()) == rpcs["failed"]
    classes = result["deciles"] or [result]
    assert sum(c["latency_ns"]["count"] for c in classes) == result["latency_ns"]["count"]
    for one in classes:
        histogram = one["latency_ns"].get("histogram")
        if histogram:
            assert sum(histogram["counts"]) == histogram["count"] == one["latency_ns"]["count"]
            assert histogram["values"] == sorted(histogram["values"])
