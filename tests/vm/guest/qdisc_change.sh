# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The homa qdisc comes, changes and goes under traffic of both kinds, below shapers, mq
# and nothing; then its device and its namespace go. Contents are checked, time is not.
. /t/tap.sh
. /t/qdisc_lib.sh
ROUNDS=${ROUNDS:-6}

# pair() with four queues each way
pair_mq() {
	ip netns add "$1"
	ip netns add "$2"
	ip link add eth0 netns "$1" numtxqueues 4 numrxqueues 4 type veth \
		peer name eth0 netns "$2" numtxqueues 4 numrxqueues 4
	i=1
	for ns in "$1" "$2"; do
		ip -n "$ns" link set lo up
		ip -n "$ns" addr add "10.1.0.$i/24" dev eth0
		ip -n "$ns" link set eth0 up
		i=$((i + 1))
	done
	patient "$1" "$2"
}

# mq NS HANDLE [KIND...]: a homa qdisc for each queue, or below a qdisc of another KIND
mq() {
	ns=$1
	handle=$2
	shift 2
	tc -n "$ns" qdisc replace dev eth0 root handle $handle: mq
	for q in 1 2 3 4; do
		above=$handle:$q
		if [ "$1" ]; then
			tc -n "$ns" qdisc replace dev eth0 parent $above handle $handle$q: "$@"
			above=$handle$q:
		fi
		tc -n "$ns" qdisc replace dev eth0 parent $above handle 2$handle$q: homa
	done
}

# Another arrangement in each round. A handle is never of two kinds.
ALL="below_tbf tbf_without_it none below_mq below_htb below_mq_and_tbf root below_prio"
WHATS=${WHATS:-$ALL}
arrange() {
	case $(($2 % 8)) in
	0) shape "$1" tbf rate 200mbit burst 30kb latency 50ms ;;
	1) tc -n "$1" qdisc replace dev eth0 root handle 3: tbf rate 100mbit burst 30kb latency 50ms ;;
	2) tc -n "$1" qdisc del dev eth0 root ;;
	3) mq "$1" 4 ;;
	4)
		tc -n "$1" qdisc replace dev eth0 root handle 5: htb default 1
		tc -n "$1" class replace dev eth0 parent 5: classid 5:1 htb rate 200mbit burst 30k
		tc -n "$1" qdisc replace dev eth0 parent 5:1 handle 6: homa
		;;
	5) mq "$1" 7 tbf rate 100mbit burst 30kb latency 50ms ;;
	6) tc -n "$1" qdisc replace dev eth0 root handle 8: homa ;;
	7)
		tc -n "$1" qdisc replace dev eth0 root handle 9: prio bands 3
		tc -n "$1" qdisc replace dev eth0 parent 9:2 handle a: homa
		;;
	esac
}

pair_mq a b
for ns in a b; do
	background $ns share serve 4000
	background $ns rpc serve 4 4004 2
done
check "a answers" ip netns exec b rpc wait 4 10.1.0.1 4004 60
check "b answers" ip netns exec a rpc wait 4 10.1.0.2 4004 60
listens b 4000

# Each arrangement by itself, with what is sent checked
n=-1
for what in $ALL; do
	n=$((n + 1))
	case " $WHATS " in *" $what "*) ;; *) continue ;; esac
	for ns in a b; do expect "$what in $ns" arrange $ns $n; done
	background a share run 10.1.0.2 $PORT tcp=2 tcpdown=1 homa=2 ms=600000
	check "load, $what" ip netns exec a rpc load 4 10.1.0.2 4004 $n 60 16 200000 2
	check "load back, $what" ip netns exec b rpc load 4 10.1.0.1 4004 $n 40 16 200000 2
	kill -9 $! && wait $! 2>/dev/null
	case $what in
	tbf_without_it | none) ;;
	*) expect "both kinds went through, $what" [ "$(sent a)" -gt 1000000 ] ;;
	esac
done
expect "room is asked for where something limits" [ "$(metric a host_q_pulls)" -gt 0 ]

# All of them in turn while both kinds flow
background a share run 10.1.0.2 $PORT tcp=2 tcpdown=2 homa=2 homadown=2 short=100 tcpshort=100 gap=1000 ms=600000
LOADER=$!
(
	i=0
	while :; do
		arrange a $i
		arrange b $((i * 3 + 1))
		in_ns a share set eth0 10000 20000 $((i % 50 + 1)) $((i * 7 % 101))
		in_ns a sysctl -q -w net.homa.homa_share=$((i % 99 + 1))
		in_ns a sysctl -q -w net.homa.link_mbps=$((i % 3 * 1000))
		in_ns a sysctl -q -w net.homa.max_incoming=$((400000 + i))
		i=$((i + 1))
		sleep 0.05
	done
) >/dev/null 2>&1 &
CHANGER=$!
n=0
while [ $n -lt "$ROUNDS" ]; do
	check "load $n while it changes" ip netns exec a rpc load 4 10.1.0.2 4004 $((20 + n)) 60 16 200000 2
	check "load back $n while it changes" ip netns exec b rpc load 4 10.1.0.1 4004 $((20 + n)) 60 16 200000 2
	n=$((n + 1))
done
expect "streams and messages never ended" kill -0 $LOADER
kill -9 $CHANGER && wait $CHANGER 2>/dev/null
for ns in a b; do tc -n $ns qdisc del dev eth0 root 2>/dev/null; done
in_ns a sysctl -q -w net.homa.link_mbps=0
check "load when it is gone" ip netns exec a rpc load 4 10.1.0.2 4004 50 60 16 200000 2
kill -9 $LOADER && wait $LOADER 2>/dev/null
expect "nothing of Homa was dropped" [ "$(metric b host_q_drops)" = 0 ]

# By time: no shaper, but a rate. Each packet that leaves is in the estimate.
for ns in a b; do
	in_ns $ns sysctl -q -w net.homa.link_mbps=200
	mq $ns 4
done
background a share run 10.1.0.2 $PORT tcp=2 tcpdown=1 homa=2 ms=600000
LOADER=$!
pulls=$(metric a host_q_pulls)
check "load, a rate and mq" ip netns exec a rpc load 4 10.1.0.2 4004 60 60 16 200000 2
expect "room in the estimate made it go on" [ "$(metric a host_q_pulls)" -gt "$pulls" ]
in_ns a sysctl -q -w net.homa.max_nic_queue_usecs=0
check "load, no limit" ip netns exec a rpc load 4 10.1.0.2 4004 61 60 16 200000 2
kill -9 $LOADER && wait $LOADER 2>/dev/null

# The end of a device and of a namespace with packets in the qdisc
tc -n a qdisc del dev eth0 root
shape a tbf rate 1mbit burst 5kb latency 1s
background a share run 10.1.0.2 $PORT tcp=2 homa=2 short=100 ms=600000
sleep 1
expect "it is full" [ "$(backlog a)" != 0 ]
ip -n a link del eth0
quiesce
for ns in a b; do ip netns del $ns; done
pair_mq c d
background d share serve 4000
listens d 4000
mq c 7 tbf rate 1mbit burst 5kb latency 1s
in_ns c rpc wait 4 10.1.0.2 4000 60 >/dev/null 2>&1
background c share run 10.1.0.2 $PORT tcp=2 homa=2 short=100 ms=600000
sleep 1
expect "it is full again" [ "$(backlog c)" != 0 ]
ip netns del c
quiesce
ip netns del d
finish
