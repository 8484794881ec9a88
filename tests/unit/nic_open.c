// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Opening and refusing, and the UDP backend over loopback, where it needs no
 * privilege: refusals say why and leave no descriptor behind, packets arrive
 * whole through GSO and GRO, buffers come back, sleeping and waking work.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "netif.h"
#include "nic.h"

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void refuse(struct nic_config config, int error, const char *word)
{
	int before = descriptors();
	char err[256] = "";
	struct nic *nic;

	assert_int_equal(nic_open(&nic, &config, err, sizeof(err)), error);
	assert_null(nic);
	if (!strstr(err, word) || strchr(err, '\n'))
		fail_msg("\"%s\" does not say \"%s\" in one line", err, word);
	assert_int_equal(descriptors(), before);
	/* a caller that wants no sentence */
	assert_int_equal(nic_open(&nic, &config, NULL, 0), error);
}

static void open__refusals_say_why(void **state)
{
	(void)state;
	refuse((struct nic_config){ .backend = NULL }, -EINVAL,
	       "afxdp, packet, message or udp");
	refuse((struct nic_config){ .backend = "message" }, -EINVAL, "interface");
	refuse((struct nic_config){ .backend = "packet" }, -EINVAL, "interface");
	refuse((struct nic_config){ .backend = "rdma" }, -EINVAL, "\"rdma\"");
	refuse((struct nic_config){ .backend = "afxdp" }, -EINVAL, "interface");
	refuse((struct nic_config){ .backend = "afxdp", .interface = "nosuch0" },
	       -ENODEV, "there are: ");
	refuse((struct nic_config){ .backend = "afxdp",
				    .interface =
					    "a-name-that-is-too-long-for-linux" },
	       -ENODEV, "there are: ");
	refuse((struct nic_config){ .backend = "udp", .interface = "nosuch0" },
	       -ENODEV, "there are: ");
	refuse((struct nic_config){ .backend = "udp", .address = "host.example" },
	       -EINVAL, "numeric");
	refuse((struct nic_config){ .backend = "udp", .address = "192.0.2.1" },
	       -EADDRNOTAVAIL, "192.0.2.1");
}

/* ---- UDP over loopback ---- */

struct pair {
	struct nic *a;
	struct nic *b;
	struct homa_addr addr_b;
};

/* Port 54321 may be taken by a neighbour on this machine: two ephemeral ones. */
static struct nic *open_udp(const char *address, u32 frames, bool no_offload)
{
	char err[256] = "";

	for (u32 tries = 0; tries < 100; tries++) {
		struct nic_config config = {
			.backend = "udp",
			.address = address,
			.frames = frames,
			.no_offload = no_offload,
			.udp_port = (u16)(20000 +
					  (getpid() * 7 + tries * 131 + rand()) %
						  30000),
		};
		struct nic *nic;

		if (!nic_open(&nic, &config, err, sizeof(err)))
			return nic;
	}
	fail_msg("%s", err);
	return NULL;
}

static void open_pair(struct pair *p, const char *address, u32 frames,
		      bool no_offload)
{
	p->a = open_udp(address, frames, no_offload);
	p->b = open_udp(address, frames, no_offload);
	p->addr_b = nic_info(p->b)->address;
}

static void close_pair(struct pair *p)
{
	nic_close(p->a);
	nic_close(p->b);
}

static u8 payload[60000];

static void send(struct pair *p, u32 first, int n, u32 len, u32 last_len, u8 prio)
{
	static u8 hdrs[1024][28];
	static struct nic_tx tx[1024];

	for (int i = 0; i < n; i++) {
		memset(hdrs[i], 0, sizeof(hdrs[i]));
		homa_put_be64(hdrs[i] + 20, first + (u32)i);
		tx[i] = (struct nic_tx){
			.dst = p->addr_b,
			.hdr = hdrs[i],
			.hdr_len = 28,
			.payload = payload,
			.payload_len = i == n - 1 ? last_len : len,
			.prio = prio,
		};
	}
	assert_int_equal(nic_tx(p->a, tx, n), n);
	nic_flush(p->a);
}

/* Loopback delivers in the sender's call, so all is there already. */
static int receive(struct pair *p, struct nic_rx *rx, int n)
{
	int got = 0, now;

	while (got < n && (now = nic_rx(p->b, rx + got, n - got)) > 0)
		got += now;
	return got;
}

