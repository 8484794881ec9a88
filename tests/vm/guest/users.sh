# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Two users on the same two hosts: one does what it can to keep the other from working.
. /t/tap.sh

HOG=1000
GOOD=1001

setting() { # NAME VALUE: on both
	for ns in a b; do
		in_ns $ns sh -c "echo $2 >/proc/sys/net/homa/$1" || echo "# cannot set $1"
	done
}

# as NS UID COMMAND...: in the background, until its first line is there
# as NS "inside UID" COMMAND...: in a user namespace of UID's
# as NS idle COMMAND...: when nobody else wants the processor
as() {
	ns=$1 who="look as $2"
	[ "$2" = idle ] && who="users idle"
	[ "${2#inside }" = "$2" ] || who="users $2"
	shift 2
	: >/run/said
	ip netns exec $ns $who "$@" >/run/said 2>&1 &
	LAST=$!
	PIDS="$PIDS $LAST"
	i=0
	until grep -q . /run/said; do
		i=$((i + 1))
		[ $i -gt $((600 * SLOW)) ] && break
		sleep 0.1
	done
	sed 's/^/# /' /run/said
	SAID=$(sed -n 's/.*=//p' /run/said)
}

good() { # NAME: another user's RPCs between the same hosts
	LIMIT=$((40 * SLOW)) check "$1" ip netns exec a look as $GOOD rpc load 4 10.1.0.2 4000 1 100 8 20000 2
}

within() { # NAME VALUE LEAST MOST
	expect "$1" [ "$2" -ge "$3" -a "$2" -le "$4" ]
	[ "$2" -ge "$3" -a "$2" -le "$4" ] || echo "# $2 is not within $3 and $4"
}

end() { # all but the server
	for pid in $PIDS; do
		[ $pid = $SERVER ] && continue
		kill -9 $pid 2>/dev/null
		wait $pid 2>/dev/null
	done
	PIDS=$SERVER
}

pair a b 1
as b $GOOD rpc serve 4 4000 2
SERVER=$LAST
good "RPCs of the good one alone"

# One server that never receives, however large its region: a backlog like any other's.
setting max_backlog 300
as b $HOG users deaf 4 4101 1 64
as a $HOG users hog 4 10.1.0.2 4101 1 3000
within "untaken requests at one server are limited" "$(metric b rpcs)" 290 310
expect "what is above was refused" [ "$(metric b drop_backlog)" -gt 0 ]
good "RPCs beside a full backlog"
# A dead client's requests go; those that the engine can ask about.
end
setting max_backlog 16384

# What the application takes makes room for more.
setting max_backlog 50
as b $HOG users take 4 4102 200
TAKER=$LAST
as a $HOG users hog 4 10.1.0.2 4102 1 200
within "only so many wait" "$(metric b rpcs)" 50 58
kill -USR1 $TAKER
i=0
until grep -q TAKEN /run/taken 2>/dev/null; do
	[ "$(metric b requests_received)" -ge 200 ] && [ "$(metric b rpcs)" = 200 ] && break
	i=$((i + 1))
	[ $i -gt $((300 * SLOW)) ] && break
	sleep 0.1
done
within "all are taken in the end" "$(metric b rpcs)" 200 200
end
setting max_backlog 16384
expect "no RPC is left in b" rpcs_gone b

# Many servers, many clients: half of the room, and not more.
setting max_rpcs 3000
as b $HOG users deaf 4 4110 8 64
as a $HOG users hog 4 10.1.0.2 4110 8 8000
within "a user begins half of the RPCs that there may be" "$SAID" 1500 1510
within "and no more are open" "$(metric a rpcs)" 1500 1510
within "his servers have at most half" "$(metric b rpcs)" 1000 1510
good "RPCs beside a user with as many as he gets"
# A second greedy one gets a third, as the first if he began anew.
as a 1002 users hog 4 10.1.0.2 4110 8 8000
within "a second one has half of the rest" "$SAID" 740 770
good "RPCs beside two of them"
end
expect "no RPC of theirs is left in a" rpcs_gone a
expect "no RPC of theirs is left in b" rpcs_gone b

# 70,000 requests of a byte, aborted: an abort tells the server.
as b $HOG users deaf 4 4120 8 64
as a $HOG users hog 4 10.1.0.2 4120 8 70000 abort
within "all were begun" "$SAID" 70000 70000
good "RPCs beside 70,000 aborted requests"
end
setting max_rpcs 1000000
expect "nothing is left of the aborted in b" rpcs_gone b

# Ids in a user namespace are still their maker's.
setting max_rpcs 3000
as b $HOG users deaf 4 4130 8 64
as a $HOG users hog 4 10.1.0.2 4130 8 8000
as a "inside $HOG" users hog 4 10.1.0.2 4130 8 8000
within "who has other ids in his own namespace gets nothing more" "$SAID" 0 10
good "RPCs beside his user namespace"
killall -9 users
end
setting max_rpcs 1000000

# Idle requests of one are nobody else's incast.
as b $HOG users deaf 4 4140 1 8
as a $HOG users hog 4 10.1.0.2 4140 1 100
marked=$(metric a incast_marked)
expect "his own are marked" [ "$marked" -gt 0 ]
good "RPCs beside idle requests"
within "another's are not" "$(metric a incast_marked)" $marked $marked
end

# Who ends a socket with many RPCs may get hardly any time of a processor: that takes long, and
# nothing is left in the end.
as b $HOG users deaf 4 4150 1 64
as a idle users hog 4 10.1.0.2 4150 1 16000
spins=
for _ in 1 2 3 4; do
	sh -c 'while :; do :; done' &
	spins="$spins $!"
done
kill -9 $LAST
sleep 15
echo "# $(metric a rpcs) RPCs were left after a while"
kill -9 $spins
end
expect "no RPC is left of a socket that took long to end" rpcs_gone a
expect "nor a socket" [ "$(metric a socks)" = 0 ]

# Ports: half for one, and half of the rest for the next.
ulimit -n 40000
as a $HOG users socks 4 33000
within "a user has half of the client ports" "$SAID" 16383 16385
good "another opens sockets"
end
finish
