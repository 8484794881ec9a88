# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packets of the script runner as bytes, and its bridge to the engine's C functions."""

from __future__ import annotations

import ctypes
import ipaddress
import random
import subprocess
from pathlib import Path

import pytest

from lab.pkt.errors import BadScript, Failed
from lab.pkt.script import IcmpPacket, Option
from lab.pkt.stack import FUNCTIONS, Bed
from lab.pkt.wire import Segment, checksum, decode, encode, encode_icmp

V4 = (ipaddress.ip_address("192.0.2.1"), ipaddress.ip_address("192.168.0.1"))
V6 = (ipaddress.ip_address("2001:db8::1"), ipaddress.ip_address("fd3d:fa7b:d17d::1"))
OPTIONS = (
    Option("mss", (1460,)),
    Option("sackOK"),
    Option("TS", (1, 0xFFFFFFFF)),
    Option("nop"),
    Option("wscale", (7,)),
)
MORE = (
    Option("nop"),
    Option("nop"),
    Option("sack", (1, 2, 0xFFFFFFF0, 5)),
    Option("FO", (), b"\1\2\3\4"),
    Option("FOEXP", (), b"\5\6\7\x08\x09\x0a"),
)


@pytest.mark.parametrize("addresses", [V4, V6])
@pytest.mark.parametrize("options", [(), OPTIONS, MORE])
@pytest.mark.parametrize("flags", ["", "S", "SEW", "FP.", "R.", ".U", ".A"])
def test_encode_then_decode(addresses: tuple, options: tuple, flags: str):
    segment = Segment(
        *addresses, 1, 65535, 0xFFFFFFFF, 7, frozenset(flags), 3, 9, options, b"abc", 2, 64
    )
    assert decode(encode(segment)) == segment


def test_known_bytes():
    """A SYN whose checksums were added up by hand."""
    segment = Segment(*V4, 0x1234, 80, 1, 0, frozenset("S"), 0x1000, 0, (Option("mss", (1460,)),))
    assert encode(segment).hex() == (
        "4500002c00004000ff06f920c0000201c0a8000112340050000000010000000060021000f2f60000020405b4"
    )


@pytest.mark.parametrize("addresses", [V4, V6])
def test_a_changed_bit_is_noticed_or_harmless(addresses: tuple):
    """No bytes make the decoder stumble; what it takes for right has right checksums."""
    good = encode(Segment(*addresses, 1, 2, 3, 4, frozenset("."), 5, 0, OPTIONS, b"x" * 20))
    draw = random.Random(1)
    refused = 0
    for _ in range(3000):
        bad = bytearray(good[: draw.randrange(len(good) + 1)] if draw.random() < 0.2 else good)
        for _ in range(draw.randrange(1, 4)):
            if bad:
                bad[draw.randrange(len(bad))] = draw.randrange(256)
        try:
            decode(bytes(bad))
        except Failed:
            refused += 1
    assert refused > 1500


def test_too_many_options():
    with pytest.raises(BadScript, match="there is room for 40"):
        encode(Segment(*V4, 1, 2, 3, 4, frozenset("."), 5, 0, OPTIONS + OPTIONS + OPTIONS))


def test_icmp_quotes_the_packet():
    about = Segment(*reversed(V4), 8080, 40001, 1001, 0, frozenset("."), 0)
    packet = IcmpPacket(True, "unreachable", "frag_needed", 1400, 1, 1000)
    sent = encode_icmp(packet, V4[0], about, 1000)
    assert checksum(sent[20:]) == 0
    assert sent[20:28].hex()[:4] == "0304" and sent[26:28] == (1400).to_bytes(2, "big")
    assert sent[28:][2:4] == (1040).to_bytes(2, "big")
    assert sent[48:56] == bytes.fromhex("1f909c41000003e9")
    about = Segment(*reversed(V6), 8080, 40001, 1001, 0, frozenset("."), 0)
    sent = encode_icmp(IcmpPacket(True, "packet_too_big", None, 1300, 1, 9), V6[0], about, 9)
    assert (sent[6], sent[40], sent[41]) == (58, 2, 0)
    assert sent[44:48] == (1300).to_bytes(4, "big")
    with pytest.raises(BadScript, match="no type"):
        encode_icmp(
            IcmpPacket(True, "packet_too_big", None, 1300, 1, 9),
            V4[0],
            about.with_(source=V4[1]),
            9,
        )


STUB = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
struct pkt_bed {
	uint64_t now; uint32_t mtu; unsigned char ip[16]; unsigned char packet[64]; uint32_t length;
};
struct pkt_bed *pkt_bed_new(uint32_t mtu, int family, const void *ip, uint64_t seed)
{ struct pkt_bed *b; if (family != 4 && family != 6) return 0;
  b = calloc(1, sizeof *b); b->mtu = mtu; memcpy(b->ip, ip, 16); return b; }
