# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The runner of packet scripts, over a toy: it passes what is right and names what is wrong."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.pkt import cli, parser
from lab.pkt.cli import FAILED, PASSED, UNSUPPORTED, Result
from lab.pkt.errors import BadScript

from pkt_fake import Fake, Quirks

LISTEN = """
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
"""
OPEN = (
    LISTEN
    + """
+0 < S 0:0(0) win 1000 <mss 1460>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
"""
)
CONNECT = """
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <mss 1460>
+.1 < S. 0:0(0) ack 1 win 1000 <mss 1460>
+0 > . 1:1(0) ack 1
+0 connect(3, ..., ...) = 0
"""


def play(text: str, strict: bool = True, **quirks: object) -> Result:
    script = parser.parse(text, "s.pkt")
    return cli.run_script(script, lambda config: Fake(config, Quirks(**quirks)), strict)


def passes(text: str, **more: object) -> None:
    result = play(text, **more)
    assert (result.status, result.messages) == (PASSED, [])


def said(text: str, **more: object) -> str:
    """What a script that fails says."""
    result = play(text, **more)
    assert result.status == FAILED
    return "\n".join(result.messages)


def test_passive_open_and_data():
    passes(
        OPEN
        + """
+.1 < P. 1:1001(1000) ack 1 win 1000
+0 > . 1:1(0) ack 1001
+0 read(4, ..., 2000) = 1000
+0 write(4, ..., 500) = 500
+0 > P. 1:501(500) ack 1001
+.1 < . 1001:1001(0) ack 501 win 1000
"""
    )


@pytest.mark.parametrize("version", ["ipv4", "ipv6", "ipv4-mapped-ipv6"])
def test_both_protocols(version: str):
    passes(f"--ip_version={version}\n" + OPEN)
    passes(f"--ip_version={version}\n" + CONNECT)


def test_initial_numbers_of_a_script():
    """Packets with S count absolutely, the others from them."""
    passes(
        LISTEN
        + """
+0 < S 5000:5000(0) win 1000 <mss 1460>
+0 > S. 7000:7000(0) ack 5001 <mss 1460>
+.1 < . 1:1(0) ack 1 win 1000
+0 < P. 1:11(10) ack 1 win 1000
+0 > . 1:1(0) ack 11
"""
    )


def test_segments_are_joined_unless_told_otherwise():
    write = "+0 write(4, ..., 4000) = 4000\n"
    passes(OPEN + write + "+0 > P. 1:4001(4000) ack 1\n")
    passes(OPEN + write + "+0 > . 1:1461(1460) ack 1\n+0 > P. 1461:4001(2540) ack 1\n")
    text = said("--strict_segments\n" + OPEN + write + "+0 > P. 1:4001(4000) ack 1\n")
    assert "the length is 1460, not 4000" in text


def test_mss_cuts_what_arrives():
    passes(
        "--mss=1000\n"
        + OPEN
        + """
+0 < P. 1:2501(2500) ack 1 win 1000
+0 > . 1:1(0) ack 1001
+0 > . 1:1(0) ack 2001
+0 > . 1:1(0) ack 2501
"""
    )


def test_time_stamps_are_mapped():
    begin = LISTEN + "+0 < S 0:0(0) win 1000 <mss 1460,TS val 5 ecr 0>\n"
    begin += "+0 > S. 0:0(0) ack 1 <mss 1460,TS val 100 ecr 5>\n"
    passes(begin + "+.1 < . 1:1(0) ack 1 win 1000 <nop,nop,TS val 6 ecr 100>\n")
    assert "no packet that was sent had this time stamp" in said(
        begin + "+.1 < . 1:1(0) ack 1 win 1000 <nop,nop,TS val 6 ecr 101>\n"
    )
    more = "+.1 < P. 1:2(1) ack 1 win 9 <nop,nop,TS val 7 ecr 100>\n"
    more += "+0 > . 1:1(0) ack 2 <nop,nop,TS val {} ecr {}>\n"
    passes("--tcp_ts_tick_usecs=1000\n" + begin + more.format(200, 7))
    assert "TS val is 200, not 300" in said(
        "--tcp_ts_tick_usecs=1000\n" + begin + more.format(300, 7)
    )
    assert "TS ecr is 7, not 8" in said(begin + more.format(200, 8))


