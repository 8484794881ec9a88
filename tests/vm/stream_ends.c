// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams while they begin and when they end, with a server by hand, which answers when the
 * check wants: nothing here depends on how fast the kernel is.
 */
#include <endian.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include "cgroup.h"
#include "vm_stream.h"

/* ---- a server by hand ---- */

static struct liar *hand_listen(int port)
{
	struct liar *l = liar_new(port);

	bind_sock(&l->s, port);
	return l;
}

/* The client that begins to connect, with the OPEN that it has sent; the id of that. */
static uint64_t hand_connect(struct liar *l, int fd)
{
	const struct open *open;

	FAILS(connect(fd, &l->to.sa, size_of(family)), EINPROGRESS);
	CHECK(receive(&l->s, 0, 0) == HDR + sizeof(*open), "OPEN");
	memcpy(l->hdr, l->s.region + l->s.args.bpage_offsets[0],
	       HDR + sizeof(*open));
	open = (const struct open *)(l->hdr + 1);
	l->key = open->key;
	l->secret = open->secret;
	l->edge = be64toh(l->hdr->edge);
	l->to = l->s.from;
	return l->s.args.id;
}

/* Answers the request @id; OPEN with what the other end is called, other requests without. */
static void hand_answer(struct liar *l, uint64_t id, bool open)
{
	struct homa_sendmsg_args args = { .id = id };
	struct open *ours = (struct open *)(l->hdr + 1);

	liar_header(l, ANSWER, 0);
	*ours = (struct open){ .key = htonl(OURS_KEY),
			       .secret = htobe64(OURS_SECRET) };
	CHECK(!send_raw(l->s.fd, &l->to, size_of(family), l->buf,
			HDR + (open ? sizeof(*ours) : 0), &args, 0),
	      "answer");
}

/* Waits for a request without bytes, answers it and returns its header. */
static struct hdr hand_word(struct liar *l)
{
	struct hdr hdr;

	CHECK(receive(&l->s, 0, 0) == HDR, "it has bytes");
	memcpy(&hdr, l->s.region + l->s.args.bpage_offsets[0], HDR);
	CHECK(hdr.kind == DATA && hdr.key == htonl(OURS_KEY) &&
		      hdr.secret == htobe64(OURS_SECRET),
	      "it is none of ours");
	hand_answer(l, l->s.args.id, false);
	return hdr;
}

static void hand_end(struct liar *l)
{
	liar_end(l);
	quiet();
}

static void set(int fd, int level, int name, int value)
{
	CHECK(!setsockopt(fd, level, name, &value, sizeof(value)),
	      "option %d of level %d", name, level);
}

static int get_int(int fd, int level, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	CHECK(!getsockopt(fd, level, name, &value, &size), "option %d", name);
	return value;
}

/* Waits until @n bytes can be read. */
static void has_come(int fd, int n)
{
	int is = 0;

	while (!ioctl(fd, FIONREAD, &is) && is != n)
		usleep(1000);
	CHECK(is == n, "FIONREAD");
}

/* ---- beginnings ---- */

/* An idle peer is asked, whether a program sets that before it connects or after, and though it
 * does not ask connect() how that ended. */
static void keepalive(void)
{
	int before, fd;
	uint64_t id;

	for (before = 0; before < 2; before++) {
		struct liar *l = hand_listen(620);

		fd = stream_new(SOCK_NONBLOCK);
		set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
		if (before)
			set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
		id = hand_connect(l, fd);
		hand_answer(l, id, true);
		if (!before)
			set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
		CHECK(!hand_word(l).flags && !hand_word(l).flags, "no question");
		close(fd);
		while (hand_word(l).flags != htons(FIN))
			;
		hand_end(l);
	}
}

/* shutdown() ends an attempt to connect, as with TCP; the server, which has not heard of that
 * when it accepts, is told then. */
