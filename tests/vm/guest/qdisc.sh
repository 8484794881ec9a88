# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The homa qdisc between two namespaces whose link a shaper makes slow (100 Mbit/s),
# so that there is a queue: who gets how much of it, and who waits for whom. Runs on
# counted instructions, where time is virtual: what is asked of it leaves room for
# other builds, not for other machines.
. /t/tap.sh
. /t/qdisc_lib.sh

pair a b
calm a b
for ns in a b; do
	offload $ns tso off gso off gro off
	shape $ns tbf rate 100mbit burst 20kb latency 50ms
done
# No ARP, no probe by Homa: the message below is to be the first.
neighbours a b 10.1.0
background b share serve 4000
listens b 4000

run "the first message of a device, and long for its link" short=39000 gap=500000 ms=100 warm=0
holds "comes whole without being asked for again" "short_n == 1 && rx_resend == 0"

# Only one kind
run "TCP alone" tcp=4
holds "has the link" "tcp > 0.9 * LINK && host_q_homa_bytes == 0"
run "Homa alone" homa=4
holds "has the link" "host_q_homa_bytes > 0.9 * LINK && host_q_other_bytes < 1000"
holds "because room makes it send" "host_q_pulls > 100"

# Both
for share in 50 20 80; do
	in_ns a sysctl -q -w net.homa.homa_share=$share
	run "both, homa_share=$share" tcp=4 homa=4
	holds "no time is lost" "host_q_homa_bytes + host_q_other_bytes > 0.95 * LINK"
	holds "Homa has $share percent" "abs(100 * host_q_homa_bytes / (host_q_homa_bytes + host_q_other_bytes) - $share) < 3"
	holds "and what it has are messages" "homa > 0.8 * host_q_homa_bytes"
done
in_ns a sysctl -q -w net.homa.homa_share=50

# A packet takes 0.12 ms there, a long message 16 ms, the queue of a TCP stream more.
run "short ones beside both" tcp=4 homa=4 short=100 tcpshort=100
holds "short Homa waits for neither" "short_n > 50 && short_p50 < 1000 && short_p99 < 4000"
holds "short TCP waits for neither" "tcpshort_n > 50 && tcpshort_p50 < 1000 && tcpshort_p99 < 4000"
holds "and passed" "host_q_short > 50"
run "messages of 10 KB beside long ones" homa=4 short=10000
holds "are first" "short_n > 50 && short_p99 < 4000"
run "messages of 10 KB beside TCP" tcp=4 short=10000
holds "are first" "short_n > 50 && short_p99 < 6000"

# Acknowledgments of the other direction pass.
run "both directions" tcp=2 tcpdown=2 homa=2 homadown=2
holds "TCP to us is not held up by what we send" "tcpdown > 0.4 * LINK"
holds "neither is Homa" "homadown > 0.35 * LINK"
holds "nor what we send" "tcp > 0.4 * LINK && homa > 0.35 * LINK"

quiesce
expect "no RPC is left" rpcs_gone a
expect "nothing was dropped" [ "$(dropped a)$(dropped b)" = 00 ]
expect "TCP sent nothing twice" [ "$(tcp_retransmits a)$(tcp_retransmits b)" = 00 ]
# Who knows no rate asks for what only waits, now and then.
expect "and Homa hardly anything" [ $(($(metric a tx_retransmit_bytes) * 50)) -lt "$(metric a tx_bytes)" ]
# But for what neighbours said between the two looks, or before Homa's first packet.
apart=$(($(metric a host_q_homa_bytes) + $(metric a host_q_other_bytes) - $(sent a)))
expect "the counters are those of the qdisc" [ ${apart#-} -lt 2000 ]
expect "nothing is left in it" [ "$(backlog a)" = 0 ]

# Too much of TCP
expect "a limit can be set" in_ns a share set eth0 10000 20000 30 0
expect "a wrong one is refused" sh -c '! ip netns exec a share set eth0 10000 20000 0 0'
expect "a wrong share, too" sh -c '! ip netns exec a share set eth0 10000 20000 30 101'
background b share serve 4001
listens b 4001
PORT=4001
run "eight streams in a queue of 30 packets, and Homa" tcp=8 homa=2
holds "packets are dropped and counted" "host_q_drops > 10"
holds "Homa does not mind" "host_q_homa_bytes > 0.45 * LINK"
# Streams still end, so it may grow between two looks.
before=$(dropped a) said=$(metric a host_q_drops)
expect "as in the qdisc" in_order "$before" "$said" "$(dropped a)"
expect "a share of its own" in_ns a share set eth0 10000 20000 10240 75
run "75 percent by option" tcp=4 homa=4
holds "is 75 percent" "abs(100 * host_q_homa_bytes / (host_q_homa_bytes + host_q_other_bytes) - 75) < 3"
quiesce
for ns in a b; do ip netns del $ns; done
finish