def test_calls_that_wait():
    passes(LISTEN + "+0...0.3 accept(3, ..., ...) = 4\n" + HANDSHAKE)
    text = said(LISTEN + "+0...0.4 accept(3, ..., ...) = 4\n" + HANDSHAKE)
    assert "s.pkt:6: failed: accept() returns at another time" in text
    assert "the time is 0.300000, not 0.400000" in text
    text = said(LISTEN + "+0...0.2 accept(3, ..., ...) = 4\n+1 close(3) = 0\n")
    assert "accept() waits" in text and "it still waits at 0.201000" in text
    passes(
        """
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...0.1 connect(3, ..., ...) = 0
+0 > S 0:0(0) <mss 1460>
+.1 < S. 0:0(0) ack 1 win 1000 <mss 1460>
+0 > . 1:1(0) ack 1
"""
    )


HANDSHAKE = """
+.2 < S 0:0(0) win 1000 <mss 1460>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 1000
"""


def test_nothing_to_read():
    passes(
        OPEN
        + """
+0 recv(4, ..., 10, MSG_DONTWAIT) = -1 EAGAIN (Resource temporarily unavailable)
+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, 0) = 1
+0...0.05 poll([{fd=4, events=POLLIN, revents=0}], 1, 50) = 0
"""
    )
    assert "read() waits" in said(OPEN + "+0 read(4, ..., 10) = 10\n")


def test_refused():
    passes(
        """
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...0.1 connect(3, ..., ...) = -1 ECONNREFUSED (Connection refused)
* > S 0:0(0) <...>
+.1 < R. 0:0(0) ack 1
+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0
"""
    )


def test_port_that_nobody_listens_to():
    passes(" 0 < S 0:0(0) win 1000 <mss 1460>\n+0 > R. 0:0(0) ack 1\n")


def test_sent_again_in_virtual_time():
    """A thousand seconds of it take no time."""
    data = "> P. 1:101(100) ack 1\n"
    passes(OPEN + "+0 write(4, ..., 100) = 100\n" + f"+0 {data}" + f"+1 {data}" * 1000)
    assert "the time is 1.100000, not 1.600000" in said(
        OPEN + "+0 write(4, ..., 100) = 100\n" + f"+0 {data}+1.5 {data}"
    )


def test_ranges_of_time():
    data = OPEN + "+0 < P. 1:11(10) ack 1 win 1000\n"
    for when in ("+.03~+.05", "+.04", "0.13~0.15", "*"):
        passes(data + f"{when} > . 1:1(0) ack 11\n", delay=40_000_000)
    text = said(data + "+0~+.02 > . 1:1(0) ack 11\n", delay=40_000_000)
    assert "s.pkt:12: failed: no packet was sent" in text
    assert "got:      nothing until 0.140000 > . 1:1(0) ack 11 win 65535" in text


def test_two_connections():
    """Ports tell them apart."""
    passes(
        LISTEN
        + """
+0 < 5001 > 8080 S 0:0(0) win 1000 <mss 1460>
+0 > 8080 > 5001 S. 0:0(0) ack 1 <mss 1460>
+0 < 5002 > 8080 S 900:900(0) win 1000 <mss 1460>
+0 > 8080 > 5002 S. 0:0(0) ack 901 <mss 1460>
+0 < 5001 > 8080 . 1:1(0) ack 1 win 1000
+0 < 5002 > 8080 . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
+0 accept(3, ..., ...) = 5
+0 < 5001 > 8080 P. 1:11(10) ack 1 win 1000
+0 > 8080 > 5001 . 1:1(0) ack 11
+0 read(4, ..., 100) = 10
"""
    )


def test_code():
    passes(
        OPEN
        + "+0 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd\nassert tcpi_state == TCP_ESTABLISHED }%\n"
    )
    passes(OPEN + "+0 %{ c = 8 }%\n+0 %{ c += 2; assert tcpi_snd_cwnd == c, 'c=%d' % c }%\n")
    text = said(OPEN + "+0 %{ assert tcpi_snd_cwnd == 11, 'window' }%\n")
    assert "s.pkt:11: failed: an assertion does not hold" in text
    assert "here: tcpi_snd_cwnd = 10" in text and "it says: window" in text


