# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Programs for the socket API, unchanged, over loopback; sizes; life and death.
. /t/tap.sh

patient ""
# "failures" wants the peer's address of a failed RPC and "forks" that a child's
# socket is another one: preloaded libraries can, kernels do not. "restart" is
# about a daemon, "full" about its quota; "storm" wants so many calls in 3 s. vm_life
# has what a kernel does instead.
CHECKS="sizes async private_rpc aborts shuts nonblocking polls epoll_level epoll_edge dups
	threads slices exhaust exhaust_copied late_region many signals handlers unmap information
	roles connects exchanges exchange_errors exchange_waits exchange_serves exchange_flags
	exchange_meanwhile exchange_storm"

for v in 4 6; do
	ip=127.0.0.1
	[ $v = 6 ] && ip=::1
	check "sock_errors v$v" sock_errors $v taken
	background "" sock_server $v 4000 block
	check "a server answers v$v" rpc wait $v $ip 4000 60
	[ $v = 6 ] && [ "$QUICK" ] && CHECKS="sizes private_rpc aborts dups unmap"
	for c in $CHECKS; do
		check "sock_client v$v: $c" sock_client $v $ip 4000 $c
	done
	# Those that it ignores are the server's until it ends.
	quiesce
	expect "no RPC is left v$v" rpcs_gone ""
	[ $v = 6 ] && [ -z "$ALL" ] && continue
	for how in poll epoll edge threads nonblock exchange; do
		background "" sock_server $v 4001 $how
		check "a server by $how answers v$v" rpc wait $v $ip 4001 60
		check "a server by $how: async v$v" sock_client $v $ip 4001 async
		check "a server by $how: threads v$v" sock_client $v $ip 4001 threads
		quiesce
	done
done
for v in 4 6; do
	ip=127.0.0.1
	[ $v = 6 ] && ip=::1
	serve "" $v 4002 $ip
	check "edges v$v on lo" rpc edges $v $ip 4002 65536
	check "load v$v on lo" rpc load $v $ip 4002 1 150 20 100000 2
	quiesce
done
# An IPv6 socket reaches IPv4.
serve "" 6 4003 ::1
check "edges v4 to a v6 socket" rpc edges 4 127.0.0.1 4003 1500
check "edges from a v6 socket to v4-mapped" rpc edges 6 127.0.0.1 4003 1500
quiesce
tap life 4 127.0.0.1
tap life 6 ::1 "kill -9 of clients in the middle" "a server's close is heard by its clients" \
	"close with RPCs in every state" "nobody listens" "poll says whether there is room" \
	"several addresses of a port" "who may have an address beside whom" \
	"addresses of other machines" "both families, mapped and link-local" "sockets on a device" \
	"calls of 32-bit programs" "SO_SNDBUF is the room to send" "why packets are dropped"
expect "no RPC is left" rpcs_gone ""
expect "no socket is left" [ "$(metric "" socks)" = 0 ]
finish
