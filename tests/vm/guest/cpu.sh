# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Programs of different priorities that share one processor. In a kernel with PREEMPT_RT each
# may be stopped anywhere in the module, and another one goes on in its place.
LIMIT=40
. /t/tap.sh

pair a b 1
paused() {
	echo $(($(metric a host_paused) + $(metric b host_paused)))
}
client() { # SEED MAX COMMAND...: with the priority that the command gives, and not for ever
	seed=$1 max=$2
	shift 2
	in_ns a "$@" taskset 1 timeout -s KILL "$LIMIT" rpc load 4 10.1.0.2 4000 "$seed" 300 8 "$max" 2 >"/run/client$seed" 2>&1
}

background b taskset 1 rpc serve 4 4000 2
check "the server answers" ip netns exec a rpc wait 4 10.1.0.2 4000 60
before=$(paused)

client 1 100000 nice -n 10 &
pids=$!
client 2 20000 env &
pids="$pids $!"
client 3 1000 chrt -f 10 &
pids="$pids $!"
client 4 20000 chrt -r 20 &
pids="$pids $!"
seed=0
for pid in $pids; do
	seed=$((seed + 1))
	expect "RPCs of program $seed" wait "$pid"
	sed 's/^/# /' /run/client$seed
done
# A task that finds the engine's context of this processor taken waits until its owner is done.
expect "nobody was sent away by another" test "$(paused)" = "$before"
echo "# $before were before, $(paused) are now"

# Another namespace's programs use the same processor's memory.
pair c d 2
background d taskset 1 rpc serve 4 4001 2
expect "the second server answers" ip netns exec c rpc wait 4 10.2.0.2 4001 60
client 5 100000 nice -n 10 &
first=$!
in_ns c chrt -f 10 taskset 1 timeout -s KILL "$LIMIT" rpc load 4 10.2.0.2 4001 6 300 8 100000 2 >/run/client6 2>&1 &
expect "RPCs of another namespace" wait $!
expect "and of the first one" wait $first

quiesce
expect "no RPC is left" rpcs_gone a
expect "nor in the other namespace" rpcs_gone c
finish