@pytest.mark.parametrize(
    "code",
    [
        "import os",
        "().__class__",
        "while True: pass",
        "9**9**9",
        "open('x')",
        "[x for x in (1,)]",
        "'x' * 10",
        "str(1) * 10",
        "'%99d' % 1",
        "f'{1:99}'",
        "x = 'y'",
        "x = 2; y = x * x",
        "x = 2; x *= 2",
        "no_such_name",
        "lambda: 1",
        "tcpi_no_such == 1",
    ],
)
def test_code_that_is_not_carried_out(code: str):
    assert play(OPEN + f"+0 %{{ {code} }}%\n").status == UNSUPPORTED


DATA = OPEN + "+0 < P. 1:11(10) ack 1 win 1000\n"
ACKED = "+0 > . 1:1(0) ack 11\n"
FAULTS = [
    # what the toy does, the script from line 11 on, the line, what is said
    ({"ack_flags": "P."}, ACKED, 12, "the flags are P., not ."),
    ({"ack_seq": 5}, ACKED, 12, "seq is 6, not 1"),
    ({"silent": True}, ACKED, 12, "got:      nothing, until an hour after 0.100000"),
    (
        {"twice": True},
        ACKED + "+.1 < P. 11:21(10) ack 1 win 9\n+0 > . 1:1(0) ack 21\n",
        14,
        "ack is 11, not 21",
    ),
    ({"twice": True}, ACKED, 12, "a packet was sent that no statement expects"),
    ({"delay": 50_000_000}, ACKED, 12, "got:      nothing until 0.150000 > . 1:1(0) ack 11"),
    ({}, "+.05 > . 1:1(0) ack 11\n", 12, "the time is 0.100000, not 0.150000 (tolerance 1000 us)"),
    ({}, "+0 > . 1:1(0) ack 12\n", 12, "ack is 11, not 12"),
    ({}, "+0 > . 1:1(0) ack 11 win 7\n", 12, "win is 65535, not 7"),
    ({}, "+0 > [ect0] . 1:1(0) ack 11\n", 12, "the IP header says noecn, not ect0"),
    ({}, "+0 > [ttl 63] . 1:1(0) ack 11\n", 12, "the time to live is 64, not 63"),
    (
        {},
        "+0 > . 1:1(0) ack 11 <nop,nop,sack 1:3>\n",
        12,
        "the options are none, not <nop,nop,sack 1:3>",
    ),
    ({"short_read": 3}, ACKED + "+0 read(4, ..., 99) = 10\n", 13, "got:      7"),
    ({}, ACKED + "+0 read(4, ..., 99) = -1 EAGAIN (x)\n", 13, "expected: -1 EAGAIN (Resource temp"),
    (
        {"wrong_byte": True},
        ACKED + "+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 11\n",
        14,
        "byte 0 of the payload is 1, not 0",
    ),
]


@pytest.mark.parametrize(("quirks", "rest", "line", "text"), FAULTS)
def test_faults_are_found(quirks: dict, rest: str, line: int, text: str):
    message = said(DATA + rest, **quirks)
    assert message.startswith(f"s.pkt:{line}: failed: ")
    assert text in message


def test_a_whole_message():
    """What a reader gets: the statement, expected and got in the script's notation, the past."""
    assert said(DATA + "+0 > P. 1:1(0) ack 12\n") == (
        "s.pkt:12: failed: the packet that was sent is another\n"
        "    +0 > P. 1:1(0) ack 12\n"
        "    the flags are ., not P.\n"
        "    ack is 11, not 12\n"
        "    expected: 0.100000 > P. 1:1(0) ack 12\n"
        "    got:      0.100000 > . 1:1(0) ack 11 win 65535\n"
        "    the last packets:\n"
        "        0.000000 < S 0:0(0) win 1000 <mss 1460>\n"
        "        0.000000 > S. 0:0(0) ack 1 win 65535 <mss 1460>\n"
        "        0.100000 < . 1:1(0) ack 1 win 1000\n"
        "        0.100000 < P. 1:11(10) ack 1 win 1000\n"
        "        0.100000 > . 1:1(0) ack 11 win 65535"
    )


def test_extra_packets_at_the_end_are_ignored_unless_strict():
    passes(DATA, strict=False)
    assert "a packet was sent that no statement expects" in said(DATA)


