// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* RPCs: sizes, many at once, private ones, aborts, failures, information. */
#include "sock_client.h"

void check_sizes(void)
{
	static const size_t all[] = { 1,      2,      100,    1400,  1500,
				      9000,   65535,  65536,  65537, 131072,
				      500000, 999999, 1000000 };
	struct sock s = open_sock(family, 0);
	unsigned int i;

	for (i = 0; i < 3 * sizeof(all) / sizeof(*all); i++)
		sock_call(&s, all[i % (sizeof(all) / sizeof(*all))], i + 1);
	close_sock(&s);
}

void check_async(void)
{
	struct sock s = open_sock(family, 0);
	unsigned char seen[200] = { 0 };
	unsigned int i;

	for (i = 0; i < sizeof(seen); i++) {
		fill(buf, 100 + i * 50, i);
		request(&s, &server, buf, 100 + i * 50, 1000 + i, 0);
	}
	for (i = 0; i < sizeof(seen); i++) {
		ssize_t n = receive(&s, 0, 0);
		uint64_t which = s.args.completion_cookie - 1000;

		CHECK(which < sizeof(seen) && !seen[which]++, "cookie");
		CHECK(n == 100 + (ssize_t)which * 50, "%zd bytes", n);
		verify(&s, (size_t)n, (unsigned int)which);
	}
	close_sock(&s);
}

/* The server's is ours with the last bit changed, and ours is that of sendmsg(). */
void check_ids(void)
{
	static const size_t all[] = { 9, 1000, 5000, 70000, 500000 };
	struct sock s = open_sock(family, 0);
	unsigned int i;

	for (i = 0; i < 4 * sizeof(all) / sizeof(*all); i++) {
		size_t size = all[i % (sizeof(all) / sizeof(*all))];
		struct iovec iov[HOMA_MAX_BPAGES];
		uint64_t id, seen;

		memset(buf, 0, size);
		buf[0] = TELL;
		id = request(&s, &server, buf, size, 0,
			     i % 2 ? HOMA_SENDMSG_PRIVATE : 0);
		CHECK(receive(&s, i % 2 ? id : 0, 0) == (ssize_t)size, "size");
		CHECK(s.args.id == id, "another RPC");
		pieces(&s, size, iov);
		memcpy(&seen, (unsigned char *)iov[0].iov_base + 1, sizeof(seen));
		CHECK(seen == (id ^ 1), "%zu bytes: %llx here, %llx there",
		      size, (unsigned long long)id, (unsigned long long)seen);
	}
	close_sock(&s);
}

void check_private_rpc(void)
{
	struct sock s = open_sock(family, 0);
	uint64_t one, two, common;
	ssize_t n;

	fill(buf, 500, 1);
	one = request(&s, &server, buf, 500, 11, HOMA_SENDMSG_PRIVATE);
	fill(buf, 700000, 2);
	two = request(&s, &server, buf, 700000, 22, HOMA_SENDMSG_PRIVATE);
	/* Invisible but by id. */
	usleep(200000);
	CHECK(!readable(s.fd, 0), "poll sees a private RPC");
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	n = receive(&s, two, 0);
	CHECK(n == 700000 && s.args.id == two && s.args.completion_cookie == 22,
	      "%zd", n);
	verify(&s, 700000, 2);
	n = receive(&s, one, 0);
	CHECK(n == 500 && s.args.id == one && s.args.completion_cookie == 11,
	      "%zd", n);
	verify(&s, 500, 1);
	/* Received, unknown, not private. */
	FAILS(receive(&s, one, 0), EINVAL);
	FAILS(receive(&s, 0x123456, 0), EINVAL);
	common = request(&s, &server, buf, 10, 0, 0);
	FAILS(receive(&s, common, 0), EINVAL);
	CHECK(receive(&s, 0, 0) == 10 && s.args.id == common, "shared");
	close_sock(&s);
}

static unsigned int open_rpcs(struct sock *s)
{
	struct homa_info info = { 0 };

	CHECK(!ioctl(s->fd, HOMAIOCINFO, &info), "info");
	return info.num_rpcs;
}

