# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by scripts in guests: checks that print TAP, and networks to make them in.
#
#	check "NAME" COMMAND...		ok if the command ends with 0
#	tap COMMAND...			a program that prints TAP itself, renumbered
#	finish				the plan
#
# Programs in the background are started by `background NS COMMAND...` and end with
# `quiesce`, which waits until no Homa socket is left.

N=0
BAD=0
PIDS=
# Limits are for what hangs. The debug kernel is several times as slow as others, and emulated.
SLOW=1
[ -d /sys/kernel/debug/failslab ] && SLOW=20
LIMIT=${LIMIT:-$((200 * SLOW))}

check() {
	name=$1
	shift
	N=$((N + 1))
	if timeout -s KILL "$LIMIT" "$@" >/run/out 2>&1; then
		echo "ok $N - $name"
	else
		status=$?
		BAD=$((BAD + 1))
		echo "not ok $N - $name"
		echo "# status $status"
		tail -n 15 /run/out | sed 's/^/# /'
	fi
}

# check "NAME" sh -c needs quoting; this does not: a condition of this shell.
expect() {
	name=$1
	shift
	N=$((N + 1))
	if "$@" >/run/out 2>&1; then
		echo "ok $N - $name"
	else
		BAD=$((BAD + 1))
		echo "not ok $N - $name"
		tail -n 15 /run/out | sed 's/^/# /'
	fi
}

tap() {
	timeout -s KILL $((900 * SLOW)) "$@" >/run/tap 2>/run/err
	status=$?
	planned=
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*)
			N=$((N + 1))
			case $line in not*) BAD=$((BAD + 1)) ;; esac
			echo "$line" | sed "s/ok [0-9]*/ok $N/"
			;;
		1..*) planned=yes ;;
		*) echo "$line" ;;
		esac
	done </run/tap
	[ "$planned" ] && return
	N=$((N + 1))
	BAD=$((BAD + 1))
	echo "not ok $N - $1 $2 $3 to its end"
	echo "# status $status"
	tail -n 15 /run/err | sed 's/^/# /'
}

finish() {
	echo "1..$N"
	[ "$BAD" = 0 ]
}

# NS "" is the guest itself.
in_ns() {
	if [ "$1" ]; then
		ns=$1
		shift
		ip netns exec "$ns" "$@"
	else
		shift
		"$@"
	fi
}

background() {
	ns=$1
	shift
	if [ "$ns" ]; then
		ip netns exec "$ns" "$@" >/run/background.out 2>&1 &
	else
		"$@" >/run/background.out 2>&1 &
	fi
	PIDS="$PIDS $!"
}

quiesce() {
	for pid in $PIDS; do
		kill -9 "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	PIDS=
}

# What is a dead peer for others may be a slow machine here. A request is not started
# again when its server may have forgotten that it executed it: that must take as long;
# and these servers have no past of which they could have forgotten something.
patient() {
	for ns in "$@"; do
		in_ns "$ns" sh -c 'cd /proc/sys/net/homa && echo 20000 >timeout_ticks && echo 30000 >tombstone_ms && echo 1 >restart_guard_us'
	done
}

# What a packet takes in a slow kernel is no loss yet: asked for again too soon, and by many, packets
# would only become more.
calm() {
	[ "$SLOW" -gt 1 ] || return 0
	for ns in "$@"; do
		in_ns "$ns" sh -c 'echo 300 >/proc/sys/net/homa/resend_ticks'
	done
}

# cards A B: two namespaces with a virtio card each, eth0 and eth1 of the guest, both then eth0;
# addresses 10.1.0.1 and .2
cards() {
	i=1
	for ns in "$1" "$2"; do
		ip netns add "$ns"
		ip link set eth$((i - 1)) netns "$ns"
		[ $i = 2 ] && ip -n "$ns" link set eth1 name eth0
		ip -n "$ns" link set lo up
		ip -n "$ns" addr add "10.1.0.$i/24" dev eth0
		ip -n "$ns" link set eth0 up
		i=$((i + 1))
	done
}

# pair A B [SUBNET]: two namespaces on a veth pair, addresses 10.SUBNET.0.1, .2, fdSUBNET::1, ::2
pair() {
	subnet=${3:-1}
	ip netns add "$1"
	ip netns add "$2"
	ip link add eth0 netns "$1" type veth peer name eth0 netns "$2"
	i=1
	for ns in "$1" "$2"; do
		ip -n "$ns" link set lo up
		ip -n "$ns" addr add "10.$subnet.0.$i/24" dev eth0
		ip -n "$ns" addr add "fd$subnet::$i/64" dev eth0 nodad
		ip -n "$ns" link set eth0 up
		i=$((i + 1))
	done
	patient "$1" "$2"
}

# offload NS FEATURE on|off ...
offload() {
	ns=$1
	shift
	ip netns exec "$ns" ethtool -K eth0 "$@" >/run/out 2>&1 || {
		echo "# ethtool -K $*:"
		sed 's/^/# /' /run/out
	}
}

metric() {
	in_ns "$1" sed -n "s/^$2  *\([0-9]*\) .*/\1/p" /proc/net/homa_metrics
}

# rpcs_gone NS: wait until no RPC is open
rpcs_gone() {
	i=0
	while [ "$(metric "$1" rpcs)" != 0 ]; do
		i=$((i + 1))
		[ $i -gt $((400 * SLOW)) ] && {
			echo "$(metric "$1" rpcs) RPCs are left in $1"
			return 1
		}
		sleep 0.1
	done
}

# serve NS 4|6 PORT IP: an rpc server, waited for; from the same namespace
serve() {
	background "$1" rpc serve "$2" "$3" 2
	in_ns "$1" rpc wait "$2" "$4" "$3" 60 >/run/out 2>&1 || sed 's/^/# /' /run/out
}
