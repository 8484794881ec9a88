// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * nic/udp/udp_tx.c: the kernel reports an ICMP error about one packet in place of
 * sending the next one, whoever's that is, and may do so several times in a row.
 * Nobody is blamed for others' errors, and everybody for his own. The system
 * calls are ours here: they refuse as often as a test wants.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic.h"

static int refusal;
static u32 times;

ssize_t __real_sendmsg(int fd, const struct msghdr *mh, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *mh, int flags);
int __real_sendmmsg(int fd, struct mmsghdr *mh, unsigned int n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *mh, unsigned int n, int flags);

static bool refused(void)
{
	if (!times)
		return false;
	times--;
	errno = refusal;
	return true;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *mh, int flags)
{
	return refused() ? -1 : __real_sendmsg(fd, mh, flags);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *mh, unsigned int n, int flags)
{
	return refused() ? -1 : __real_sendmmsg(fd, mh, n, flags);
}

static struct nic *open_udp(void)
{
	struct nic_config config = { .backend = "udp", .address = "127.0.0.1" };
	char err[256] = "";
	struct nic *nic;

	for (u32 tries = 0; tries < 100; tries++) {
		config.udp_port = (u16)(20000 + ((u32)getpid() * 7 +
						 tries * 131 + (u32)rand()) %
							30000);
		if (!nic_open(&nic, &config, err, sizeof(err)))
			return nic;
	}
	fail_msg("%s", err);
	return NULL;
}

/* Sends one packet, of which the kernel refuses so many attempts. Returns the error
 * that the packet is blamed for, 0: none; -1: it arrived. */
static int send_one(int error, u32 attempts)
{
	struct nic *a = open_udp(), *b = open_udp();
	u8 hdr[28] = { 0x80, 1, 0, 2 };
	struct nic_tx tx = { .dst = nic_info(b)->address,
			     .hdr = hdr,
			     .hdr_len = sizeof(hdr) };
	struct nic_error e;
	struct nic_rx rx;
	int blamed = 0, i;

	homa_put_be64(hdr + 20, 4711);
	refusal = error;
	times = attempts;
	assert_int_equal(nic_tx(a, &tx, 1), 1);
	nic_flush(a);
	times = 0;
	if (nic_errors(a, &e, 1)) {
		assert_int_equal(e.sender_id, 4711);
		assert_int_equal(e.dst.encap, tx.dst.encap);
		blamed = e.error;
	}
	/* Over the loopback it is there as soon as it was sent. */
	for (i = 0; i < 100 && !blamed; i++)
		if (nic_rx(b, &rx, 1) == 1) {
			nic_rx_release(b, &rx, 1);
			blamed = -1;
		}
	nic_close(a);
	nic_close(b);
	return blamed;
}

static void send__goes_on_after_others_errors(void **state)
{
	(void)state;
	assert_int_equal(send_one(0, 0), -1);
	assert_int_equal(send_one(ECONNREFUSED, 1), -1);
	assert_int_equal(send_one(ECONNREFUSED, 3), -1);
	assert_int_equal(send_one(EHOSTUNREACH, 3), -1);
	assert_int_equal(send_one(EMSGSIZE, 2), -1);
}

/* Lost, for Homa to repair: the RPC would end otherwise. */
static void send__is_not_blamed_for_others_errors(void **state)
{
	(void)state;
	assert_int_equal(send_one(ECONNREFUSED, 1000), 0);
	assert_int_equal(send_one(ENOPROTOOPT, 1000), 0);
	/* There is a route to 127.0.0.1, and for 28 bytes. */
	assert_int_equal(send_one(EHOSTUNREACH, 1000), 0);
	assert_int_equal(send_one(ENETUNREACH, 1000), 0);
	assert_int_equal(send_one(EMSGSIZE, 1000), 0);
}

static void send__is_blamed_for_its_own(void **state)
{
	(void)state;
	assert_int_equal(send_one(EPERM, 1000), EHOSTUNREACH);
	assert_int_equal(send_one(EINVAL, 1000), EHOSTUNREACH);
}

/* Sends 64 packets that may be joined; how many of them arrived. */
static u32 send_train(struct nic *a, struct nic *b)
{
	static const u8 payload[900];
	u8 hdr[64][28] = { 0 };
	struct nic_tx tx[64];
	struct nic_rx rx[64];
	u32 i, got = 0;

	for (i = 0; i < 64; i++) {
		homa_put_be64(hdr[i] + 20, i);
		tx[i] = (struct nic_tx){
			.dst = nic_info(b)->address,
			.hdr = hdr[i],
			.hdr_len = sizeof(hdr[i]),
			.payload = payload,
			.payload_len = sizeof(payload),
		};
	}
	assert_int_equal(nic_tx(a, tx, 64), 64);
	nic_flush(a);
	for (i = 0; i < 1000 && got < 64; i++) {
		int n = nic_rx(b, rx, 64);

		nic_rx_release(b, rx, n);
		got += (u32)n;
	}
	return got;
}