void check_aborts(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_abort_args a = { 0 };
	int i;

	/* With an error it comes back with id and cookie, and at once. */
	a.id = request(&s, &server, ignore, 1, 5, 0);
	a.error = ECANCELED;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	CHECK(readable(s.fd, 0), "poll does not see it");
	CHECK(open_rpcs(&s) == 1, "%u RPCs", open_rpcs(&s));
	FAILS(receive(&s, 0, MSG_DONTWAIT), ECANCELED);
	CHECK(s.args.id == a.id && s.args.completion_cookie == 5, "id, cookie");
	FAILS(ioctl(s.fd, HOMAIOCABORT, &a), EINVAL);
	/* Without one it vanishes. */
	a.id = request(&s, &server, ignore, 1, 6, 0);
	a.error = 0;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	CHECK(open_rpcs(&s) == 0, "%u RPCs", open_rpcs(&s));
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	/* Whose response is on its way: it vanishes or is there, never half of it. */
	for (i = 0; i < 200; i++) {
		a.id = request(&s, &server, buf, 10, 6, 0);
		CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
		FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	}
	CHECK(open_rpcs(&s) == 0, "%u RPCs", open_rpcs(&s));
	/* All at once; private ones, too. */
	request(&s, &server, ignore, 1, 7, 0);
	request(&s, &server, ignore, 1, 8, 0);
	a.id = 0;
	a.error = ETIME;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	FAILS(receive(&s, 0, 0), ETIME);
	FAILS(receive(&s, 0, 0), ETIME);
	a.id = request(&s, &server, ignore, 1, 9, HOMA_SENDMSG_PRIVATE);
	a.error = 0;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	FAILS(receive(&s, a.id, 0), EINVAL);
	sock_call(&s, 100, 3);
	close_sock(&s);
}

void check_information(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_rpc_info rpcs[4];
	struct homa_info info = { .rpc_info = rpcs,
				  .rpc_info_length = sizeof(rpcs) };
	union address us;
	socklen_t size = sizeof(us);
	uint64_t id;

	CHECK(!getsockname(s.fd, &us.sa, &size) && size == size_of(family),
	      "%u", size);
	CHECK(ntohs(us.in4.sin_port) >= HOMA_MIN_DEFAULT_PORT, "port");
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	CHECK(info.port == ntohs(us.in4.sin_port), "port %u", info.port);
	CHECK(info.num_rpcs == 0, "%u RPCs", info.num_rpcs);
	CHECK(info.bpool_avail_bytes == REGION, "%llu",
	      (unsigned long long)info.bpool_avail_bytes);
	request(&s, &server, ignore, 1, 5, 0);
	id = request(&s, &server, ignore, 1, 7, HOMA_SENDMSG_PRIVATE);
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	CHECK(info.num_rpcs == 2, "%u RPCs", info.num_rpcs);
	if (rpcs[0].id != id)
		rpcs[0] = rpcs[1];
	CHECK(rpcs[0].id == id && rpcs[0].completion_cookie == 7, "id, cookie");
	CHECK(rpcs[0].flags & HOMA_RPC_PRIVATE, "flags %x", rpcs[0].flags);
	CHECK(rpcs[0].tx_length == 1, "%d", rpcs[0].tx_length);
	CHECK(rpcs[0].peer.in4.sin_family == family &&
		      rpcs[0].peer.in4.sin_port == server.in4.sin_port,
	      "peer");
	/* Less room than RPCs. */
	info.rpc_info_length = sizeof(rpcs[0]) + 5;
	rpcs[1].id = 99;
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info) && info.num_rpcs == 2, "info");
	CHECK(rpcs[1].id == 99, "written beyond the end");
	FAILS(receive(&s, 0x998, 0), EINVAL);
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info) && strlen(info.error_msg) > 10,
	      "'%s'", info.error_msg);
	/* A message that was looked at is taken, too. */
	fill(buf, 100, 1);
	id = request(&s, &server, buf, 100, 8, 0);
	CHECK(receive(&s, 0, MSG_PEEK) == 100 && s.args.id == id, "peek");
	CHECK(open_rpcs(&s) == 2, "%u RPCs", open_rpcs(&s));
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	close_sock(&s);
}

