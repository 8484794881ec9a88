# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# A host that is a bridge with br_netfilter, which shows frames to netfilter's hooks of IP before
# the bridge has decided about them: what comes to a socket has come through the bridge, with its
# rules, VLANs and counters.
. /t/tap.sh

ip netns add a
ip netns add b
ip link add eth0 netns a type veth peer name p1 netns b
ip -n b link add br0 type bridge
ip -n b link set p1 master br0 up
i=1
for at in "a eth0" "b br0"; do
	set -- $at
	ip -n "$1" link set lo up
	ip -n "$1" addr add "10.1.0.$i/24" dev "$2"
	ip -n "$1" addr add "fd1::$i/64" dev "$2" nodad
	ip -n "$1" link set "$2" up
	i=$((i + 1))
done
patient a b

# NS DEVICE: packets that it has received
received() {
	in_ns "$1" cat "/sys/class/net/$2/statistics/rx_packets"
}

expect "br_netfilter shows the frames" [ "$(in_ns b cat /proc/sys/net/bridge/bridge-nf-call-iptables)" = 1 ]
for v in 4 6; do
	ip=10.1.0.2
	[ $v = 6 ] && ip=fd1::2
	background b rpc serve $v $((4000 + v)) 2
	check "v$v answers behind it" ip netns exec a rpc wait $v $ip $((4000 + v)) 60
	before=$(received b br0)
	check "load v$v through it" ip netns exec a rpc load $v $ip $((4000 + v)) 1 60 10 20000 1
	expect "requests came through the bridge v$v" [ $(($(received b br0) - before)) -ge 20 ]
done
quiesce
for ns in a b; do ip netns del $ns; done
finish
