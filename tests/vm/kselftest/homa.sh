#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# RPCs over Homa between two network namespaces. Prints TAP. Needs root, the
# module homa (loaded, or to be had by modprobe) and ip.

ksft_skip=4
here=$(dirname "$0")
rpc=$here/homa_rpc
client=homa-client-$$
server=homa-server-$$
limit=60
plan=24
count=0
failed=0
pids=

skip_all() {
	echo "TAP version 13"
	echo "1..0 # SKIP $*"
	exit $ksft_skip
}

cleanup() {
	for pid in $pids; do
		kill -9 "$pid" 2>/dev/null
	done
	ip netns del "$client" 2>/dev/null
	ip netns del "$server" 2>/dev/null
}

# result NAME COMMAND...: ok if the command ends with 0
result() {
	name=$1
	shift
	count=$((count + 1))
	if said=$("$@" 2>&1); then
		echo "ok $count $name"
	else
		failed=$((failed + 1))
		echo "not ok $count $name"
		echo "$said" | sed 's/^/# /'
	fi
}

on() {
	ns=$1
	shift
	timeout "$limit" ip netns exec "$ns" "$@"
}

call() {
	on "$client" "$rpc" call "$@"
}

# refuses ERRNO COMMAND...: is that what the command ends with?
refuses() {
	errno=$1
	shift
	"$@"
	[ $? -eq "$errno" ]
}

# fails ERRNO ARGUMENTS...: does an RPC fail so?
fails() {
	errno=$1
	shift
	[ "$(on "$client" "$rpc" error "$@")" = "$errno" ]
}

# answers FAMILY PORT ADDRESS: does the server answer before long?
answers() {
	tries=0
	until call "$1" "$3" "$2" 1; do
		tries=$((tries + 1))
		[ $tries -lt 50 ] || return 1
		sleep 0.1
	done
}

[ "$(id -u)" -eq 0 ] || skip_all "needs root"
command -v ip >/dev/null || skip_all "needs ip"
[ -x "$rpc" ] || skip_all "$rpc is not built"
"$rpc" there 2>/dev/null || modprobe -q homa 2>/dev/null
"$rpc" there 2>/dev/null || skip_all "the kernel has no Homa"

trap cleanup EXIT
trap 'exit 1' INT TERM
ip netns add "$client" && ip netns add "$server" ||
	skip_all "no network namespaces"
ip link add veth0 netns "$client" type veth peer name veth0 netns "$server" ||
	skip_all "no veth"
n=1
for ns in "$client" "$server"; do
	ip -n "$ns" addr add "192.0.2.$n/24" dev veth0
	ip -n "$ns" addr add "2001:db8::$n/64" dev veth0 nodad
	ip -n "$ns" link set lo up
	ip -n "$ns" link set veth0 up
	n=$((n + 1))
done

echo "TAP version 13"
echo "1..$plan"
for family in 4 6; do
	case $family in
	4) address=192.0.2.2 ;;
	6) address=2001:db8::2 ;;
	esac
	port=$((4000 + family))
	ip netns exec "$server" "$rpc" serve $family $port >/dev/null 2>&1 &
	pids="$pids $!"
	result "IPv$family: a server answers" answers $family $port $address
	# One packet, several packets, several pages, the longest message.
	for length in 1 100 1400 1500 65536 65537 200000 1000000; do
		result "IPv$family: RPC of $length bytes" \
			call $family $address $port $length
	done
	result "IPv$family: nobody serves the port (ENOTCONN)" \
		fails 107 $family $address 4999
	result "IPv$family: the port is taken (EADDRINUSE)" \
		refuses 98 on "$server" "$rpc" bind $family $port
	result "IPv$family: the same port of another namespace" \
		on "$client" "$rpc" bind $family $port
done

[ $count -eq $plan ] || failed=$((failed + 1))
echo "# $((count - failed)) passed, $failed failed"
[ $failed -eq 0 ]
