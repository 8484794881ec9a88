# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Ways that are remembered: what changes is followed by the next send, and what changes in another
# namespace is no change. a is the neighbour of b and of c, which both have the address that a sends
# to, so that it shows which way a message went.
. /t/tap.sh

# join NS N: a's device ethN leads to NS
join() {
	ip netns add "$1"
	ip link add "eth$2" netns a type veth peer name eth0 netns "$1"
	ip -n a addr add "10.$2.0.1/24" dev "eth$2"
	ip -n a addr add "fd$2::1/64" dev "eth$2" nodad
	ip -n "$1" addr add "10.$2.0.2/24" dev eth0
	ip -n "$1" addr add "fd$2::2/64" dev eth0 nodad
	ip -n "$1" addr add 10.7.0.1/32 dev lo
	ip -n "$1" addr add fd7::1/128 dev lo nodad
	ip -n "$1" link set lo up
	ip -n "$1" link set eth0 up
	ip -n a link set "eth$2" up
}

# Both ends of a's device eth1.
mtu() {
	ip -n b link set eth0 mtu "$1"
	ip -n a link set eth1 mtu "$1"
}

# One processor sends all, for each remembers ways of its own.
ONE=
taskset 1 true 2>/dev/null && ONE="taskset 1"

# reaches NS OTHER [4|6]: the next request goes to NS, and nothing of it to OTHER
reaches() {
	this=$(metric "$1" rx_data)
	other=$(metric "$2" rx_data)
	to=10.7.0.1
	[ "$3" = 6 ] && to=fd7::1
	in_ns a $ONE rpc wait "${3:-4}" $to "400${3:-4}" 60 || return 1
	echo "$1 had $this packets, $2 $other; now $(metric "$1" rx_data) and $(metric "$2" rx_data)"
	[ "$(metric "$1" rx_data)" -gt "$this" ] && [ "$(metric "$2" rx_data)" = "$other" ]
}

# The next request goes nowhere.
lost() {
	before="$(metric b rx_data) $(metric c rx_data)"
	in_ns a $ONE rpc wait 4 10.7.0.1 4004 1 && return 1
	[ "$before" = "$(metric b rx_data) $(metric c rx_data)" ]
}

segment() { # bytes of a message in the longest packet that any peer of a gets
	in_ns a look dump peers | sed -n 's/.* seg_size=\([0-9]*\).*/\1/p' | sort -n | tail -n 1
}

# The device is asked for its MTU a little later, and the next message follows that.
segment_becomes() { # -lt|-gt N
	i=0
	until [ "$(segment)" "$1" "$2" ]; do
		i=$((i + 1))
		[ $i -gt $((100 * SLOW)) ] && { echo "$(segment) bytes"; return 1; }
		sleep 0.1
		in_ns a rpc wait 4 10.7.0.1 4004 60
		in_ns a rpc wait 6 fd7::1 4006 60
	done
}

ip netns add a
ip -n a link set lo up
join b 1
join c 2
patient a b c
for ns in b c; do
	background $ns rpc serve 4 4004 2
	background $ns rpc serve 6 4006 2
done
ip -n a route add 10.7.0.1 via 10.1.0.2
ip -n a -6 route add fd7::1 via fd1::2
expect "a message goes to b" reaches b c
expect "and by IPv6" reaches b c 6

# Priorities, which are in the field that rules call TOS, choose no way.
ip -n a -6 route add fd7::1 via fd2::2 table 101
ip -n a route add 10.7.0.1 via 10.2.0.2 table 101
for tos in 0x20 0x40 0x60 0x80 0xa0 0xc0 0xe0; do
	ip -n a -6 rule add tos $tos lookup 101
	# Not every kernel and ip has rules for these bits of IPv4's field.
	ip -n a rule add tos $tos lookup 101 2>/dev/null ||
		ip -n a rule add dscp $((tos >> 2)) lookup 101 2>/dev/null
done
expect "rules look at the traffic class" sh -c "ip -n a -6 route get fd7::1 tos 0xe0 | grep 'via fd2::2'"
expect "to b, whatever they say" reaches b c
expect "and by IPv6, whatever they say" reaches b c 6
for tos in 0x20 0x40 0x60 0x80 0xa0 0xc0 0xe0; do
	ip -n a -6 rule del tos $tos lookup 101
	ip -n a rule del tos $tos lookup 101 2>/dev/null ||
		ip -n a rule del dscp $((tos >> 2)) lookup 101 2>/dev/null
