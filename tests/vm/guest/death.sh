# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The module, its namespaces and its devices go while there is traffic.
. /t/tap.sh

MODULE=$(ls /homa/own/*.ko)

# traffic NS IP PORT: endless clients
traffic() {
	background "$1" sh -c "while :; do rpc load 4 $2 $3 5 200 16 100000 2; done"
	TRAFFIC=$!
}

not() {
	! "$@"
}

# Children of a killed shell go on by themselves otherwise.
halt() {
	quiesce
	killall -9 rpc 2>/dev/null
	i=0
	while pidof rpc >/dev/null; do
		i=$((i + 1))
		[ $i -gt 100 ] && break
		sleep 0.1
	done
}

segment() { # NS: bytes of a message in the longest packet that any peer of it gets
	in_ns "$1" look dump peers | sed -n 's/.* seg_size=\([0-9]*\).*/\1/p' | sort -n | tail -n 1
}

slab() { # active objects of our and the sockets' caches
	awk '/^(homa|HOMA|sock_inode_cache|skbuff)/ { n += $2 } END { print n + 0 }' /proc/slabinfo
}

# A closed socket is freed after a grace period of RCU, and holds the module till then.
gone() {
	tries=0
	until rmmod homa 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt $((100 * SLOW)) ] || return 1
		sleep 0.1
	done
}

round=0
while [ $round -lt 3 ]; do
	round=$((round + 1))
	pair a b 1
	background b rpc serve 4 4004 2
	check "a server answers, round $round" ip netns exec a rpc wait 4 10.1.0.2 4004 60
	traffic a 10.1.0.2 4004
	sleep 0.7
	expect "the module does not go under traffic, round $round" not rmmod homa
	expect "it still works, round $round" ip netns exec a rpc edges 4 10.1.0.2 4004 1500
	halt
	case $round in
	1) ip netns del a; ip netns del b ;;
	esac
	expect "it goes when no socket is left, round $round" gone
	expect "and is gone, round $round" not grep -q '^homa ' /proc/modules
	expect "no socket of that kind can be made, round $round" not rpc wait 4 127.0.0.1 1 0
	[ $round = 1 ] || { ip netns del a; ip netns del b; }
	expect "it comes again, round $round" insmod $MODULE
done

# Namespaces that go with sockets in them, under traffic.
before=$(slab)
round=0
while [ $round -lt 4 ]; do
	round=$((round + 1))
	pair a b $round
	background b rpc serve 4 4004 2
	ip netns exec a rpc wait 4 10.$round.0.2 4004 60 >/dev/null
	traffic a 10.$round.0.2 4004
	sleep 0.5
	if [ $((round % 2)) = 0 ]; then
		# The name goes first, the rest with the last process.
		ip netns del a
		ip netns del b
		sleep 0.3
		halt
	else
		# The device goes first.
		ip -n a link del eth0
		sleep 0.3
		halt
		ip netns del a
		ip netns del b
	fi
done
pair c d 9
background d rpc serve 4 4004 2
check "another namespace works after them" ip netns exec c rpc wait 4 10.9.0.2 4004 60
check "with all sizes" ip netns exec c rpc edges 4 10.9.0.2 4004 1500

# Devices that come and go, addresses, MTUs, routes under traffic.
traffic c 10.9.0.2 4004
for n in 1 2 3; do
	ip -n c link set eth0 down; sleep 0.1; ip -n c link set eth0 up
	ip -n c addr del 10.9.0.1/24 dev eth0; ip -n c addr add 10.9.0.1/24 dev eth0
	ip -n d link set eth0 mtu 1400; ip -n c link set eth0 mtu 1400
	ip -n d link set eth0 mtu 1500; ip -n c link set eth0 mtu 1500
	offload c gro off tso off; offload c gro on tso on
	tc -n c qdisc replace dev eth0 root pfifo limit 100; tc -n c qdisc del dev eth0 root
	in_ns c sh -c "echo $((n * 10000)) >/proc/sys/net/homa/unsched_bytes"
done
halt
# A device that was in another namespace is the one it was.
known=$(metric c devs)
expect "packets are as long as its MTU allows" [ "$(segment c)" -lt 1500 ]
ip netns add e
ip -n c link set eth0 netns e
expect "the device is gone" [ "$(metric c devs)" = $((known - 1)) ]
ip -n e link set eth0 netns c
ip -n c addr add 10.9.0.1/24 dev eth0; ip -n c link set eth0 mtu 9000; ip -n d link set eth0 mtu 9000
ip -n c link set eth0 up
background d rpc serve 4 4006 2
check "it works when the device is back" ip netns exec c rpc wait 4 10.9.0.2 4006 60
expect "it is known again" [ "$(metric c devs)" = "$known" ]
check "with all sizes of its MTU" ip netns exec c rpc edges 4 10.9.0.2 4006 9000
expect "packets are longer, as its new MTU allows" [ "$(segment c)" -gt 8000 ]
# Many devices, one after the other, leave one place for the next.
for n in 1 2 3 4 5; do
	ip -n c link add x$n type veth peer name y$n netns d
	ip -n c addr add 10.8.$n.1/24 dev x$n; ip -n c link set x$n up
	ip -n d addr add 10.8.$n.2/24 dev y$n; ip -n d link set y$n up
	check "device $n is used" ip netns exec c rpc wait 4 10.8.$n.2 4006 60
	ip -n c link del x$n
done
echo "# $(metric c links) links of $(metric c devs) devices in c, $(metric d links) in d"
expect "former devices leave one place" [ "$(metric c links)$(metric d links)" = $((known + 1))$((known + 1)) ]
halt
ip netns del e
# Settings of a namespace that ends are written by a process in another one, which has their file.
for n in 1 2 3 4 5; do
	ip netns add f
	in_ns f rpc wait 4 127.0.0.1 1 0 >/dev/null 2>&1
	in_ns f sh -c 'exec 3</proc/sys/net/homa/timeout_ticks; exec nsenter -n/proc/1/ns/net sh -c "
		while echo 20000 >/proc/self/fd/3; do :; done"' 2>/run/out &
	writer=$!
	sleep 0.3
	expect "settings are written while a namespace ends, round $n" kill -0 $writer
	ip netns del f
	wait $writer
done
# The MTU of lo may be 0.
ip netns add g
ip -n g link set lo up
background g rpc serve 4 4007 2
check "loopback works" ip netns exec g rpc wait 4 127.0.0.1 4007 60
traffic g 127.0.0.1 4007
ip -n g link set lo mtu 0
sleep 1
ip -n g link set lo mtu 65536
ip -n g link set lo down
ip -n g link set lo up
check "loopback works after its MTU was 0" ip netns exec g rpc wait 4 127.0.0.1 4007 60
halt
ip netns del g
background d rpc serve 4 4005 2
check "it works after devices, addresses and MTUs changed" ip netns exec c rpc wait 4 10.9.0.2 4005 60
check "with all sizes again" ip netns exec c rpc edges 4 10.9.0.2 4005 1500
expect "no RPC is left in c" rpcs_gone c
halt
expect "no RPC is left in d" rpcs_gone d
expect "no socket is left" [ "$(metric c socks)$(metric d socks)" = 00 ]
ip netns del c
ip netns del d
sleep 1
after=$(slab)
echo "# objects in the caches: $before before, $after after"
expect "the caches have not grown by much" [ $((after - before)) -lt 3000 ]
expect "the module goes" rmmod homa
finish
