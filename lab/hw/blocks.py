# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The blocks of hw/rtl: which files each is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.paths import ROOT

RTL = ROOT / "hw" / "rtl"
PACKAGES = ("homa_wire_pkg", "homa_nic_pkg", "homa_regs_pkg")
WIDTHS = (64, 256, 512)
# With this macro defined homa_memory says nonsense of a place that is read and written at once.
CLASH = "HOMA_CLASH"
# Messages that wait for grants.
GRANT_DEPTHS = (64, 256, 1024)


@dataclass(frozen=True)
class Block:
    """`top`: the module; `files`: modules below it, each in a file of its name; `tests`: the
    modules of hw/tb that test it. `parameter`: the one whose values are `sizes`; `smoke`: random
    frames, or what the block has instead, in a short test, by size. `seen`: signals of modules
    below it that a test looks at or sets, each with its module. `others`: parameters of a report that
    are not as the module has them."""

    top: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    parameter: str = "WIDTH"
    sizes: tuple[int, ...] = WIDTHS
    # A narrow port needs many more cycles for a frame. The width between has its turn in --hw.
    smoke: Mapping[int, int] = field(default_factory=lambda: {64: 2000, 512: 10_000})
    seen: tuple[tuple[str, str], ...] = ()
    others: Mapping[str, int] = field(default_factory=dict)

    def sources(self, root: Path = RTL) -> list[Path]:
        """In the order in which they must be read."""
        names = dict.fromkeys((*PACKAGES, *self.files, self.top))
        return [root / f"{name}.sv" for name in names]


_PARSER = ("homa_parse_l3", "homa_parse_ext", "homa_parse_l4", "homa_parse_body", "homa_parser")
_HASH = ("homa_toeplitz", "homa_rss_tuple", "homa_rss_hash")
_RSS = ("homa_memory", "homa_least", "homa_rss")
_LSO = (
    *("homa_skid", "homa_segment_head", "homa_segment", "homa_segment_build"),
    *("homa_memory", "homa_frame_fifo", "homa_turns"),
)
_LRO = (
    *("homa_memory", "homa_lro_pkg", "homa_lro_judge", "homa_lro_store", "homa_lro_table"),
    *("homa_lro_hash", "homa_lro_emit"),
)
_GRANT = ("homa_grant_pkg", "homa_grant_queue", "homa_grant_slots", "homa_grant_window")
_NIC = (
    *("homa_lso", "homa_lro", "homa_receive", "homa_clock"),
    *("homa_pace", "homa_axil", "homa_registers", "homa_stats"),
)

BLOCKS = {
    block.top.removeprefix("homa_"): block
    for block in (
        Block("homa_parser", _PARSER[:-1], ("test_parser", "test_vectors")),
        Block("homa_classify", (*_PARSER, *_HASH, *_RSS), ("test_classify",)),
        Block("homa_lso", (*_PARSER, *_LSO), ("test_lso",)),
        Block("homa_lro", (*_PARSER, *_LRO), ("test_lro",), seen=(("homa_lro_store", "number"),)),
        Block("homa_pace", (), ("test_pace",)),
        Block(
            "homa_grant_queue",
            (),
            ("test_grant_queue",),
            parameter="DEPTH",
            sizes=GRANT_DEPTHS,
            smoke={64: 10_000},
        ),
        Block(
            "homa_grant",
            _GRANT,
            ("test_grant",),
            parameter="DEPTH",
            sizes=GRANT_DEPTHS,
            smoke={64: 10_000},
        ),
        Block(
            "homa_nic",
            (*_PARSER, *_RSS, *_LSO, *_LRO, *_NIC),
            ("test_nic", "test_ends"),
            seen=(
                *(("homa_stats", "memory"), ("homa_clock", "now")),
                *(("homa_receive", "lro_events"), ("homa_lro_store", "number")),
            ),
        ),
    )
}