done
ip -n a -6 rule add ipproto 146 lookup 101
expect "to c by IPv6 if a rule says so of protocol 146" reaches c b 6
ip -n a -6 rule del ipproto 146 lookup 101
ip -n a rule add ipproto 146 lookup 101
expect "and by IPv4" reaches c b
ip -n a rule del ipproto 146 lookup 101
expect "to b without it" reaches b c
expect "and by IPv6, too" reaches b c 6

# Routes of others.
ip netns add d
ip link add eth1 netns d type veth peer name eth2 netns d
ip -n d addr add 10.1.0.1/24 dev eth1
ip -n d addr add 10.2.0.1/24 dev eth2
ip -n d link set eth1 up
ip -n d link set eth2 up
for i in 1 2 3 4 5; do
	ip -n d route replace 10.7.0.1 via 10.2.0.2
	ip -n d rule add to 10.7.0.1 lookup 100
	expect "to b, whatever another namespace's routes are, $i" reaches b c
	ip -n d route replace unreachable 10.7.0.1
	ip -n d rule del to 10.7.0.1 lookup 100
	ip -n d link set eth1 mtu $((1000 + i))
	expect "to b, whatever its rules and devices are, $i" reaches b c
done
ip netns del d
expect "to b when it is gone" reaches b c

# Our own.
for i in 1 2 3; do
	ip -n a route replace 10.7.0.1 via 10.2.0.2
	ip -n a -6 route replace fd7::1 via fd2::2
	expect "to c when the route is replaced, $i" reaches c b
	expect "and by IPv6, $i" reaches c b 6
	ip -n a route add 10.7.0.1 via 10.1.0.2 table 100
	ip -n a rule add to 10.7.0.1 lookup 100
	expect "to b when a rule says so, $i" reaches b c
	ip -n a rule del to 10.7.0.1 lookup 100
	expect "to c without the rule, $i" reaches c b
	ip -n a route del 10.7.0.1 via 10.1.0.2 table 100
	ip -n a route replace unreachable 10.7.0.1
	ip -n a route del 10.7.0.1 via 10.2.0.2 2>/dev/null
	expect "nowhere when that is the route, $i" lost
	ip -n a route del unreachable 10.7.0.1
	expect "nowhere without a route, $i" lost
	ip -n a route replace 10.7.0.1 via 10.1.0.2
	ip -n a -6 route replace fd7::1 via fd1::2
	expect "to b when there is one again, $i" reaches b c
	expect "and by IPv6, $i, too" reaches b c 6
done

# MTUs.
check "all sizes" ip netns exec a rpc edges 4 10.7.0.1 4004 1500
mtu 9000
check "all sizes when the MTU has risen" ip netns exec a rpc edges 4 10.7.0.1 4004 9000
check "and by IPv6" ip netns exec a rpc edges 6 fd7::1 4006 9000
expect "packets become longer" segment_becomes -gt 8000
# Longer than what the packets to c have.
for size in 4000 2000 1600; do
	mtu 9000
	expect "to b before the MTU sinks to $size" reaches b c
	mtu $size
	check "all sizes when it is $size" ip netns exec a $ONE rpc edges 4 10.7.0.1 4004 $size
	check "and by IPv6, $size" ip netns exec a $ONE rpc edges 6 fd7::1 4006 $size
	expect "packets become shorter, $size" segment_becomes -lt $size
done
mtu 1500
expect "to b before the route's MTU sinks" reaches b c
ip -n a route replace 10.7.0.1 via 10.1.0.2 mtu 600
check "all sizes when it is 600" ip netns exec a $ONE rpc edges 4 10.7.0.1 4004 600
ip -n a route replace 10.7.0.1 via 10.1.0.2

# Devices.
ip -n a route add 10.7.0.1 via 10.2.0.2 metric 100
expect "to b, although there is another route" reaches b c
ip -n a link set eth1 down
expect "to c when b's device is down" reaches c b
ip -n a link set eth1 up
ip -n a route replace 10.7.0.1 via 10.1.0.2
expect "to b when it is up again" reaches b c
ip -n a link del eth1
expect "to c when b's device is gone" reaches c b
quiesce
for ns in a b c; do ip netns del $ns; done
finish
