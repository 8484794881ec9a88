# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# 10,000 peers and 100,000 open RPCs: what is there must neither make the rest dearer nor keep it
# from being done, and all of it goes in the end. Where instructions are the clock, COUNT says how
# much an RPC beside them may cost, in percent of one alone.
RPCS=${RPCS:-100000}
HOSTS=${HOSTS:-10000}
LIMIT=${LIMIT:-600}
. /t/tap.sh

within() { # NAME VALUE LEAST MOST
	expect "$1" [ "$2" -ge "$3" -a "$2" -le "$4" ]
	[ "$2" -ge "$3" -a "$2" -le "$4" ] || echo "# $2 is not within $3 and $4"
}
# Hundredths of a second in which the one processor was not idle.
busy() {
	tr -d . </proc/uptime | { read -r up idle && echo $((up - idle)); }
}
cost() { # NAME SEED: 2,000 RPCs of 100 bytes, in COST; 5,000 instructions each are 1
	from=$(busy)
	expect "$1" in_ns a rpc load 4 10.1.0.2 4000 "$2" 2000 1 100 1
	COST=$(($(busy) - from))
}
until_said() { # NAME PATTERN FILE
	i=0
	until grep -qs "$2" "$3"; do
		i=$((i + 1))
		[ $i -gt 6000 ] && break
		sleep 0.1
	done
	expect "$1" grep "$2" "$3"
	sed 's/^/# /' "$3"
}

pair a b 1
for ns in a b; do
	in_ns $ns sh -c "echo $((HOSTS + 2000)) >/proc/sys/net/homa/max_peers"
	# 100,000 questions whether the server is alive, every few milliseconds, would be what is
	# measured: here they come so rarely that there are none.
	in_ns $ns sh -c "echo 10000 >/proc/sys/net/homa/resend_ticks"
	# All of them are one user's, and none is ever taken.
	in_ns $ns sh -c "echo $((RPCS * 2)) >/proc/sys/net/homa/max_owner_backlog"
done
# Every address of a network is b's.
ip -n b route add local 10.64.0.0/14 dev lo
ip -n a route add 10.64.0.0/14 via 10.1.0.2
background b rpc serve 4 4000 2
check "the server answers" ip netns exec a rpc wait 4 10.1.0.2 4000 60
cost "RPCs alone" 1
cost "and again, with warm caches" 2
alone=$COST

ip netns exec b users deaf 4 4101 8 64 >/run/deaf 2>&1 &
PIDS="$PIDS $!"
until_said "servers that never receive" ready /run/deaf
ip netns exec a users crowd 10.64.0.1 4101 8 "$HOSTS" "$RPCS" >/run/crowd 2>&1 &
crowd=$!
until_said "all requests are begun" "begun=$RPCS\$" /run/crowd
within "as many RPCs are open at the client" "$(metric a rpcs)" "$RPCS" $((RPCS + 10))
within "and at the servers" "$(metric b rpcs)" "$RPCS" $((RPCS + 10))
# A client's ids to one address follow each other, so they are remembered together.
within "none was refused for want of memory of it" "$(metric b drop_once_full)" 0 0
within "the client has as many peers" "$(metric a peers)" "$HOSTS" $((HOSTS + 2))
cost "RPCs beside them" 3
echo "# alone $alone, beside $RPCS RPCs and $HOSTS peers $COST units of 5000 instructions each"
[ "${COUNT:-}" ] && expect "cost little more than alone" [ "$COST" -le $((alone * COUNT / 100)) ]
grep HOMA /proc/net/protocols | sed 's/^/# /'
expect "long messages beside them" in_ns a rpc load 4 10.1.0.2 4000 4 20 4 200000 2

# The end of four sockets with a quarter of them each.
kill -9 $crowd
wait $crowd 2>/dev/null
expect "no RPC is left at the client" rpcs_gone a
expect "RPCs afterwards" in_ns a rpc load 4 10.1.0.2 4000 5 100 8 1000 2
quiesce
expect "no RPC is left at the servers" rpcs_gone b
for ns in a b; do
	ip netns del $ns
done
gone() {
	i=0
	until rmmod homa; do
		i=$((i + 1))
		[ $i -gt 300 ] && return 1
		sleep 0.1
	done
}
expect "namespaces with so many peers end, and the module goes" gone
finish
