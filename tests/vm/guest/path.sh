# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# A path whose narrowest link nobody tells of: the sender's route has a locked MTU, so that the
# kernel believes no ICMP message about it, and the router has to cut packets.
. /t/tap.sh

ip netns add a
ip netns add r
ip netns add b
ip link add eth0 netns a type veth peer name p1 netns r
ip link add eth0 netns b type veth peer name p2 netns r
for ns in a r b; do ip -n $ns link set lo up; done
ip -n a addr add 10.5.0.1/24 dev eth0
ip -n r addr add 10.5.0.2/24 dev p1
ip -n r addr add 10.6.0.2/24 dev p2
ip -n b addr add 10.6.0.1/24 dev eth0
ip -n r link set p2 mtu 700
ip -n b link set eth0 mtu 700
ip -n a link set eth0 up
ip -n b link set eth0 up
for dev in p1 p2; do ip -n r link set $dev up; done
in_ns r sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward"
ip -n b route add 10.5.0.0/24 via 10.6.0.2
patient a b

# Datagrams of IP that were cut by the router.
cut() {
	in_ns r awk '/^Ip:/ && $1 == "Ip:" && $2 ~ /^[0-9]/ { print $18 }' /proc/net/snmp
}

background b rpc serve 4 4004 2
ip -n a route add 10.6.0.0/24 via 10.5.0.2
check "edges, the router tells its MTU" ip netns exec a rpc edges 4 10.6.0.1 4004 1500
expect "and cuts nothing" [ "$(cut)" = 0 ]
for offloads in on off; do
	for ns in a b; do offload $ns gro $offloads tso $offloads gso $offloads; done
	ip -n a route replace 10.6.0.0/24 via 10.5.0.2 mtu lock 1400
	before=$(cut)
	check "edges, the route's MTU is locked, offloads $offloads" ip netns exec a rpc edges 4 10.6.0.1 4004 1400
	check "load, the same" ip netns exec a rpc load 4 10.6.0.1 4004 2 60 8 60000 2
	expect "packets were cut" test "$(cut)" -gt "$before"
done
quiesce
for ns in a r b; do ip netns del $ns; done
finish
