# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The homa qdisc on a device whose own queue is the one that fills: two virtio cards on
# a hub, each of which takes eight packets in a (virtual) millisecond and whose ring takes
# 30 ms' worth. The driver has byte queue limits since 6.11. See qdisc.sh for the rest.
. /t/tap.sh
. /t/qdisc_lib.sh
LINK=12000000
LIMITS=/sys/class/net/eth0/queues/tx-0/byte_queue_limits
BOTH="tcp=4 homa=4 short=100 tcpshort=100"

cards a b
neighbours a b 10.1.0
patient a b
background b share serve 4000
listens b 4000

# shares NAME [PART] [BYTES]: PART of BYTES is taken, else most of what the link takes
shares() {
	holds "$1: bytes are shared" "abs(100 * host_q_homa_bytes / (host_q_homa_bytes + host_q_other_bytes) - 50) < 10"
	holds "$1: no time is lost" "host_q_homa_bytes + host_q_other_bytes > ${2:-0.85} * ${3:-LINK}"
}

# A third is left to the card itself.
quick() {
	holds "short Homa waits less than without it" "short_n > 50 && short_p50 < 0.6 * $WITHOUT"
	holds "short TCP, too" "tcpshort_n > 50 && tcpshort_p50 < 0.6 * $WITHOUT"
}

# What the driver's limit settles on depends on the host's timing; here it is the measure for
# the runs below, so it is set: 100 KB are 8 ms of the card.
in_ns a sh -c "echo 100000 >$LIMITS/limit_min"
run "no qdisc of ours" $BOTH
in_ns a sh -c "echo 0 >$LIMITS/limit_min"
WITHOUT=$(echo "$SAID" | tr ' ' '\n' | sed -n 's/^short_p50=//p')
WITHOUT=${WITHOUT:-0}
bql=$(in_ns a cat $LIMITS/limit)
echo "# byte queue limit $bql, short Homa $WITHOUT us"
tc -n a qdisc replace dev eth0 root handle 1: homa

if [ "$bql" -gt 0 ]; then
	run "byte queue limits" $BOTH
	# The driver's own limit comes from the host's timing, and TCP's window from that: it
	# may leave some of its half to Homa. The exact share is asked for where limits are set.
	holds "the driver's limit: both get a good part" "abs(100 * host_q_homa_bytes / (host_q_homa_bytes + host_q_other_bytes) - 50) < 25"
	holds "the driver's limit: no time is lost" "host_q_homa_bytes + host_q_other_bytes > 0.85 * LINK"
	holds "room in the device makes Homa send" "host_q_pulls > 10"
	in_ns a sh -c "echo 15000 >$LIMITS/limit_max"
	# Ten packets: hardly more than the card takes at a time, so it is idle now and then.
	run "byte queue limits of 15 KB, TCP alone" tcp=4
	ALONE=$(echo "$SAID" | tr ' ' '\n' | sed -n 's/^host_q_other_bytes=//p')
	run "byte queue limits of 15 KB" $BOTH
	shares "a limit by hand" 0.8 "${ALONE:-LINK}"
	holds "room in the device makes Homa send, more often" "host_q_pulls > 100"
	quick
	in_ns a sh -c "echo 1000000 >$LIMITS/limit_max"
fi

in_ns a sysctl -q -w net.homa.link_mbps=90
run "a rate" $BOTH
shares "the estimate"
holds "room in the estimate makes Homa send" "host_q_pulls > 500"
quick
run "a rate, TCP alone" tcp=4
holds "has the link" "host_q_other_bytes > 0.85 * LINK"
run "a rate, Homa alone" homa=4
holds "has the link" "host_q_homa_bytes > 0.85 * LINK"
in_ns a sysctl -q -w net.homa.max_nic_queue_usecs=4000
run "4 ms of queue" $BOTH
shares "the longer limit"
holds "more goes at once" "host_q_pulls < 500"
in_ns a sysctl -q -w net.homa.max_nic_queue_usecs=40

in_ns a sysctl -q -w net.homa.link_mbps=45
run "half the rate" $BOTH
if [ "$bql" -gt 0 ]; then
	holds "does no harm where the driver counts" "host_q_homa_bytes + host_q_other_bytes > 0.85 * LINK"
else
	holds "is what all get" "abs(host_q_homa_bytes + host_q_other_bytes - 0.46 * LINK) < 0.03 * LINK"
fi
expect "nothing was dropped" [ "$(dropped a)" = 0 ]
quiesce
for ns in a b; do ip netns del $ns; done
finish