static void given_up(void)
{
	static const int hows[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hows); i++) {
		struct liar *l = hand_listen(621);
		int fd = stream_new(SOCK_NONBLOCK);
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		uint64_t id = hand_connect(l, fd);

		CHECK(poll(&p, 1, 0) == 0, "%x", p.revents);
		CHECK(!shutdown(fd, hows[i]), "shutdown");
		CHECK(poll(&p, 1, -1) == 1 && (p.revents & POLLERR), "%x",
		      p.revents);
		CHECK(get_int(fd, SOL_SOCKET, SO_ERROR) == ECONNRESET,
		      "another error");
		hand_answer(l, id, true);
		CHECK(hand_word(l).flags == htons(RESET), "no reset");
		close(fd);
		hand_end(l);
	}
}

/* Bytes that overtake the answer to OPEN, and are read before it comes: the peer, which has used
 * up what it may send, hears that it may go on. */
static void early(void)
{
	struct liar *l = hand_listen(622);
	int fd = stream_new(SOCK_NONBLOCK);
	uint64_t id = hand_connect(l, fd), edge = l->edge, at, n;

	for (at = 0; at < edge; at += n) {
		n = edge - at < 32768 ? edge - at : 32768;
		CHECK(liar_data(l, at, n, 0) == 0, "bytes at %llu",
		      (unsigned long long)at);
	}
	get(fd, 1, 0, edge, 32768);
	hand_answer(l, id, true);
	CHECK(be64toh(hand_word(l).edge) == 2 * edge, "another edge");
	CHECK(liar_data(l, edge, 1000, 0) == 0, "more bytes");
	get(fd, 1, edge, edge + 1000, 1000);
	close(fd);
	CHECK(hand_word(l).flags == htons(FIN), "no end");
	hand_end(l);
}

/* What a socket waits for is what accepted ones wait for, as with TCP. */
static void inherited(void)
{
	const struct linger reset = { .l_onoff = 1 };
	struct link l = { .listener = stream_listen(623, 8) };
	struct linger is = { 0 };
	socklen_t size = sizeof(is);

	CHECK(!setsockopt(l.listener, SOL_SOCKET, SO_LINGER, &reset,
			  sizeof(reset)),
	      "SO_LINGER");
	set(l.listener, SOL_SOCKET, SO_RCVLOWAT, 5);
	l.client = stream_connect(623);
	l.server = accept(l.listener, NULL, NULL);
	CHECK(!getsockopt(l.server, SOL_SOCKET, SO_LINGER, &is, &size) &&
		      is.l_onoff && !is.l_linger,
	      "SO_LINGER");
	CHECK(get_int(l.server, SOL_SOCKET, SO_RCVLOWAT) == 5, "SO_RCVLOWAT");
	close(l.server);
	l.server = -1;
	FAILS(recv(l.client, &size, 1, 0), ECONNRESET);
	link_down(&l);
	quiet();
}

/* ---- bytes that wait ---- */

/* poll() waits for as many bytes as SO_RCVLOWAT says, but not for more than can come. */
static void low_water(void)
{
	struct link l = link_up(624);
	struct pollfd p = { .fd = l.server, .events = POLLIN };

	set(l.server, SOL_SOCKET, SO_RCVLOWAT, 1000);
	put(l.client, 1, 0, 10, 10);
	has_come(l.server, 10);
	CHECK(poll(&p, 1, 0) == 0, "%x", p.revents);
	put(l.client, 1, 10, 1000, 990);
	CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLIN, "%x", p.revents);
	set(l.server, SOL_SOCKET, SO_RCVLOWAT, 1 << 30);
	put(l.client, 1, 1000, 250000, 50000);
	CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLIN, "%x", p.revents);
	get(l.server, 1, 0, 250000, 50000);
	link_down(&l);
	quiet();
}

static void *pour(void *fd)
{
	put((int)(intptr_t)fd, 1, 200000, 900000, 50000);
	return NULL;
}