/* A device that refuses what is to be cut apart is not asked again, and all arrives. */
static void send__joined_unless_the_device_refuses(void **state)
{
	struct nic *a = open_udp(), *b = open_udp();
	struct nic_stats sent, heard;

	(void)state;
	assert_int_equal(nic_info(a)->max_segs, 64);
	assert_int_equal(send_train(a, b), 64);
	nic_stats(a, &sent);
	nic_stats(b, &heard);
	assert_int_equal(sent.tx_gso, 64);
	assert_int_equal(heard.rx_gro, 64);
	refusal = EIO;
	times = 1;
	assert_int_equal(send_train(a, b), 64);
	assert_int_equal(nic_info(a)->max_segs, 1);
	assert_int_equal(send_train(a, b), 64);
	nic_stats(a, &sent);
	nic_stats(b, &heard);
	assert_int_equal(sent.tx_packets, 3 * 64);
	assert_int_equal(sent.tx_gso, 64);
	assert_int_equal(heard.rx_gro, 64);
	nic_close(a);
	nic_close(b);
}

/* A packet that waits for room is counted when it has left, and one that is lost is not. */
static void send__counts_what_has_left(void **state)
{
	struct nic *a = open_udp(), *b = open_udp();
	u8 hdr[28] = { 0x80, 1, 0, 2 }, payload[100] = { 0 };
	struct nic_tx tx = { .dst = nic_info(b)->address,
			     .hdr = hdr,
			     .hdr_len = sizeof(hdr),
			     .payload = payload,
			     .payload_len = sizeof(payload) };
	static const int full[] = { EAGAIN, ENOBUFS };
	struct nic_stats sent;
	u32 i;

	(void)state;
	for (i = 0; i < 2; i++) {
		refusal = full[i];
		times = 1;
		assert_int_equal(nic_tx(a, &tx, 1), 0);
		nic_stats(a, &sent);
		assert_int_equal(sent.tx_packets, i);
		assert_int_equal(sent.tx_bytes, i * 128);
		assert_int_equal(nic_tx(a, &tx, 1), 1);
		nic_stats(a, &sent);
		assert_int_equal(sent.tx_packets, i + 1);
		assert_int_equal(sent.tx_bytes, (i + 1) * 128);
	}
	/* It leaves when it is tried again by itself. */
	refusal = ECONNREFUSED;
	times = 1;
	assert_int_equal(nic_tx(a, &tx, 1), 1);
	nic_stats(a, &sent);
	assert_int_equal(sent.tx_packets, 3);
	assert_int_equal(sent.tx_bytes, 3 * 128);
	times = 1000;
	assert_int_equal(nic_tx(a, &tx, 1), 1);
	times = 0;
	nic_stats(a, &sent);
	assert_int_equal(sent.tx_packets, 3);
	assert_int_equal(sent.tx_bytes, 3 * 128);
	nic_close(a);
	nic_close(b);
}

static bool readable(struct nic *nic)
{
	struct pollfd fd = { .fd = nic_fd(nic), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* Sends a packet that the kernel does not take now; is the sender woken then, without anything new,
 * as the socket is writable? */
static bool wakes(struct nic *a, const struct nic_tx *tx, int error)
{
	refusal = error;
	times = 1;
	assert_int_equal(nic_tx(a, tx, 1), 0);
	assert_false(nic_arm(a));
	return readable(a);
}

/* A full socket buffer wakes the sender when there is room, once: who has something to send tries
 * before the next sleep. Of a full queue of the device the socket says nothing. */
static void send__wakes_for_room_only(void **state)
{
	struct nic *a = open_udp(), *b = open_udp();
	u8 hdr[28] = { 0x80, 1, 0, 2 };
	struct nic_tx tx = { .dst = nic_info(b)->address,
			     .hdr = hdr,
			     .hdr_len = sizeof(hdr) };

	(void)state;
	assert_true(wakes(a, &tx, EAGAIN));
	assert_false(nic_arm(a));
	assert_false(readable(a));
	assert_false(wakes(a, &tx, ENOBUFS));
	assert_true(wakes(a, &tx, EAGAIN));
	assert_false(wakes(a, &tx, ENOBUFS));
	nic_close(a);
	nic_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__goes_on_after_others_errors),
		cmocka_unit_test(send__is_not_blamed_for_others_errors),
		cmocka_unit_test(send__is_blamed_for_its_own),
		cmocka_unit_test(send__joined_unless_the_device_refuses),
		cmocka_unit_test(send__counts_what_has_left),
		cmocka_unit_test(send__wakes_for_room_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
