# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Packets that a firewall hands to a program (NFQUEUE) come back in a task, with bottom halves
# on. requeue.ko does that to each packet: messages arrive all the same, and the early path takes
# none of them, as it uses what belongs to a CPU. (The debug kernel sees that, too.)
. /t/tap.sh

pair a b 1
calm a b
expect "the module loads" insmod /t/requeue.ko
background b rpc serve 4 4004 2
background b rpc serve 6 4006 2
check "v4 answers" ip netns exec a rpc wait 4 10.1.0.2 4004 60
check "v6 answers" ip netns exec a rpc wait 6 fd1::2 4006 60
check "v4, packets put back" ip netns exec a rpc load 4 10.1.0.2 4004 7 100 8 20000 2
check "v6, packets put back" ip netns exec a rpc load 6 fd1::2 4006 8 100 8 20000 2
passed=$(cat /sys/module/requeue/parameters/passed)
expect "these went by the task: $passed" [ "$passed" -gt 400 ]
stolen=$(cat /sys/module/requeue/parameters/stolen)
expect "and on by IP, but for $stolen" [ "$stolen" = 0 ]
expect "no RPC is left in a" rpcs_gone a
quiesce
expect "no RPC is left in b" rpcs_gone b
expect "the module goes" rmmod requeue
finish
