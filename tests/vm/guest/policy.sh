# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Programs of cgroups and security modules have their say about packets, in and out.
. /t/tap.sh

pair a b 1
for v in 4 6; do
	ours=10.1.0.1
	peer=10.1.0.2
	[ $v = 6 ] && ours=fd1::1 && peer=fd1::2
	serve b $v 4700 $peer
	tap ip netns exec a policy $v $ours $peer 4700
	quiesce
done
finish
