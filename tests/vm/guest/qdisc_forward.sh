# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# A host that forwards: c sends by a to b, and more than the link between these takes, what looks
# like Homa. Runs on counted instructions, where time is virtual.
. /t/tap.sh
. /t/qdisc_lib.sh

pair a b
calm a b
shape a tbf rate 100mbit burst 20kb latency 50ms
ip netns add c
ip link add eth1 netns a type veth peer name eth0 netns c
ip -n a addr add 10.2.0.1/24 dev eth1
ip -n a link set eth1 up
ip -n c addr add 10.2.0.2/24 dev eth0
ip -n c link set eth0 up
ip -n c route add default via 10.2.0.1
in_ns a sysctl -q -w net.ipv4.ip_forward=1
neighbours a b 10.1.0
background b share serve 4000
listens b 4000

run "before" short=100 ms=300
holds "a's own messages come" "short_n > 20"
background c share flood 10.1.0.2
run "while others' Homa fills the link" homa=2 short=100
holds "long ones have their share" "homa > 0.3 * LINK"
holds "short ones do not wait" "short_n > 20 && short_p99 < 20000"
holds "the link is full" "host_q_homa_bytes > 0.9 * LINK"
quiesce
expect "no RPC is left" rpcs_gone a
for ns in a b c; do ip netns del $ns; done
finish
