# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Who looks at all RPCs pays for each of them once, however many sockets there are.
. /t/tap.sh

RPCS=5000
SOCKS=8000
DUMPS=5

# Hundredths of a second in which the one processor was not idle. What follows a point may begin with
# a 0, which a shell would read as octal: a 1 in front adds the same to both.
busy() {
	IFS=" ." read -r up up_part idle idle_part </proc/uptime
	echo $(((up - idle) * 100 + 1$up_part - 1$idle_part))
}
dumps() { # NAME: their cost, in COST; all RPCs are seen at both ends each time
	from=$(busy)
	i=0
	while [ $i -lt $DUMPS ]; do
		look dump rpcs >/run/rpcs
		i=$((i + 1))
	done
	COST=$(($(busy) - from))
	expect "$1" [ "$(wc -l </run/rpcs)" = $((2 * RPCS)) ]
}
until_said() { # PATTERN FILE
	i=0
	until grep -qs "$1" "$2"; do
		i=$((i + 1))
		[ $i -gt 600 ] && break
		sleep 0.1
	done
	expect "$1" grep -s "$1" "$2"
}

requests() { # as many as RPCS, which stay open at both ends
	rm -f /run/hog
	users hog 4 127.0.0.1 4140 1 $RPCS >/run/hog &
	hog=$!
	until_said "begun=$RPCS\$" /run/hog
	i=0
	until [ "$(metric "" rpcs)" = $((2 * RPCS)) ] || [ $i -gt 600 ]; do
		i=$((i + 1))
		sleep 0.1
	done
}

patient ""
ulimit -n 20000
users deaf 4 4140 1 8 >/run/deaf &
PIDS="$PIDS $!"
until_said ready /run/deaf
requests
dumps "all RPCs are seen"
dumps "and again, with warm caches"
few=$COST
# The server's socket is older than the many, the clients' are younger: the RPCs are those of the
# first and of the last.
kill -9 $hog
wait $hog 2>/dev/null
expect "the client's RPCs end" rpcs_gone ""
users socks 4 $SOCKS >/run/socks &
PIDS="$PIDS $!"
until_said "open=$SOCKS\$" /run/socks
requests
PIDS="$PIDS $hog"
dumps "all RPCs are seen beside many sockets"
echo "# $DUMPS dumps of $((2 * RPCS)) RPCs: $few, beside $SOCKS sockets $COST units of 10 ms"
expect "it takes some time" [ "$few" -ge 10 ]
expect "the sockets cost nothing" [ "$COST" -le $((few * 11 / 10 + 2)) ]
quiesce
expect "no RPC is left" rpcs_gone ""
finish
