// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Room: the receive region's pages, and for requests. */
#include <stdbool.h>
#include <sys/time.h>
#include "sock_client.h"

/* Short messages share pages: many more fit than there are pages. */
void check_slices(void)
{
	struct sock s = open_bare(family, 0);
	uint32_t offsets[300];
	unsigned int i;

	give_region(&s, (size_t)4 << 20);
	for (i = 0; i < 300; i++) {
		fill(buf, 1000, i);
		request(&s, &server, buf, 1000, i, 0);
		s.args.num_bpages = 0;
		CHECK(receive(&s, 0, 0) == 1000, "message %u", i);
		verify(&s, 1000, i);
		offsets[i] = s.args.bpage_offsets[0];
	}
	for (i = 0; i < 300; i += 10) {
		memcpy(s.args.bpage_offsets, offsets + i, 10 * sizeof(*offsets));
		s.args.num_bpages = 10;
		FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	}
	sock_call(&s, 1000000, 1);
	s.args.num_bpages = 1;
	s.args.bpage_offsets[0] = 1u << 30;
	FAILS(receive(&s, 0, MSG_DONTWAIT), EINVAL);
	close_sock(&s);
}

/* All of the region is held; messages come when some of it goes back. */
static void hold_all(bool late_region)
{
	struct sock s = open_bare(family, 0);
	struct homa_recvmsg_args held[3];
	uint64_t id;
	int i;

	/* Then messages cannot come into the region directly. */
	if (late_region)
		request(&s, &server, late, 1, 0, 0);
	give_region(&s, ((size_t)2 << 20) + 16 * 65536);
	if (late_region)
		CHECK(receive(&s, 0, 0) == 1, "receive");
	fill(buf, 1000000, 1);
	for (i = 0; i < 3; i++) {
		request(&s, &server, buf, 1000000, 0, 0);
		s.args.num_bpages = 0;
		CHECK(receive(&s, 0, 0) == 1000000, "message %d", i);
		held[i] = s.args;
	}
	request(&s, &server, buf, 1000000, 9, 0);
	s.args.num_bpages = 0;
	usleep(100000);
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	s.args = held[1];
	CHECK(receive(&s, 0, 0) == 1000000 && s.args.completion_cookie == 9,
	      "not given");
	verify(&s, 1000000, 1);
	/* The same by id, while the region is full again. */
	held[1] = s.args;
	id = request(&s, &server, buf, 1000000, 10, HOMA_SENDMSG_PRIVATE);
	s.args.num_bpages = 0;
	usleep(100000);
	FAILS(receive(&s, id, MSG_DONTWAIT), EAGAIN);
	FAILS(receive(&s, id, MSG_DONTWAIT), EAGAIN);
	s.args = held[2];
	CHECK(receive(&s, id, 0) == 1000000 && s.args.completion_cookie == 10,
	      "not given");
	verify(&s, 1000000, 1);
	close_sock(&s);
}

void check_exhaust(void)
{
	hold_all(false);
}

void check_exhaust_copied(void)
{
	hold_all(true);
}

/* No room for more requests, the host lets us have a few only: SO_SNDTIMEO. */
void check_full(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	struct sock s = open_sock(family, 0);
	struct homa_sendmsg_args args = { 0 };
	struct homa_abort_args all = { 0 };
	double begin;
	int i;

	for (i = 0; i < 100000; i++) {
		args.id = 0;
		if (send_raw(s.fd, &server, size_of(family), ignore, 1, &args,
			     MSG_DONTWAIT))
			break;
	}
	CHECK(i < 100000 && errno == EAGAIN, "never full");
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)),
	      "SO_SNDTIMEO");
	begin = now();
	args.id = 0;
	FAILS(send_raw(s.fd, &server, size_of(family), ignore, 1, &args, 0),
	      EAGAIN);
	CHECK(now() - begin > 0.09, "did not wait");
	/* Room again; the server still has what it ignores. */
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &all), "abort");
	CHECK(!send_raw(s.fd, &server, size_of(family), ignore, 1, &args, 0),
	      "send");
	CHECK(args.id, "no id");
	close_sock(&s);
}

/* The region comes late: after an RPC was started. */
void check_late_region(void)
{
	struct sock s = open_bare(family, 0);
	int i;

	request(&s, &server, late, 1, 31, 0);
	give_region(&s, REGION);
	CHECK(receive(&s, 0, 0) == 1 && s.args.completion_cookie == 31,
	      "receive");
	for (i = 1; i < 40; i++)
		sock_call(&s, (size_t)i * 25000, (unsigned int)i);
	close_sock(&s);
	/* Without one nothing is waited for. */
	s = open_bare(family, 0);
	request(&s, &server, ignore, 1, 32, 0);
	FAILS(receive(&s, 0, 0), EINVAL);
	CHECK(!s.args.id, "id");
	close_sock(&s);
}

/* The region outlives the socket, and a program may unmap it before. */
void check_unmap(void)
{
	unsigned char *region, seen[1];
	struct sock s = open_sock(family, 0);

	sock_call(&s, 100000, 1);
	region = s.region;
	CHECK(!close(s.fd), "close");
	region[0] = region[REGION - 1] = 1;
	CHECK(!munmap(region, REGION), "munmap");
	FAILS(mincore(region, 4096, seen), ENOMEM);

	s = open_sock(family, 0);
	sock_call(&s, 100000, 1);
	request(&s, &server, late, 1, 0, 0);
	region = s.region;
	CHECK(!munmap(region, REGION), "munmap");
	usleep(300000);
	CHECK(readable(s.fd, 10000), "nothing came");
	CHECK(!close(s.fd), "close");
	FAILS(mincore(region, 4096, seen), ENOMEM);
}
