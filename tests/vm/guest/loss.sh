# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Loss, reordering, duplication and delay by netem: nothing is lost for the
# application, nothing is executed twice, every byte is right. netem's own random
# numbers are seeded where tc and the kernel know how.
. /t/tap.sh

pair a b 1
for ns in a b; do offload $ns gro on tso on; done
seed=
tc -n a qdisc add dev eth0 root netem loss 1% seed 7 2>/dev/null && seed="seed 7"
tc -n a qdisc del dev eth0 root 2>/dev/null
echo "# netem ${seed:-cannot be seeded}"
background b rpc serve 4 4004 2
background b rpc serve 6 4006 2
check "v4 answers" ip netns exec a rpc wait 4 10.1.0.2 4004 60
check "v6 answers" ip netns exec a rpc wait 6 fd1::2 4006 60

netem() {
	for ns in a b; do
		tc -n $ns qdisc replace dev eth0 root netem limit 10000 "$@" $seed ||
			echo "# no netem $*"
	done
}

round() {
	netem $2
	check "v4, $1" ip netns exec a rpc load 4 10.1.0.2 4004 $N $3 8 $4 2
	check "v6, $1" ip netns exec a rpc load 6 fd1::2 4006 $N $3 8 $4 1
}

round "1 % loss" "loss 1%" 80 100000
round "10 % loss" "loss 10%" 40 20000
round "30 % loss" "loss 30%" 15 3000
round "duplicates" "duplicate 20%" 80 60000
round "reordering" "delay 2ms reorder 50% 50%" 40 60000
round "delay that varies" "delay 5ms 4ms" 40 40000
round "all at once" "delay 2ms 2ms loss 3% duplicate 5% reorder 30%" 40 40000
for ns in a b; do tc -n $ns qdisc del dev eth0 root; done
check "and without any" ip netns exec a rpc edges 4 10.1.0.2 4004 1500
expect "no RPC is left in a" rpcs_gone a
quiesce
expect "no RPC is left in b" rpcs_gone b
finish