void pkt_bed_free(struct pkt_bed *b) { free(b); }
int pkt_bed_set(struct pkt_bed *b, const char *p, int64_t v)
{ return strcmp(p, "x") ? -2 : v == -5; }
void pkt_bed_in(struct pkt_bed *b, const void *p, uint32_t n)
{ memcpy(b->packet, p, n); b->length = n; }
int pkt_bed_out(struct pkt_bed *b, void *p, uint32_t room)
{ int n = b->length; if (room < 65535) return -90; memcpy(p, b->packet, n); b->length = 0; return n; }
void pkt_bed_run(struct pkt_bed *b, uint64_t now) { b->now = now; }
uint64_t pkt_bed_next(struct pkt_bed *b) { return b->now ? b->now + 1 : UINT64_MAX; }
int pkt_bed_socket(struct pkt_bed *b) { return 3; }
int pkt_bed_bind(struct pkt_bed *b, int fd, const void *ip, uint16_t port)
{ return memcmp(ip, b->ip, 16) ? -99 : port; }
int pkt_bed_listen(struct pkt_bed *b, int fd, int backlog) { return fd + backlog; }
int pkt_bed_connect(struct pkt_bed *b, int fd, const void *ip, uint16_t port)
{ return -115; }
int pkt_bed_accept(struct pkt_bed *b, int fd) { return -11; }
int pkt_bed_write(struct pkt_bed *b, int fd, uint32_t n, int flags) { return n + flags; }
int pkt_bed_read(struct pkt_bed *b, int fd, uint32_t n, int flags) { return n - flags; }
int pkt_bed_close(struct pkt_bed *b, int fd) { return -fd; }
int pkt_bed_shutdown(struct pkt_bed *b, int fd, int how) { return how; }
int pkt_bed_setsockopt(struct pkt_bed *b, int fd, int l, int n, const void *v, uint32_t len)
{ return l * 100 + n * 10 + ((const char *)v)[len - 1]; }
int pkt_bed_getsockopt(struct pkt_bed *b, int fd, int l, int n, void *v, uint32_t room)
{ if (n == 0) return -92; memset(v, n, room); return 0; }
int pkt_bed_poll(struct pkt_bed *b, int fd) { return 5; }
int pkt_bed_info(struct pkt_bed *b, int fd, const char *f, uint64_t *v)
{ if (strcmp(f, "rto")) return -2; *v = 1ull << 40; return 0; }
"""


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory):
    where = tmp_path_factory.mktemp("bed")
    (where / "bed.c").write_text(STUB)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-w", "-o", where / "bed.so", where / "bed.c"], check=True
    )
    made = Bed(where / "bed.so", 1500, V4[1])
    yield made
    made.close_bed()


def test_bridge_to_c(bed: Bed):
    """Every function gets and gives what its prototype says."""
    mapped = b"\0" * 10 + b"\xff\xff" + V4[1].packed
    assert bed.next() == (1 << 64) - 1
    bed.run(1 << 40)
    assert bed.next() == (1 << 40) + 1
    bed.packet_in(b"a\0b")
    assert (bed.packet_out(), bed.packet_out()) == (b"a\0b", b"")
    assert (bed.set("x", -5), bed.set("y", 0)) == (1, -2)
    assert (bed.socket(), bed.listen(3, 4), bed.accept(3), bed.close(3)) == (3, 7, -11, -3)
    assert (bed.bind(3, mapped, 65535), bed.bind(3, bytes(16), 1)) == (65535, -99)
    assert bed.connect(3, mapped, 80) == -115
    assert (bed.write(3, 10, 1), bed.read(3, 10, 1), bed.shutdown(3, 2), bed.poll(3)) == (
        11,
        9,
        2,
        5,
    )
    assert bed.setsockopt(3, 6, 1, b"\0\7") == 617
    assert (bed.getsockopt(3, 6, 0, 4), bed.getsockopt(3, 6, 2, 3)) == (-92, b"\2\2\2")
    assert (bed.info(3, "rto"), bed.info(3, "no")) == (1 << 40, None)


def test_every_function_is_bridged():
    assert all(f"pkt_bed_{name}(" in STUB for name in FUNCTIONS)
    assert FUNCTIONS["next"][0] is ctypes.c_uint64


def test_scripts_of_the_tree_can_be_carried_out():
    """Whatever the engine does, they are in the language and all of it is supported."""
    from lab.pkt import config, parser, runner

    scripts = sorted((Path(__file__).resolve().parents[1] / "pkt" / "scripts").glob("*.pkt"))
    assert len(scripts) > 30
    for path in scripts:
        script = parser.read(path)
        config.of(script)
        assert not [f"{path.name}:{e.line}: {e}" for e in runner.check(script)]
