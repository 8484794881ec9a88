#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The first process of a guest. The kernel's log goes to the first serial line
# (the console); what tests print goes to the second, between marks, so that the
# two never mix. Commands come from /homa/first (part of the image) and then from
# the second serial line: a line with the number of bytes, then so many bytes of
# shell script. See lab/vm/guest.py for the other end.

/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin:/usr/sbin:/sbin:/root HOME=/root TERM=${TERM:-dumb} PS1='guest# '
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
# What goes wrong before this line is the emulator's or the kernel's own affair.
[ -c /dev/ttyS1 ] && echo "@@homa-init" >/dev/ttyS1
mkdir -p /dev/pts /dev/shm /run/netns
mount -t devpts pts /dev/pts 2>/dev/null
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run && mkdir -p /run/netns
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
while read -r module; do
	insmod "$module" || echo "homa-guest: cannot load $module" >/dev/kmsg
done </homa/modules
[ -e /sys/kernel/debug/kmemleak ] && echo scan=off 2>/dev/null >/sys/kernel/debug/kmemleak
ip link set lo up
cd /root || exit
[ -x /homa/prepare ] && . /homa/prepare

if [ -e /homa/interactive ]; then
	. /homa/interactive
	poweroff -f
fi

# From here on all of the log reaches the console.
dmesg -n 8
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
run() {
	echo "@@homa-begin" >&3
	sh "$1" >&3 2>&1 </dev/null 3>&-
	# A program may have ended in the middle of a line.
	printf '\n@@homa-end %d\n' $? >&3
}
echo "@@homa-up $(uname -r)" >&3
[ -e /homa/first ] && run /homa/first
while read -r size <&3; do
	[ "$size" = bye ] && break
	head -c "$size" <&3 >/run/command
	run /run/command
done
if [ -e /homa/leaks ] && [ -e /sys/kernel/debug/kmemleak ]; then
	# It looks at what is 5 seconds old, and reports what two scans have found unchanged.
	sleep 5
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	head -c 20000 /sys/kernel/debug/kmemleak >/run/leaks
	while read -r line; do
		echo "$line" >/dev/kmsg
	done </run/leaks
fi
echo "@@homa-log" >&3
dmesg >&3
echo "@@homa-bye" >&3
# Powering off would throw away what is still in the line.
read -r _ <&3
poweroff -f