/* Who may have no RPC more cannot tell the peer that there is room again: that is told later. */
static void no_rpc(void)
{
	struct liar *mute = hand_listen(627);
	struct link l = link_up(625);
	struct sock s = open_sock(family, 0);
	pthread_t thread;

	put(l.client, 1, 0, 200000, 50000);
	has_come(l.server, 200000);
	/* The only RPC that there may be is not answered. */
	request(&s, &mute->to, "x", 1, 0, 0);
	CHECK(!sysctl_set("max_rpcs", 1), "max_rpcs");
	get(l.server, 1, 0, 200000, 50000);
	FAILS(send(l.server, "x", 1, MSG_DONTWAIT), EAGAIN);
	CHECK(!sysctl_set("max_rpcs", 1000000), "max_rpcs");
	CHECK(!pthread_create(&thread, NULL, pour, (void *)(intptr_t)l.client),
	      "thread");
	get(l.server, 1, 200000, 900000, 50000);
	pthread_join(thread, NULL);
	put(l.server, 2, 0, 1000, 1000);
	get(l.client, 2, 0, 1000, 1000);
	link_down(&l);
	close_sock(&s);
	hand_end(mute);
}

/* A program that polls until it may send, while there may be no RPC, is told so now and then: not
 * at once, and not never. */
static void no_rpc_poll(void)
{
	struct liar *mute = hand_listen(629);
	struct link l = link_up(628);
	struct pollfd p = { .fd = l.server, .events = POLLOUT };
	struct sock s = open_sock(family, 0);
	int told = 0, i;

	/* The only RPC that there may be is not answered. */
	request(&s, &mute->to, "x", 1, 0, 0);
	CHECK(!sysctl_set("max_rpcs", 1), "max_rpcs");
	for (i = 0; i < 20; i++) {
		FAILS(send(l.server, "x", 1, MSG_DONTWAIT), EAGAIN);
		/* If this thread had to wait long enough in between, it is told at once. */
		told += poll(&p, 1, 0);
		CHECK(poll(&p, 1, 60000 * patience()) == 1, "poll forgets");
	}
	CHECK(told < 20, "poll always says that there is room");
	CHECK(!sysctl_set("max_rpcs", 1000000), "max_rpcs");
	put(l.server, 1, 0, 1000, 1000);
	get(l.client, 1, 0, 1000, 1000);
	link_down(&l);
	close_sock(&s);
	hand_end(mute);
}

/* What nobody will read takes no memory, though the peer does not answer the reset. */
static void unread(void)
{
	int listener, fd;
	struct liar *l;
	uint64_t at;

	cgroup_join();
	listener = stream_listen(626, 8);
	l = liar_new(626);
	liar_header(l, OPEN, 0);
	*(struct open *)(l->hdr + 1) = (struct open){
		.key = htonl(OURS_KEY),
		.secret = htobe64(OURS_SECRET),
	};
	CHECK(liar_ask(l, HDR + sizeof(struct open)) == 0, "open");
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0, "accept");
	for (at = 0; at < 200000; at += 20000)
		CHECK(liar_data(l, at, 20000, 0) == 0, "bytes");
	cgroup_becomes_charged("sock", 180000, 2000000);
	close(fd);
	cgroup_becomes_charged("sock", 0, 150000);
	CHECK(liar_data(l, at, 1000, 0) == ECONNRESET, "bytes were taken");
	close(listener);
	hand_end(l);
	cgroup_leave();
}

const struct check stream_ends[] = {
	{ "an idle peer is asked", keepalive },
	{ "an attempt to connect that is given up", given_up },
	{ "bytes before the connection", early },
	{ "SO_LINGER and SO_RCVLOWAT are inherited", inherited },
	{ "poll waits for SO_RCVLOWAT", low_water },
	{ "no RPC more", no_rpc },
	{ "no RPC more, and who polls", no_rpc_poll },
	{ "bytes that nobody will read", unread },
};
const size_t stream_num_ends = ARRAY_SIZE(stream_ends);
