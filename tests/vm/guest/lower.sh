# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Devices above others share the link of the device by which their packets leave. Whose link
# a device has is asked by netlink; that sharing it keeps them within its rate together, by
# what two clients get in half a second of virtual time. Each alone would get the whole rate.
. /t/tap.sh
LINK=1250000	# bytes in half a second at 20 Mbit/s

# uses NS DEVICE OTHER: the two have sent, and DEVICE has the link of OTHER. When something
# has changed, a worker of the kernel looks for the link.
uses() {
	want=$(in_ns "$1" cat "/sys/class/net/$3/ifindex")
	own=$(in_ns "$1" cat "/sys/class/net/$2/ifindex")
	i=0
	while :; do
		said=$(in_ns "$1" look dump devs | tr ' ' '\n' |
			awk -F= -v own="$own" '$1 == "ifindex" { here = $2 == own } here && $1 == "link" { print $2 }')
		[ "$said" ] && [ "$said" = "$want" ] && return
		i=$((i + 1))
		[ $i -gt 200 ] && break
		sleep 0.05
	done
	echo "the link of $2 is that of device $said, not $want"
	return 1
}

# two IP IP: what clients of both get at the same time; FIRST and SECOND
two() {
	in_ns a share run "$1" 4000 homa=4 size=10000 warm=200 ms=500 >/run/first 2>&1 &
	first=$!
	in_ns a share run "$2" 4000 homa=4 size=10000 warm=200 ms=500 >/run/second 2>&1
	wait $first
	FIRST=$(tr ' ' '\n' </run/first | sed -n 's/^homa=//p')
	SECOND=$(tr ' ' '\n' </run/second | sed -n 's/^homa=//p')
	echo "# $1: ${FIRST:-$(cat /run/first)}, $2: ${SECOND:-$(cat /run/second)}"
}
# They are measured for half a second each, not quite the same one.
within() {
	[ $((4 * (FIRST + SECOND))) -lt $((5 * LINK)) ] && [ $((4 * (FIRST + SECOND))) -gt $((3 * LINK)) ]
}

# vlan NS HOST ID: NS has 10.ID.0.HOST on v ID
vlan() {
	ip -n "$1" link add link eth0 name "v$3" type vlan id "$3"
	ip -n "$1" addr add "10.$3.0.$2/24" dev "v$3"
	ip -n "$1" link set "v$3" up
}

# A network card, for later; its name is wanted below.
ip link set eth0 name card
pair a b
i=1
for ns in a b; do
	for id in 10 20; do vlan $ns $i $id; done
	i=$((i + 1))
done
ip -n a link add link eth0 name m0 type macvlan mode bridge
ip -n a addr add 10.30.0.1/24 dev m0
ip -n a link set m0 up
ip -n b addr add 10.30.0.2/24 dev eth0
in_ns a sysctl -q -w net.homa.link_mbps=20
background b share serve 4000
background b rpc serve 4 4001 1
for to in 10.1.0.2 10.10.0.2 10.20.0.2 10.30.0.2; do
	check "$to answers" ip netns exec a rpc wait 4 $to 4001 60
done
for dev in v10 v20 m0 eth0; do
	expect "$dev has the link of what is below" uses a $dev eth0
done
two 10.10.0.2 10.20.0.2
expect "two VLANs stay within the rate of their device" within
two 10.20.0.2 10.30.0.2
expect "so do a VLAN and a macvlan" within
two 10.10.0.2 10.1.0.2
expect "and a VLAN and the device itself" within

# A socket that is bound to a device gets what comes on this one, whosever link it has.
for id in 10 20; do
	background b env "DEVICE=v$id" rpc serve 4 $((4100 + id)) 1
	check "who is bound to v$id is reached there" ip netns exec a rpc wait 4 10.$id.0.2 $((4100 + id)) 60
	expect "and nowhere else" sh -c "! ip netns exec a rpc wait 4 10.$((30 - id)).0.2 $((4100 + id)) 1"
done

# With a queueing discipline of ours it has a link of its own, which that one paces.
tc -n a qdisc replace dev v10 root handle 1: tbf rate 50mbit burst 20kb latency 50ms
tc -n a qdisc replace dev v10 parent 1: handle 2: homa
check "10.10.0.2 answers by a qdisc" ip netns exec a rpc wait 4 10.10.0.2 4001 60
expect "a device with the qdisc homa has its own" uses a v10 v10
tc -n a qdisc del dev v10 root
expect "and without it no longer" uses a v10 eth0