static void udp_passes(const char *address, bool no_offload)
{
	static const u32 sizes[] = { 0, 1, 100, 1400, 9000, 50000 };
	struct homa_addr self;
	struct nic_rx rx[101];
	struct pair p;

	assert_int_equal(nic_addr_parse(address, &self), 0);
	for (u32 i = 0; i < sizeof(payload); i++)
		payload[i] = (u8)(i * 13 + 1);
	open_pair(&p, address, 0, no_offload);
	for (size_t s = 0; s < HOMA_ARRAY_SIZE(sizes); s++) {
		int n = sizes[s] > 9000 ? 20 : 100;

		for (u8 prio = 0; prio < 8; prio += 7) {
			send(&p, 1000, n, sizes[s], sizes[s] / 2, prio);
			assert_int_equal(receive(&p, rx, n + 1), n);
			for (int i = 0; i < n; i++) {
				u32 want = i == n - 1 ? sizes[s] / 2 : sizes[s];

				assert_int_equal(rx[i].len, 28 + want);
				assert_int_equal(homa_get_be64(rx[i].data + 20),
						 1000 + i);
				assert_memory_equal(rx[i].data + 28, payload,
						    want);
				assert_int_equal(rx[i].prio, prio);
				assert_memory_equal(rx[i].src.ip, self.ip, 16);
				assert_memory_equal(rx[i].dst.ip, self.ip, 16);
				assert_int_equal(rx[i].src.encap,
						 nic_info(p.a)->address.encap);
			}
			nic_rx_release(p.b, rx, n);
		}
	}
	close_pair(&p);
}

static void udp__v4(void **state)
{
	(void)state;
	udp_passes("127.0.0.1", false);
	udp_passes("127.0.0.1", true);
}

static void udp__v6(void **state)
{
	struct nic_config config = { .backend = "udp",
				     .address = "::1",
				     .udp_port = 0 };
	struct nic *probe;

	(void)state;
	if (nic_open(&probe, &config, NULL, 0))
		skip(); /* a machine without IPv6 */
	nic_close(probe);
	udp_passes("::1", false);
	udp_passes("::1", true);
}

static void udp__held_buffers_hold_back_and_come_back(void **state)
{
	struct nic_rx rx[40];
	struct pair p;

	(void)state;
	open_pair(&p, "127.0.0.1", 4, true);
	send(&p, 0, 20, 100, 100, 1);
	/* four buffers, four packets; the others wait in the socket */
	assert_int_equal(receive(&p, rx, 40), 4);
	assert_int_equal(nic_rx(p.b, rx + 4, 1), 0);
	nic_rx_release(p.b, rx, 2);
	assert_int_equal(receive(&p, rx + 4, 36), 2);
	nic_rx_release(p.b, rx + 2, 4);
	for (int i = 6; i < 20; i += 2) {
		assert_int_equal(receive(&p, rx, 2), 2);
		assert_int_equal(homa_get_be64(rx[0].data + 20), i);
		nic_rx_release(p.b, rx, 2);
	}
	close_pair(&p);
}

static bool readable(struct nic *nic)
{
	struct pollfd fd = { .fd = nic_fd(nic), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void udp__arm_and_wake(void **state)
{
	struct nic_rx rx[8];
	struct pair p;

	(void)state;
	open_pair(&p, "127.0.0.1", 0, false);
	assert_false(nic_arm(p.b));
	assert_false(readable(p.b));
	send(&p, 0, 5, 10, 10, 1);
	assert_true(readable(p.b));
	/* part of a bundle is left in the backend, not in the socket */
	assert_int_equal(nic_rx(p.b, rx, 1), 1);
	assert_true(nic_arm(p.b));
	assert_int_equal(receive(&p, rx + 1, 7), 4);
	nic_rx_release(p.b, rx, 5);
	assert_false(nic_arm(p.b));
	assert_false(readable(p.b));
	close_pair(&p);
}

static void udp__closed_port_is_an_error(void **state)
{
	struct nic_error e;
	struct nic_rx rx;
	struct pair p;

	(void)state;
	open_pair(&p, "127.0.0.1", 0, false);
	nic_close(p.b);
	send(&p, 7, 1, 10, 10, 1);
	assert_int_equal(nic_rx(p.a, &rx, 1), 0);
	assert_int_equal(nic_errors(p.a, &e, 1), 1);
	assert_int_equal(e.error, ECONNREFUSED);
	assert_int_equal(e.sender_id, 7);
	assert_true(homa_addr_equal(&e.dst, &p.addr_b));
	nic_close(p.a);
}

static void udp__routes(void **state)
{
	struct homa_addr dst;
	struct pair p;
	u32 mtu = 0;

	(void)state;
	open_pair(&p, "127.0.0.1", 0, false);
	assert_int_equal(nic_route(p.a, &p.addr_b, &mtu), 0);
	assert_in_range(mtu, 1000, 65535 - 8);
	nic_addr_parse("fd00::1", &dst); /* from an IPv4 socket */
	assert_int_equal(nic_route(p.a, &dst, &mtu), -ENETUNREACH);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__refusals_say_why),
		cmocka_unit_test(udp__v4),
		cmocka_unit_test(udp__v6),
		cmocka_unit_test(udp__held_buffers_hold_back_and_come_back),
		cmocka_unit_test(udp__arm_and_wake),
		cmocka_unit_test(udp__closed_port_is_an_error),
		cmocka_unit_test(udp__routes),
	};

	srand((unsigned int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
