# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Streams over Homa: by plain socket calls over loopback, and between two namespaces.
. /t/tap.sh

patient ""
# A device by which nothing comes.
ip link add other type veth peer name another
ip link set other up
tap stream checks 4 127.0.0.1
[ "$QUICK" ] || tap stream checks 6 ::1
pair a b 1
for v in 4 6; do
	ip=10.1.0.2
	[ $v = 6 ] && ip=fd1::2
	background b stream serve $v $((700 + v))
	check "a stream between two hosts v$v" ip netns exec a stream client $v $ip $((700 + v)) 3000000
	in_ns a tc qdisc add dev eth0 root netem delay 1ms 1ms loss 2%
	check "with loss and disorder v$v" ip netns exec a stream client $v $ip $((700 + v)) 300000
	in_ns a tc qdisc del dev eth0 root
done
# Nothing comes from the peer's host any more: what is sent to it fails. Only the client's host
# is impatient, and only then: on a busy machine the peer's would give up first and forget the
# connection, and the client hear a reset.
had=$(metric b host_stream_conns)
background a stream client 4 10.1.0.2 704 0
client=$!
until [ "$(metric b host_stream_conns)" -gt "$had" ]; do sleep 0.1; done
sleep 1
in_ns b tc qdisc add dev eth0 root netem loss 100%
in_ns a sh -c 'echo 300 >/proc/sys/net/homa/timeout_ticks'
# How long that takes depends on the kernel, so only the guest's own limit ends a wait.
fails() {
	! wait "$1"
}
expect "a client whose peer is gone ends" fails $client
expect "with ETIMEDOUT" sh -c 'cat /run/background.out; grep -q "errno 110" /run/background.out'
quiesce
# Open streams keep the module; namespaces end while there are some, and their programs later.
pair c d 2
had=$(metric d host_stream_conns)
background d stream serve 4 705
background c stream client 4 10.2.0.2 705 0
until [ "$(metric d host_stream_conns)" -gt "$had" ]; do sleep 0.1; done
expect "the module stays while a stream is open" sh -c '! rmmod homa'
for ns in a b c d; do
	ip netns del $ns
done
sleep 1
quiesce
expect "no RPC is left" rpcs_gone ""
expect "no socket is left" [ "$(metric "" socks)" = 0 ]
until rmmod homa 2>/run/rmmod.err; do
	sleep 0.2
done
expect "the module goes" [ ! -d /sys/module/homa ]
finish