# What is in a routing domain is looked up there.
ip -n a link add vrf1 type vrf table 100
ip -n a link set vrf1 up
ip -n a link set v20 master vrf1
expect "a device in a routing domain has its own" uses a v20 v20
ip -n a link set v20 nomaster
expect "and when it has left that, no longer" uses a v20 eth0

# What is below may leave for another namespace; another device may have its link then.
ip netns add e
ip -n a link set eth0 netns e
expect "who has lost what is below has a link of its own" uses a v10 v10
expect "and so has who shared it" uses a m0 m0
ip -n a link add x0 type dummy
ip -n a addr add 10.50.0.1/24 dev x0
ip -n a link set x0 up
expect "nobody answers there" sh -c "! ip netns exec a rpc wait 4 10.50.0.2 4001 1"
expect "a new device has a link of its own, too" uses a x0 x0
ip -n e link set eth0 netns a
ip -n a addr add 10.1.0.1/24 dev eth0
for dev in eth0 v10 v20 m0; do ip -n a link set $dev up; done
check "and all goes on when it is back" ip netns exec a rpc wait 4 10.10.0.2 4001 60
expect "by its link" uses a v10 eth0
expect "which is shared again" uses a v20 eth0
ip -n a link del x0
ip netns del e

# What is below may go, and come.
ip -n a link set v20 down
ip -n a link del m0
ip -n a link set eth0 down
expect "what is down is nobody's link" uses a v10 v10
ip -n a link set eth0 up
ip -n a link set v10 up
expect "until it is up" uses a v10 eth0
check "and all goes on" ip netns exec a rpc wait 4 10.10.0.2 4001 60
ip netns add d
ip -n a link set v10 netns d
ip -n d addr add 10.10.0.1/24 dev v10
ip -n d link set v10 up
ip -n d link set lo up
check "a VLAN in another namespace sends" ip netns exec d rpc wait 4 10.10.0.2 4001 60
expect "by a link of its own" uses d v10 v10
quiesce
for ns in a b d; do ip netns del $ns; done

# A bond, over two wires to a bridge
for ns in a b; do ip netns add $ns; done
ip -n b link add br0 type bridge
ip -n b link set br0 up
for n in 1 2; do
	ip link add e$n netns a type veth peer name p$n netns b
	ip -n b link set p$n master br0 up
done
ip -n a link add bond0 type bond mode active-backup miimon 100
for n in 1 2; do ip -n a link set e$n master bond0; done
ip -n a addr add 10.4.0.1/24 dev bond0
ip -n b addr add 10.4.0.2/24 dev br0
for ns in a b; do ip -n $ns link set lo up; done
ip -n a link set bond0 up
ip -n a link add link bond0 name v10 type vlan id 10
ip -n b link add link br0 name v10 type vlan id 10
ip -n a addr add 10.10.0.1/24 dev v10
ip -n b addr add 10.10.0.2/24 dev v10
for ns in a b; do ip -n $ns link set v10 up; done
patient a b
background b rpc serve 4 4001 1
check "a bond's peer answers" ip netns exec a rpc wait 4 10.4.0.2 4001 60
check "and one behind a VLAN of it" ip netns exec a rpc wait 4 10.10.0.2 4001 60
active=$(in_ns a cat /sys/class/net/bond0/bonding/active_slave)
[ "$active" = e1 ] && other=e2 || other=e1
expect "a bond has the link of the device that it uses" uses a bond0 "$active"
expect "and so has the VLAN" uses a v10 "$active"
ip -n a link set "$active" down
expect "of the other one, if that is used then" uses a bond0 "$other"
expect "and so has the VLAN" uses a v10 "$other"
check "its peer answers" ip netns exec a rpc wait 4 10.4.0.2 4001 60
expect "a bridge of two ports without hardware has its own" uses b br0 br0
ip -n b link set p1 nomaster
expect "with one it has that one's" uses b br0 p2
ip link set card netns b
ip -n b link set card master br0 up
expect "of one card among its ports it has the card's" uses b br0 card
expect "and so has a VLAN of it" uses b v10 card
ip -n a link set "$active" up
ip -n a link del v10
ip -n a link set bond0 down
for n in 1 2; do ip -n a link set e$n nomaster; done
ip -n a link del bond0
ip -n a link add bond1 type bond mode balance-rr miimon 100
for n in 1 2; do ip -n a link set e$n down; ip -n a link set e$n master bond1; done
ip -n a addr add 10.4.0.1/24 dev bond1
ip -n a link set bond1 up
ip -n b link set p1 master br0
check "a bond's peer answers, with both wires" ip netns exec a rpc wait 4 10.4.0.2 4001 60
expect "a bond that spreads packets has its own" uses a bond1 bond1
quiesce
for ns in a b; do ip netns del $ns; done
finish
