# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A network in a file, for `--topology FILE.toml`; docs/simulator.md describes the format.

A file says the same as flags do; what it leaves out has the flag's default, and a flag given
beside it wins.
"""

from __future__ import annotations

from pathlib import Path

from lab.errors import UsageError
from lab.sim import tomlfile
from lab.sim.flags import FLAGS, check

# Section -> key in the file -> flag.
SECTIONS: dict[str, dict[str, str]] = {
    "": {
        "kind": "topology",
        "hosts": "hosts",
        "racks": "racks",
        "hosts-per-rack": "hosts-per-rack",
        "spines": "spines",
        "k": "k",
        "mtu": "mtu",
        "headers": "headers",
    },
    "links": {
        "host": "link",
        "fabric": "fabric",
        "host-delay": "link-delay",
        "fabric-delay": "fabric-delay",
        "loss": "loss",
        "shaped": "shaped",
        "htb-burst": "htb-burst",
    },
    "switches": {
        "delay": "switch-delay",
        "cut-through": "cut-through",
        "balance": "balance",
        "queue": "queue",
        "port-buffer": "port-buffer",
        "shared-buffer": "shared-buffer",
        "shared-alpha": "shared-alpha",
        "ecn": "ecn",
        "trim-packets": "trim-packets",
    },
    "software": {"send-delay": "send-delay", "receive-delay": "receive-delay"},
}
_FAILURE = ("link", "from", "until")
# Which numbers describe which kind; others are a mistake worth telling.
_SHAPE = {
    "one-switch": ("hosts",),
    "leaf-spine": ("racks", "hosts-per-rack", "spines"),
    "fat-tree": ("k", "hosts"),
}


def load(path: Path) -> dict[str, object]:
    """Flags (as in spec.Spec) for the network in `path`; UsageError has file, line and reason."""
    doc = tomlfile.load(path)
    known = [*SECTIONS[""], *(name for name in SECTIONS if name), "failures"]
    doc.only(doc.data, (), known)
    flags: dict[str, object] = {}
    for section, keys in SECTIONS.items():
        table = doc.table((), section, doc.data) if section else doc.data
        at: tomlfile.Key = (section,) if section else ()
        if section:
            doc.only(table, at, list(keys))
        for key, flag in keys.items():
            if key in table:
                flags[flag] = _value(doc, (*at, key), flag, table[key])
    kind = str(flags.setdefault("topology", "leaf-spine"))
    if kind not in _SHAPE:
        raise doc.wrong(("kind",), "kind has to be one-switch, leaf-spine or fat-tree")
    for key in {"hosts", "racks", "hosts-per-rack", "spines", "k"} - set(_SHAPE[kind]):
        if key in doc.data:
            raise doc.wrong(
                (key,), f"'{key}' means nothing to kind {kind}; it has {', '.join(_SHAPE[kind])}"
            )
    failures = _failures(doc)
    if failures:
        flags["fail"] = failures
    return flags


def _value(doc: tomlfile.Document, at: tomlfile.Key, flag: str, value: object) -> str:
    try:
        return check(FLAGS[flag], value)
    except UsageError as error:
        raise doc.wrong(at, f"{at[-1]}: {error}") from None


def _failures(doc: tomlfile.Document) -> list[str]:
    rows = doc.data.get("failures", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise doc.wrong(("failures",), "failures are [[failures]] tables with link, from, until")
    result = []
    for index, row in enumerate(rows):
        at: tomlfile.Key = ("failures", index)
        doc.only(row, at, list(_FAILURE))
        for key in _FAILURE:
            if key not in row:
                raise doc.wrong(at, f"this failure lacks '{key}'; it needs link, from and until")
        text = f"{row['link']}:{row['from']}:{row['until']}"
        try:
            result.append(check(FLAGS["fail"], text))
        except UsageError:
            raise doc.wrong(
                at, 'a failure looks like link = "0-144", from = "1ms", until = "2ms"'
            ) from None
    return result
