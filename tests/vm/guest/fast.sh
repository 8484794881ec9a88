# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The module's fast ways are taken, says a counter, and not where they must not be. The table of
# them is in docs/testing.md.
. /t/tap.sh

pair a b 1
for ns in a b; do offload $ns gro on tso on gso on tx on; done
background b rpc serve 4 4000 2
check "the server answers" ip netns exec a rpc wait 4 10.1.0.2 4000 60
rpcs() {
	ip netns exec a rpc load 4 10.1.0.2 4000 "$1" 100 "$2" "$3" 1
}
# grown NS COUNTER: since it was last called without $( ), which is a shell of its own
grown() {
	now=$(metric "$1" "$2")
	eval "last=\${last_$1_$2:-0}; last_$1_$2=$now"
	echo $((now - last))
}

grown a host_tx_gso >/run/out
grown b host_rx_gso >/run/out
grown b host_rx_gro >/run/out
expect "messages of one packet" rpcs 2 1 1000
expect "are not segmented" test "$(grown a host_tx_gso)" = 0
expect "and come alone" test "$(grown b host_rx_gso)" = 0
expect "long messages" rpcs 3 4 200000
segmented=$(grown a host_tx_gso) unsegmented=$(grown b host_rx_gso)
echo "# $segmented buffers of several segments left, $unsegmented came"
expect "leave several segments at a time" test "$segmented" -gt 20
expect "and reach a neighbour unsegmented" test "$unsegmented" -gt 20

# One packet at a time from the sender: the receiver joins them, if its device may.
offload a gro off tso off gso off tx off
expect "packets of long messages" rpcs 6 4 200000
joined=$(grown b host_rx_gro)
echo "# $joined joined buffers came"
expect "are joined by GRO" test "$joined" -gt 100

# Who wants to see more of a buffer than its first packet has gets bytes of the second one there. It
# is asked of what has 4096 bytes, by the length in IP's header.
pull() {
	tc -n b qdisc add dev eth0 clsact || return
	for bit in 8000 4000 2000 1000; do
		tc -n b filter add dev eth0 ingress protocol ip u32 match u16 0x$bit 0x$bit at 2 \
			action pedit munge offset 2000 u8 preserve || return
	done
}
if pull >/run/out 2>&1; then
	grown b host_rx_gro >/run/out
	expect "with a filter that pulls bytes of the second one they arrive" rpcs 8 4 200000
	expect "joined" test "$(grown b host_rx_gro)" -gt 100
else
	echo "# no filter pulls: $(cat /run/out)"
fi
tc -n b qdisc del dev eth0 clsact >/run/out 2>&1
offload b gro off tso off gso off tx off
grown b host_rx_gro >/run/out
expect "without it" rpcs 7 4 200000
expect "none are" test "$(grown b host_rx_gro)" = 0

for ns in a b; do in_ns $ns sh -c 'echo 0 >/proc/sys/net/homa/poll_usecs'; done
grown a host_handoffs >/run/out
grown b host_handoffs >/run/out
grown a host_polls >/run/out
expect "one message at a time" rpcs 4 1 1000
requests=$(grown b host_handoffs) responses=$(grown a host_handoffs)
echo "# of 100 requests $requests were handed over, of their responses $responses"
expect "requests are handed to the thread that waits" test "$requests" -gt 50
# A client that is kept from running between its request and its wait takes its response itself,
# which on a busy machine most do: so ask until some did wait.
handed() {
	round=0
	while [ "$(grown a host_handoffs)" -le 5 ]; do
		round=$((round + 1))
		[ $round -le 20 ] && rpcs 4 1 1000 || return
	done
}
expect "so are responses" handed
expect "and who must not poll does not" test "$(grown a host_polls)" = 0

# A server that does not wait: nothing can be handed over, and everything is there when it comes.
pid=${PIDS##* }
kill -STOP "$pid"
in_ns b sh -c 'echo 0 >/proc/sys/net/homa/poll_usecs'
ip netns exec a rpc load 4 10.1.0.2 4000 5 20 20 1000 1 >/run/stopped 2>&1 &
client=$!
sleep 1
grown b host_handoffs >/run/out
sleep 1
expect "nothing is handed to a thread that cannot run" test "$(grown b host_handoffs)" = 0
kill -CONT "$pid"
expect "its requests are served afterwards" wait "$client"

quiesce
expect "no RPC is left" rpcs_gone a
finish