BEYOND = [
    ("+0 < udp (100)", "UDP"),
    ("+0 > ipv4 1.1.1.1 > 2.2.2.2: . 1:1(0)", "packets in packets"),
    ("+0 < [flowlabel 0x1] . 1:1(0) ack 1 win 9", "flow labels"),
    ("+0 epoll_create(1) = 5", "the system call epoll_create()"),
    ("+0 sendto(4, ..., 9, MSG_FASTOPEN, ..., ...) = 9", "MSG_FASTOPEN"),
    (
        "+0 setsockopt(4, SOL_TCP, TCP_ULP, [1], 4) = 0",
        "does not have the socket option SOL_TCP TCP_ULP",
    ),
    ("+0 setsockopt(4, SOL_TCP, TCP_WHATEVER, [1], 4) = 0", "the symbol TCP_WHATEVER"),
    ("+0 `sysctl -q net.ipv4.tcp_sack=0`", "the engine has no parameter 'sack'"),
    ("+0 `sysctl -q net.ipv4.tcp_nothing=0`", "the sysctl tcp_nothing"),
    ("+0 `rm -rf /tmp/x`", "the command 'rm -rf /tmp/x'"),
    ("+0 ioctl(4, SIOCINQ, [0]) = 0", "no figure 'inq'"),
]


@pytest.mark.parametrize(("statement", "why"), BEYOND)
def test_what_is_not_supported_is_named(statement: str, why: str):
    result = play(OPEN + statement + "\n")
    assert result.status == UNSUPPORTED
    assert result.messages[0].startswith("s.pkt:11: not supported: ")
    assert why in result.messages[0] and statement in result.messages[0]


def test_every_statement_that_is_not_supported_is_named():
    text = OPEN + "+0 < udp (100)\n+0 epoll_create(1) = 5\n+0 < . 1:1(0) ack 1 win 1000\n"
    result = play(text)
    assert [m.split(":")[1] for m in result.messages] == ["11", "12"]
    # One that is wrong makes the script fail.
    assert play(text + "+0 < . 1:2(3) ack 1 win 1\n").status == FAILED


BAD = [
    ("+0 < . 1:2(3) ack 1 win 1", "1 and 3 bytes are not 2"),
    ("+0 < Q 1:1(0)", "'Q' are no flags"),
    ("+0 < . 1:1(0) ack 1 win 70000", "a window 70000 is not between 0 and 65535"),
    ("+0 < . 1:1(0) ack 1 <...>", "says nothing of a packet that arrives"),
    ("* < . 1:1(0) ack 1", "only a packet that is sent"),
    ("+.2~+.1 > . 1:1(0) ack 1", "ends before it begins"),
    ("+0 read(4, ..., 5) =", "a value is expected"),
    ("+0 read(4, ...) = 5", "has 3 to 3 arguments"),
    ("+0 read(4, ..., 5) = -1 EWHATEVER (x)", "EWHATEVER is no error"),
    ("+0 hello", "a packet (< or >), a system call"),
    ("+0 < icmp unreachable no_such [1:1(0)]", "has no code 'no_such'"),
    ("+0 %{ assert ( }%", "the code is no Python"),
    ("0 close(4) = 0", "the statement is due at 0.000000"),
]


@pytest.mark.parametrize(("statement", "why"), BAD)
def test_what_is_wrong_is_named(statement: str, why: str):
    message = said(OPEN + statement + "\n")
    assert message.startswith("s.pkt:11: ")
    assert why in message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "// nothing\n",
        "+1 close(3) = 0\n",
        "0 `never closed",
        "--mtu=x\n" + OPEN,
        "--what=1\n" + OPEN,
    ],
)
def test_scripts_that_are_none(text: str, tmp_path: Path):
    path = tmp_path / "x.pkt"
    path.write_text(text)
    result = cli.run(path, Fake)
    assert result.status == FAILED
    assert "syntax error" in result.messages[0]


