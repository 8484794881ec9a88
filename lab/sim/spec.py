# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""One run: what homa-sim is told, and the name under which its result is kept.

A spec is a plain dict from flag to value: text, a list of texts for flags that repeat, a dict of
names to values for "set". Two specs that say the same have the same identity, whatever the order
and whether numbers were written as text or not; the program's own hash is part of it, so that no
result of an older build is taken for one of this.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from lab.errors import UsageError
from lab.sim import topology
from lab.sim.flags import FLAGS, check

Spec = dict[str, object]
# Paths whose contents matter, not their name.
_FILES = ("workload", "arrivals")


def merge(*parts: Spec) -> Spec:
    """Later parts win; settings are merged one by one."""
    result: Spec = {}
    for part in parts:
        for name, value in part.items():
            if name == "set" and isinstance(value, dict):
                before = result.get("set", {})
                result["set"] = {**(before if isinstance(before, dict) else {}), **value}
            else:
                result[name] = value
    return result


def settings_of(texts: list[str]) -> dict[str, str]:
    """["a=1"] as {"a": "1"}; UsageError for anything else."""
    result = {}
    for text in texts:
        name, _, value = _checked("set", text).partition("=")
        result[name] = value
    return result


def _checked(name: str, value: object) -> str:
    flag = FLAGS.get(name)
    if not flag:
        raise UsageError(f"there is no flag --{name}; ./homa sim run --help lists them")
    try:
        return check(flag, value)
    except UsageError as error:
        raise UsageError(f"--{name} {error}") from None


def normal(spec: Spec) -> Spec:
    """`spec` with a topology file expanded and every value checked and in one form."""
    parts = dict(spec)
    kind = str(parts.get("topology", ""))
    if kind.endswith(".toml"):
        del parts["topology"]
        parts = merge(topology.load(Path(kind)), parts)
    result: Spec = {}
    for name, value in parts.items():
        if name == "set":
            pairs = value if isinstance(value, dict) else settings_of(_texts(value))
            result["set"] = {
                key: _checked("set", f"{key}={_plain(item)}").partition("=")[2]
                for key, item in sorted(pairs.items())
            }
        elif name in FLAGS and FLAGS[name].many:
            result[name] = [_checked(name, item) for item in _texts(value)]
        else:
            result[name] = _checked(name, _canonical(value))
    return {name: result[name] for name in sorted(result)}


def _canonical(value: object) -> object:
    return f"{value:.10g}" if isinstance(value, float) else value


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def argv(spec: Spec) -> list[str]:
    """Arguments for homa-sim of a normal() spec."""
    result = []
    for name, value in spec.items():
        if isinstance(value, dict):
            for key, item in value.items():
                result += [f"--{name}", f"{key}={item}"]
        elif isinstance(value, list):
            for item in value:
                result += [f"--{name}", item]
        elif FLAGS[name].kind == "flag":
            result += [f"--{name}"] if value == "true" else []
        else:
            result += [f"--{name}", str(value)]
    return result


def identity(spec: Spec, build: str) -> str:
    """16 hexadecimal digits that stand for a normal() `spec` run by `build`."""
    said = dict(spec)
    for name in _FILES:
        path = Path(str(said.get(name, "")))
        if said.get(name) and path.is_file():
            said[name] = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    text = json.dumps({"build": build, "run": said}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def words(spec: Spec) -> str:
    """`spec` for people: what it is told, on one line."""
    return " ".join(argv(spec)).replace("--", "")
