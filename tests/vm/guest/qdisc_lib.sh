# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced after tap.sh: a measured run of `share`, and what must hold of it.
#
#	run "WHAT" OPTION...		as share run; the names of its result are for holds
#	holds "NAME" "CONDITION"	in awk; LINK: bytes the link takes in the time. All are about
#					time, so that they are not asked of a slow kernel

PORT=4000
LINK=12500000	# a second at 100 Mbit/s
SAID=

run() {
	WHAT=$1
	shift
	SAID=$(in_ns a timeout -s KILL "$LIMIT" share run 10.1.0.2 $PORT "$@" 2>&1)
	echo "# $WHAT: $SAID"
}

holds() {
	N=$((N + 1))
	values=$(echo "$SAID" | tr ' ' '\n' | sed -n 's/^[a-z0-9_]*=[0-9]*$/-v &/p')
	# shellcheck disable=SC2086
	if [ "$values" ] && [ "$SLOW" -gt 1 ]; then
		echo "ok $N - $WHAT: $1 # SKIP checks of the kernel take the time that is shared"
	elif [ "$values" ] && awk -v LINK="$LINK" $values '
		function abs(x) { return x < 0 ? -x : x }
		BEGIN { exit !('"$2"') }'; then
		echo "ok $N - $WHAT: $1"
	else
		BAD=$((BAD + 1))
		echo "not ok $N - $WHAT: $1"
		echo "# not: $2"
	fi
}

# shape NS KIND ARGUMENTS...: eth0 is slow, and homa is below the shaper
shape() {
	ns=$1
	shift
	tc -n "$ns" qdisc replace dev eth0 root handle 1: "$@"
	tc -n "$ns" qdisc replace dev eth0 parent 1: handle 2: homa
}

# neighbours A B NET: A is NET.1, B is NET.2, and they know each other
neighbours() {
	ip -n "$1" neigh replace "$3.2" dev eth0 nud permanent \
		lladdr "$(in_ns "$2" cat /sys/class/net/eth0/address)"
	ip -n "$2" neigh replace "$3.1" dev eth0 nud permanent \
		lladdr "$(in_ns "$1" cat /sys/class/net/eth0/address)"
}

# listens NS PORT: waits
listens() {
	until in_ns "$1" ss -ltn | grep -q ":$2 "; do sleep 0.05; done
}

# of the homa qdiscs of NS' eth0
of_qdisc() {
	tc -n "$1" -s qdisc show dev eth0 | sed -n '/^qdisc homa/,/backlog/p'
}
sent() {
	of_qdisc "$1" | awk '/Sent/ { n += $2 } END { print n + 0 }'
}
dropped() {
	of_qdisc "$1" | awk '/dropped/ { gsub(",", "", $7); n += $7 } END { print n + 0 }'
}
# Packets that wait
backlog() {
	of_qdisc "$1" | awk '/backlog/ { n += $3 } END { print n + 0 }'
}

in_order() {
	[ "$1" -le "$2" ] && [ "$2" -le "$3" ]
}

tcp_retransmits() {
	in_ns "$1" awk '/^Tcp:/ && $2 ~ /^[0-9]/ { print $13 }' /proc/net/snmp
}
