# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Two namespaces on veth with all combinations of GRO and TSO, small and large MTU;
# three on a bridge.
. /t/tap.sh

pair a b 1
for v in 4 6; do
	background b rpc serve $v $((4000 + v)) 2
done
check "v4 answers" ip netns exec a rpc wait 4 10.1.0.2 4004 60
check "v6 answers" ip netns exec a rpc wait 6 fd1::2 4006 60
for gro in on off; do
	for tso in on off; do
		for ns in a b; do
			offload $ns gro $gro tso $tso gso $tso tx $tso
		done
		what="gro $gro, tso $tso"
		check "edges v4, $what" ip netns exec a rpc edges 4 10.1.0.2 4004 1500
		check "edges v6, $what" ip netns exec a rpc edges 6 fd1::2 4006 1500
		check "load v4, $what" ip netns exec a rpc load 4 10.1.0.2 4004 2 100 16 200000 2
		check "load v6, $what" ip netns exec a rpc load 6 fd1::2 4006 3 60 16 200000 1
	done
done
# Behind a gateway: the neighbour is not the receiver. And IP counts what leaves.
sent() {
	in_ns a awk '$1 == "Ip6OutOctets" { print $2 }' /proc/net/snmp6
}
ip -n b addr add 10.9.0.2/32 dev lo
ip -n b addr add fd9::2/128 dev lo nodad
ip -n a route add 10.9.0.2 via 10.1.0.2
ip -n a -6 route add fd9::2 via fd1::2
check "edges v4 by a gateway" ip netns exec a rpc edges 4 10.9.0.2 4004 1500
before=$(sent)
check "edges v6 by a gateway" ip netns exec a rpc edges 6 fd9::2 4006 1500
expect "IPv6 counts what leaves" test "$(sent)" -gt $((before + 100000))
# A kind of segmentation the device cannot do, or that is done before it.
for ns in a b; do offload $ns gro on tso on gso on tx on; done
for setting in "gso_force_software 1" "gso_force_software 0" "max_gso_size 4000" "max_gso_size 0" "early_path 0" "early_path 1" "poll_usecs 50" "poll_usecs 0"; do
	name=${setting% *}
	for ns in a b; do
		in_ns $ns sh -c "echo ${setting#* } >/proc/sys/net/homa/$name" || echo "# cannot set $setting"
	done
	case $setting in
	"early_path 1" | "poll_usecs 0" | "gso_force_software 0" | "max_gso_size 0") continue ;;
	esac
	check "load v4, $setting" ip netns exec a rpc load 4 10.1.0.2 4004 4 60 16 200000 2
done
# Segmentation is off: there, too, IP is passed once for many packets, and the device
# gets each by itself.
for ns in a b; do offload $ns gro off tso off gso off tx off; done
count() {
	in_ns $1 awk -v name="$2" '$1 == name { print $2 }' /proc/net/homa_metrics
}
whole=$(count a host_tx_gso) unsegmented=$(count b host_rx_gso)
check "load v4, segmentation off" ip netns exec a rpc load 4 10.1.0.2 4004 6 60 16 200000 2
check "load v6, segmentation off" ip netns exec a rpc load 6 fd1::2 4006 7 60 16 200000 2
expect "several segments at once were sent" test "$(count a host_tx_gso)" -gt "$whole"
expect "and none came unsegmented" test "$(count b host_rx_gso)" = "$unsegmented"
# Inside UDP: the device, or the receiver's stack, cuts datagrams.
for ns in a b; do
	offload $ns gro on tso on gso on tx on
	in_ns $ns sh -c "echo 1 >/proc/sys/net/homa/hijack_udp" || echo "# cannot set hijack_udp"
done
for udp in on off; do
	for ns in a b; do offload $ns tx-udp-segmentation $udp; done
	whole=$(count a host_tx_gso)
	check "edges v4 in UDP, its segmentation $udp" ip netns exec a rpc edges 4 10.1.0.2 4004 1500
	check "load v6 in UDP, its segmentation $udp" ip netns exec a rpc load 6 fd1::2 4006 8 60 16 200000 2
	expect "several datagrams at once, $udp" test "$(count a host_tx_gso)" -gt "$whole"
done
for ns in a b; do
	offload $ns tx-udp-segmentation on
	in_ns $ns sh -c "echo 0 >/proc/sys/net/homa/hijack_udp"
done
# Who listens shares the buffers: the first one of GRO's batches is a clone then.
for ns in a b; do offload $ns gro on tso off gso off tx off; done
background b rpc listen eth0
check "load v4, a listener and batches" ip netns exec a rpc load 4 10.1.0.2 4004 5 100 16 200000 2
expect "there were batches" in_ns b grep -q '^host_rx_gro  *[1-9]' /proc/net/homa_metrics
expect "and nothing of them was lost" in_ns b grep -q '^host_rx_nomem  *0 ' /proc/net/homa_metrics
for ns in a b; do offload $ns gro on tso on gso on tx on; done
# Segments as a network card cuts them, and a GRO that gets them uncut.
for ns in a b; do
	offload $ns tx-gso-list off rx-gro-list on
	in_ns $ns sh -c "echo 60000 >/proc/sys/net/homa/max_gso_size"
done
unsegmented=$(count b host_rx_gso)
check "edges v4, segments for a card" ip netns exec a rpc edges 4 10.1.0.2 4004 1500
check "load v6, segments for a card" ip netns exec a rpc load 6 fd1::2 4006 9 60 16 200000 2
expect "and they came uncut" test "$(count b host_rx_gso)" -gt "$unsegmented"
for ns in a b; do
	offload $ns tx-gso-list on rx-gro-list off
	in_ns $ns sh -c "echo 0 >/proc/sys/net/homa/max_gso_size"
done
for mtu in 576 9000 1500; do
	for ns in a b; do ip -n $ns link set eth0 mtu $mtu; done
	check "edges v4, MTU $mtu" ip netns exec a rpc edges 4 10.1.0.2 4004 $mtu
done
expect "no RPC is left in a" rpcs_gone a
quiesce
expect "no RPC is left in b" rpcs_gone b

# a -- bridge -- b, c
ip netns add s
ip -n s link add br0 type bridge
ip -n s link set br0 up
i=1
for ns in x y; do
	ip netns add $ns
	ip link add eth0 netns $ns type veth peer name p$i netns s
	ip -n s link set p$i master br0 up
	ip -n $ns addr add 10.3.0.$i/24 dev eth0
	ip -n $ns addr add fd3::$i/64 dev eth0 nodad
	ip -n $ns link set eth0 up
	ip -n $ns link set lo up
	i=$((i + 1))
done
patient x y
background y rpc serve 4 4004 2
background y rpc serve 6 4006 2
check "v4 answers behind a bridge" ip netns exec x rpc wait 4 10.3.0.2 4004 60
check "v6 answers behind a bridge" ip netns exec x rpc wait 6 fd3::2 4006 60
check "edges v4 over a bridge" ip netns exec x rpc edges 4 10.3.0.2 4004 1500
check "load v6 over a bridge" ip netns exec x rpc load 6 fd3::2 4006 5 60 16 200000 2
quiesce
expect "no RPC is left behind the bridge" rpcs_gone y
for ns in a b s x y; do ip netns del $ns; done
finish