/* One that is complete, or failed, is open until it has been received. */
void check_ready_ones(void)
{
	struct homa_rpc_info rpcs[4] = { 0 };
	struct homa_info info = { .rpc_info = rpcs,
				  .rpc_info_length = sizeof(rpcs) };
	struct sock s = open_sock(family, 0);
	uint64_t one, two;
	int i;

	fill(buf, 1000, 1);
	one = request(&s, &server, buf, 1000, 11, HOMA_SENDMSG_PRIVATE);
	for (i = 0; i < 2000 && !(rpcs[0].flags & HOMA_RPC_RX_READY); i++) {
		usleep(10000);
		CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
		CHECK(info.num_rpcs == 1, "%u RPCs", info.num_rpcs);
	}
	CHECK(rpcs[0].flags == (HOMA_RPC_RX_READY | HOMA_RPC_PRIVATE),
	      "flags %x", rpcs[0].flags);
	CHECK(rpcs[0].id == one && rpcs[0].completion_cookie == 11, "id");
	CHECK(rpcs[0].tx_length == 1000 && rpcs[0].rx_length == 1000 &&
		      !rpcs[0].rx_remaining,
	      "%d, %d bytes", rpcs[0].tx_length, rpcs[0].rx_length);
	CHECK(rpcs[0].peer.in4.sin_port == server.in4.sin_port, "peer");
	two = request(&s, &server, buf, 1000, 12, 0);
	CHECK(readable(s.fd, 20000), "no response");
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	CHECK(info.num_rpcs == 2, "%u RPCs", info.num_rpcs);
	CHECK(receive(&s, one, 0) == 1000 && s.args.id == one, "private");
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	CHECK(info.num_rpcs == 1 && rpcs[0].id == two, "%u RPCs", info.num_rpcs);
	CHECK(rpcs[0].flags == HOMA_RPC_RX_READY, "flags %x", rpcs[0].flags);
	CHECK(receive(&s, 0, 0) == 1000 && s.args.id == two, "shared");
	CHECK(open_rpcs(&s) == 0, "%u RPCs", open_rpcs(&s));
	close_sock(&s);
}

void check_failures(void)
{
	struct sock s = open_sock(family, 0);
	uint64_t id;

	id = request(&s, &nobody, buf, 10, 77, 0);
	FAILS(receive(&s, 0, 0), ENOTCONN);
	CHECK(s.args.id == id && s.args.completion_cookie == 77, "id, cookie");
	/* The kernel gives no name with a call that fails. */
	CHECK(in_kernel() || s.from.in4.sin_port == nobody.in4.sin_port, "port");
	id = request(&s, &nobody, buf, 10, 78, HOMA_SENDMSG_PRIVATE);
	FAILS(receive(&s, id, 0), ENOTCONN);
	CHECK(s.args.id == id && s.args.completion_cookie == 78, "id, cookie");
	FAILS(receive(&s, id, 0), EINVAL);
	sock_call(&s, 10, 1);
	close_sock(&s);
}

void check_many(void)
{
	struct mmsghdr msgs[3];
	struct homa_sendmsg_args out[3];
	struct homa_recvmsg_args in[3];
	struct iovec iov = { buf, 100 };
	struct sock s = open_sock(family, 0);
	int i, got = 0, n;

	memset(msgs, 0, sizeof(msgs));
	memset(out, 0, sizeof(out));
	memset(in, 0, sizeof(in));
	fill(buf, 100, 1);
	for (i = 0; i < 3; i++) {
		msgs[i].msg_hdr.msg_name = &server;
		msgs[i].msg_hdr.msg_namelen = size_of(family);
		msgs[i].msg_hdr.msg_iov = &iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
		msgs[i].msg_hdr.msg_control = &out[i];
	}
	CHECK(sendmmsg(s.fd, msgs, 3, 0) == 3 && out[2].id, "sendmmsg");
	while (got < 3) {
		memset(msgs, 0, sizeof(msgs));
		for (i = got; i < 3; i++) {
			msgs[i].msg_hdr.msg_control = &in[i];
			msgs[i].msg_hdr.msg_controllen = sizeof(in[i]);
		}
		n = recvmmsg(s.fd, msgs + got, (unsigned int)(3 - got),
			     MSG_WAITFORONE, NULL);
		CHECK(n > 0 && msgs[got].msg_len == 100, "recvmmsg %d", n);
		got += n;
	}
	close_sock(&s);
}

/*
 * Who runs the protocol is killed and started again meanwhile: an open request
 * fails, and the socket goes on when there is somebody again.
 */
void check_restart(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_sendmsg_args args = { 0 };
	double end = now() + 60;
	ssize_t n = -1;
	uint64_t id;

	sock_call(&s, 100000, 1);
	id = request(&s, &server, ignore, 1, 33, 0);
	printf("waiting\n");
	fflush(stdout);
	FAILS(receive(&s, 0, 0), ECONNRESET);
	CHECK(s.args.id == id && s.args.completion_cookie == 33, "id, cookie");
	while (n < 0 && now() < end) {
		args.id = 0;
		usleep(20000);
		if (!send_raw(s.fd, &server, size_of(family), "Eagain", 6,
			      &args, 0))
			n = receive(&s, 0, 0);
		CHECK(n == 6 || errno == ECONNREFUSED || errno == ENOTCONN ||
			      errno == ETIMEDOUT,
		      "%zd", n);
	}
	CHECK(n == 6, "did not come back");
	sock_call(&s, 100000, 2);
	close_sock(&s);
}
