# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Allocations that fail, by fault injection: the debug kernel only. Calls may fail
# then, RPCs may; afterwards all is as before.
. /t/tap.sh

# What a program does to itself without memory is no complaint of the kernel's.
echo 0 >/proc/sys/debug/exception-trace
D=/sys/kernel/debug
[ -d $D/failslab ] || {
	echo "ok 1 - out of memory # SKIP no fault injection in this kernel"
	echo "1..1"
	exit 0
}

pair a b 1
background b rpc serve 4 4004 2
check "a server answers" ip netns exec a rpc wait 4 10.1.0.2 4004 60

inject() { # NAME PROBABILITY: in tasks that ask for it, and in softirq through them
	echo "$2" >$D/$1/probability
	echo 7 >$D/$1/interval 2>/dev/null
	echo -1 >$D/$1/times
	echo 0 >$D/$1/verbose
	echo Y >$D/$1/task-filter 2>/dev/null
	[ $1 = fail_page_alloc ] && echo 0 >$D/$1/min-order
	echo N >$D/$1/ignore-gfp-wait 2>/dev/null
	echo N >$D/$1/ignore-gfp-highmem 2>/dev/null
}

calm() {
	echo 0 >$D/$1/probability
}

for kind in failslab fail_page_alloc; do
	inject $kind 10
	for seed in 1 2 3; do
		# In this subshell and what it starts; failing is allowed, hanging is not.
		N=$((N + 1))
		(
			echo 1 >/proc/self/make-it-fail
			exec timeout -s KILL 60 ip netns exec a rpc load 4 10.1.0.2 4004 $seed 60 8 60000 2
		) >/run/out 2>&1
		[ $? != 137 ] && echo "ok $N - $kind in the client, $seed" ||
			{ echo "not ok $N - $kind in the client, $seed: hung"; BAD=$((BAD + 1)); }
		N=$((N + 1))
		( echo 1 >/proc/self/make-it-fail
		  exec timeout -s KILL 240 fuzz_calls $seed 5 ) >/run/out 2>&1
		[ $? != 137 ] && echo "ok $N - $kind in random calls, $seed" ||
			{ echo "not ok $N - $kind in random calls, $seed: hung"; BAD=$((BAD + 1)); }
	done
	# In whoever is hit: softirq, the server, the timer.
	echo N >$D/$kind/task-filter
	echo 1 >$D/$kind/probability
	ip netns exec a timeout -s KILL 60 rpc load 4 10.1.0.2 4004 4 60 8 60000 2 >/run/out 2>&1
	calm $kind
	quiesce
	killall -9 rpc 2>/dev/null
	background b rpc serve 4 4004 2
	check "RPCs work after $kind" ip netns exec a rpc wait 4 10.1.0.2 4004 60
	check "all sizes after $kind" ip netns exec a rpc edges 4 10.1.0.2 4004 1500
done
expect "no RPC is left in a" rpcs_gone a
quiesce
expect "no RPC is left in b" rpcs_gone b
finish