def test_settings():
    made: list[Fake] = []

    def make(config) -> Fake:
        made.append(Fake(config))
        return made[-1]

    text = "`../common/defaults.sh\n../common/set_sysctls.py /proc/sys/net/ipv4/tcp_ecn=2`\n" + OPEN
    text += "+0 `tc qdisc add dev tun0 root fq`\n"
    text += "+0 `sysctl -q net.ipv4.tcp_keepalive_time=3 net.ipv4.tcp_rmem='4096 9000 99999'`\n"
    text += "// set back\n`/tmp/sysctl_restore_${PPID}.sh`\n"
    assert cli.run_script(parser.parse(text), make).status == PASSED
    keepalive = made[0].parameters.pop("keepalive_ms")
    assert (keepalive, made[0].parameters) == (
        3000,
        {"ecn": 2, "rcvbuf": 9000, "rcvbuf_max": 99999},
    )
    assert made[0].closed


def test_defines_comments_and_lines():
    passes(
        '--define=N=10\n--define=OFF="x"\n/* two\nlines */ // more\n'
        + OPEN.replace(
            "+0 accept(3, ..., ...) = 4", "+0 accept(3,\n   ..., ...) // of two lines\n = 4"
        )
        + "+0 < P. 1:11(10) ack 1 win 1000\n+0 > . 1:1(0) ack 11\n+0 read(4, ..., N) = 10\n"
    )


def test_status_and_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    good, bad, beyond = (tmp_path / n for n in ("good.pkt", "bad.pkt", "beyond.pkt"))
    good.write_text(OPEN)
    bad.write_text(DATA + "+0 > . 1:1(0) ack 12\n")
    beyond.write_text(OPEN + "+0 epoll_create(1) = 5\n")
    assert cli.main([str(good)], Fake) == PASSED
    assert cli.main([str(good), str(beyond)], Fake) == UNSUPPORTED
    assert cli.main([str(good), str(beyond), str(bad)], Fake) == FAILED
    assert capsys.readouterr().out.endswith("1 passed, 1 failed, 1 not supported\n")


def test_as_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A script that is not supported is a failure there: nobody would look."""
    from lab.test import pkt

    (tmp_path / "good.pkt").write_text(OPEN)
    (tmp_path / "bad.pkt").write_text(DATA)
    (tmp_path / "beyond.pkt").write_text(OPEN + "+0 epoll_create(1) = 5\n")
    monkeypatch.setattr(pkt, "_maker", lambda _context: Fake)
    tally = pkt.scripts(SimpleNamespace(verbose=False), tmp_path)
    assert (tally.passed, [f.name for f in tally.failures]) == (1, ["pkt bad", "pkt beyond"])
    assert "that no statement expects" in tally.failures[0].output


def test_a_tree_without_the_engine_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from lab.errors import LabError
    from lab.test import builds, pkt

    monkeypatch.setattr(builds, "ensure", lambda *_: tmp_path)
    monkeypatch.setattr(builds, "introspect", lambda *_: [])
    monkeypatch.delenv("HOMA_PKT_BED", raising=False)
    with pytest.raises(LabError, match="no library pkt_bed"):
        pkt.run(SimpleNamespace(verbose=False), ["x.pkt"], strict=False)
    monkeypatch.setenv("HOMA_PKT_BED", str(tmp_path / "none.so"))
    (tmp_path / "x.pkt").write_text(OPEN)
    with pytest.raises(LabError, match="none.so"):
        pkt.run(SimpleNamespace(verbose=False), [str(tmp_path / "x.pkt")], strict=False)


def test_whatever_a_script_says_nothing_breaks():
    """Scripts of the tree with words and characters changed: a result each time, no exception."""
    folder = Path(__file__).resolve().parents[1] / "pkt" / "scripts"
    texts = [path.read_text() for path in sorted(folder.glob("*.pkt"))]
    words = sorted({word for text in texts for word in text.split()})
    draw = random.Random(1)
    ended = {PASSED: 0, FAILED: 0, UNSUPPORTED: 0}
    for _ in range(400):
        text = draw.choice(texts)
        for _ in range(draw.randrange(1, 5)):
            at = draw.randrange(len(text))
            more = draw.choice([draw.choice(words), draw.choice('()[]{}<>.,:+-*~=|`"%/0129 \n')])
            text = text[:at] + more + text[at + draw.choice([0, 0, 1, 9]) :]
        try:
            script = parser.parse(text)
        except BadScript:
            continue
        ended[cli.run_script(script, Fake, True).status] += 1
    assert all(ended.values())
    deep = OPEN + "+0 getsockopt(4, SOL_SOCKET, SO_ERROR, " + "[" * 50000
    assert "nested too deeply" in said(deep)
