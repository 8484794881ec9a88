# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# SO_BUSY_POLL: a thread that waits has the network card polled that its socket's packets
# come from. Two virtio cards on a hub, then veth with NAPI and without. The time is a
# second, so that a message is there before it ends however slow the machine is; what is
# asked is who took packets from the card: the kernel counts those that a loop like this did.
. /t/tap.sh

FROM=a TO=10.1.0.2
cards a b
patient a b
background b rpc serve 4 4000 2
check "the server answers" ip netns exec a rpc wait 4 10.1.0.2 4000 60

# polled NS: packets that were taken from a card by who waited for them
polled() {
	in_ns "$1" awk '$1 == "TcpExt:" && !n { n = split($0, name); next }
		$1 == "TcpExt:" { for (i = 2; i <= n; i++) if (name[i] == "BusyPollRxPackets") print $i }' /proc/net/netstat
}
# busy HOW USECS: afterwards NAPI is the socket's, LOOPS and PACKETS say how often it polled
# in recvmsg() and what came of polling in any call
busy() {
	loops=$(metric $FROM host_busy_polls) packets=$(polled $FROM)
	NAPI=$(in_ns $FROM timeout -s KILL "$LIMIT" busy "$1" $TO 4000 "$2" 2>&1)
	status=$?
	LOOPS=$(($(metric $FROM host_busy_polls) - loops)) PACKETS=$(($(polled $FROM) - packets))
	echo "# $1, $2 us: context $NAPI, $LOOPS times in recvmsg(), $PACKETS packets"
	return $status
}
works() {
	busy "$@" && [ "$NAPI" -gt 0 ]
}

# On a busy machine the card's interrupt may come before each look of HOW, poll() or epoll_wait():
# ask until they have taken a packet from the card that was not recvmsg()'s.
takes() {
	round=0
	while [ "$PACKETS" -le "$LOOPS" ]; do
		round=$((round + 1))
		[ $round -le 20 ] && busy "$1" 1000000 || return
	done
}

expect "nobody asks for it" works wait -1
expect "and nobody polls a card" test "$LOOPS.$PACKETS" = 0.0
expect "or looks for messages before it sleeps" test "$(metric a host_polls).$(metric b host_polls)" = 0.0
for how in wait private once; do
	expect "$how: works" works $how 1000000
	expect "$how: recvmsg() polls the card" test "$LOOPS" -gt 0
	# One look takes no time, so on a busy machine the card's interrupt may have come before each.
	[ $how = once ] || expect "$how: packets come of it" test "$PACKETS" -gt 0
done
expect "messages were found by that" test "$(metric a host_polls)" -gt 0
for how in poll epoll; do
	expect "$how: works" works $how 1000000
	expect "$how: does not poll the card while net.core.busy_poll is 0" test "$PACKETS" -le "$LOOPS"
	sysctl -q -w net.core.busy_poll=1000000
	expect "$how: works with it" works $how 1000000
	expect "$how: polls the card" takes $how
	sysctl -q -w net.core.busy_poll=0
done

# What sockets get that are made from now on.
sysctl -q -w net.core.busy_read=1000000
expect "net.core.busy_read: works" works wait -1
expect "net.core.busy_read: recvmsg() polls the card" test "$LOOPS" -gt 0
expect "a program that sets 0 does not" works wait 0
expect "for it counts nothing" test "$LOOPS" = 0
background b rpc serve 4 4001 2
check "a server that polls answers" ip netns exec a rpc wait 4 10.1.0.2 4001 60
check "long messages, both sides poll" ip netns exec a rpc load 4 10.1.0.2 4001 2 60 8 200000 2
expect "the server did" test "$(metric b host_busy_polls)" -gt 0
sysctl -q -w net.core.busy_read=0

# On a busy machine the response may be there before its thread waits: ask until one was not.
polls() {
	round=0
	while [ "$LOOPS" = 0 ]; do
		round=$((round + 1))
		[ $round -le 20 ] && busy wait 1000000 || return
	done
}

# The cards stay where they are: back here they would have the name of a new veth.
pair c d 2
FROM=c TO=10.2.0.2
background d rpc serve 4 4000 2
for gro in off on; do
	for ns in c d; do offload $ns gro $gro tso off gso off tx off; done
	check "veth, GRO $gro: the server answers" ip netns exec c rpc wait 4 10.2.0.2 4000 60
	expect "veth, GRO $gro: works" busy wait 1000000
	if [ $gro = on ]; then
		expect "veth with GRO has NAPI" test "$NAPI" -gt 0
		expect "and is polled" polls
	else
		expect "veth without GRO has none" test "$NAPI" = 0
		expect "and nothing can be polled" test "$LOOPS" = 0
	fi
done
quiesce
for ns in a b c d; do ip netns del $ns; done
finish
