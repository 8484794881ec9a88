// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hostile lives with what several attachments have of TCP: listeners and their connections, tickets
 * and whoever redeems them, streams on their way to another process.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "hostile_streams.h"

/* Not the ports of servers beside. */
#define FIRST_PORT 6000u
#define PORTS 1000u
#define TICKETS 8u

static int closed(int fd)
{
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Sends a request with at most one descriptor, and waits for its answer. */
static int ask(struct raw_streams *s, const struct homa_ctl_request *request,
	       int passed, struct homa_ctl_answer *answer)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)request, sizeof(*request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[HOMA_CTL_ATTACH_FDS], i, rc;

	if (passed >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &passed, sizeof(int));
	}
	memset(answer, 0, sizeof(*answer));
	if (sendmsg(s->r.sock, &msg, MSG_NOSIGNAL) < 0)
		return -errno;
	rc = raw_hear(s->r.sock, answer, fds, HOMA_CTL_ATTACH_FDS);
	for (i = 0; i < (int)HOMA_CTL_ATTACH_FDS; i++)
		closed(fds[i]);
	return rc;
}

/* ---- listening ---- */

/* Returns a socket of TCP that is bound to @port, mostly as it should be, or -1. */
static int bound(struct hostile *h, uint16_t port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (below(h, 4) == 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (below(h, 3) == 0)
		memcpy(&name.sin_addr, h->ip + 12, 4);
	if (bind(fd, (struct sockaddr *)&name, sizeof(name))) {
		close(fd);
		return -1;
	}
	if (below(h, 20) == 0)
		listen(fd, 1);
	return fd;
}

/* Asks to listen at a port; returns the port, or 0 if homad refuses. */
static uint16_t listen_somewhere(struct hostile *h, struct raw_streams *s)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_STREAM_LISTEN);
	uint16_t port = (uint16_t)(FIRST_PORT + below(h, PORTS));
	struct homa_ctl_answer answer;
	int rc, fd = bound(h, port);

	request.bytes = below(h, 4) ? 1 + below(h, 20) : bits(h);
	if (below(h, 30) == 0)
		rc = ask(s, &request, s->r.sock, &answer);
	else
		rc = ask(s, &request, fd, &answer);
	closed(fd);
	if (rc)
		return 0;
	s->listener = answer.total;
	return port;
}

/* Gives the last connection back to the listener, if it came there and was not used. */
static void give_back(struct raw_streams *s)
{
	const struct raw_stream *last = s->num ? &s->mine[s->num - 1] : NULL;
	const struct homa_stream_slot *words =
		last ? raw_stream_words(last) : NULL;

	if (!last || last->end || last->read ||
	    words->local.port - FIRST_PORT >= PORTS)
		return;
	if (raw_stream_say(s, last, HOMA_STREAM_RETURN, 0))
		raw_stream_forget(s, s->num - 1);
}

/* Does something with a listener, or gives a connection back to it. */
static void tend(struct hostile *h, struct raw_streams *s)
{
	struct homa_stream_command c = { .slot = s->listener };

	switch (below(h, 8)) {
	case 0:
		c.op = HOMA_STREAM_BACKLOG;
		c.value = (uint32_t)bits(h);
		break;
	case 1:
		if (below(h, 20))
			return;
		c.op = HOMA_STREAM_UNLISTEN;
		if (raw_streams_give(s, &c))
			s->listener = 0;
		return;
	case 2:
	case 3:
		give_back(s);
		return;
	default:
		c.op = HOMA_STREAM_ACCEPT;
	}
	raw_streams_give(s, &c);
}

/* Listens, connects to itself, accepts what was not offered and gives it back. */
void live_stream_listen(struct hostile *h)
{
	uint32_t turns = 0, often = 1 + below(h, 400);
	struct homa_stream_command c;
	struct raw_streams s;
	uint16_t port = 0;

	hostile_streams_begin(h, &s);
	while (hostile_goes_on(h, &s, &turns)) {
		if (!s.listener || below(h, 500) == 0)
			port = listen_somewhere(h, &s);
		if (port && below(h, 4) == 0)
			hostile_connect(h, &s, port);
		if (s.listener && below(h, 2))
			tend(h, &s);
		if (below(h, often) == 0) {
			c = hostile_command(h, &s, 1);
			c.op = (uint16_t)(HOMA_STREAM_UNLISTEN + below(h, 6));
			raw_streams_give(&s, &c);
		}
		hostile_work(h, &s, port);
		hostile_hear(h, &s);
	}
	hostile_streams_end(h, &s);
}

/* ---- tickets ---- */

/* Returns a descriptor that may come with a request for a ticket; @kept receives what keeps the
 * ticket valid, or -1. */
static int ticket_descriptor(struct hostile *h, bool pass, int *kept)
{
	int ends[2] = { -1, -1 }, way = below(h, 8) ? SOCK_STREAM : SOCK_DGRAM;
	int rc = pass ? socketpair(AF_UNIX, way, 0, ends) : pipe(ends);

	*kept = rc ? -1 : ends[1];
	if (rc || below(h, 16))
		return ends[0];
	/* The wrong end, of a pipe at least. */
	*kept = ends[0];
	return ends[1];
}

/* Asks for a ticket. Returns true if there is one: @token, which the descriptor @kept keeps. */
static bool get_ticket(struct hostile *h, struct raw_streams *s,
		       uint8_t token[16], int *kept)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_STREAM_SHARE);
	bool pass = below(h, 4) == 0;
	struct homa_ctl_answer answer;
	int fd = ticket_descriptor(h, pass, kept), rc;

	request.bytes = below(h, 4) ? below(h, 8) :
				      bits(h) & ~(uint64_t)HOMA_CTL_FOR_PASS;
	if (pass) {
		request.bytes = HOMA_CTL_FOR_PASS | below(h, 64);
		request.pass.cookie = bits(h);
		request.pass.name = s->listener;
		if (s->num && below(h, 2))
			request.pass.name = (uint64_t)s->mine[0].generation
						    << 32 |
					    s->mine[0].slot;
		if (below(h, 8) == 0)
			request.pass.name = bits(h);
	}
	rc = ask(s, &request, fd, &answer);
	closed(fd);
	memcpy(token, answer.ip, 16);
	if (rc)
		*kept = closed(*kept);
	return !rc;
}

static void join(struct hostile *h, struct raw_streams *s,
		 const uint8_t token[16])
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_STREAM_JOIN);
	struct homa_ctl_answer answer;

	request.bytes = below(h, 4) ? 0 : bits(h);
	memcpy(request.ip, token, 16);
	if (below(h, 8) == 0)
		request.ip[below(h, 16)] ^= 1;
	ask(s, &request, -1, &answer);
}

/* Takes a lock of a stream that several have, or leaves it with a number of nobody. */
static void lock(struct hostile *h, const struct raw_streams *s)
{
	struct homa_stream_slot *words;

	if (!s->num)
		return;
	words = raw_stream_words(&s->mine[below(h, s->num)]);
	__atomic_store_n(below(h, 2) ? &words->rx_lock : &words->tx_lock,
			 below(h, 2) ? s->area->id : (uint32_t)bits(h),
			 __ATOMIC_SEQ_CST);
}

/* Parent and child in one process, each of which does what it likes with what both have: tickets
 * that nobody redeems, that their owner redeems, or who has joined already. */
void live_stream_share(struct hostile *h)
{
	int kept[TICKETS] = { -1, -1, -1, -1, -1, -1, -1, -1 };
	struct raw_streams parent, child, *s;
	uint32_t turns = 0, i;
	uint8_t token[16];
	uint16_t port;

	hostile_streams_begin(h, &parent);
	hostile_streams_begin(h, &child);
	child.mate = &parent;
	port = listen_somewhere(h, &parent);
	while (hostile_goes_on(h, &child, &turns)) {
		s = below(h, 2) ? &parent : &child;
		hostile_work(h, s, port);
		hostile_hear(h, s);
		if (below(h, 10) == 0)
			lock(h, s);
		if (s->listener && below(h, 4) == 0)
			tend(h, s);
		if (below(h, 100))
			continue;
		i = below(h, TICKETS);
		closed(kept[i]);
		if (get_ticket(h, below(h, 8) ? &parent : &child, token, &kept[i]))
			join(h, below(h, 8) ? &child : &parent, token);
		if (below(h, 20) == 0 && raw_evicted(&parent.r, 0))
			break;
	}
	/* What the other one still has lies in the memory of the first. */
	if (below(h, 2))
		hostile_streams_end(h, &child);
	hostile_streams_end(h, &parent);
	if (child.area)
		hostile_streams_end(h, &child);
}

/* ---- streams on their way ---- */

/* Makes a socket that stands for a stream, and the end of a connection to it that is for homad. */
static bool stand_in(int *stands, int *held)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(name.sun_family);

	*stands = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*held = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(*stands, (struct sockaddr *)&name, size))
		return false;
	size = sizeof(name);
	return !getsockname(*stands, (struct sockaddr *)&name, &size) &&
	       !listen(*stands, 1) &&
	       !connect(*held, (struct sockaddr *)&name, size);
}

/* Has homad hold what @from has for whoever shows @stands. */
static void pass(struct hostile *h, struct raw_streams *from, int stands, int held)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_STREAM_SHARE);
	socklen_t size = sizeof(request.pass.cookie);
	struct homa_ctl_answer answer;

	request.bytes = HOMA_CTL_FOR_PASS;
	getsockopt(stands, SOL_SOCKET, SO_COOKIE, &request.pass.cookie, &size);
	if (from->num && below(h, 4)) {
		const struct raw_stream *stream =
			&from->mine[below(h, from->num)];

		request.pass.name =
			(uint64_t)stream->generation << 32 | stream->slot;
	} else {
		request.bytes |= HOMA_CTL_PASS_LISTENER;
		request.pass.name = from->listener;
	}
	ask(from, &request, held, &answer);
}

/* Shows @stands, and remembers what comes. */
static void take(struct raw_streams *to, struct raw_streams *from, int stands)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_STREAM_TAKE);
	struct homa_ctl_answer answer;
	struct raw_stream *stream = &to->mine[to->num];

	if (ask(to, &request, stands, &answer) || to->num == RAW_STREAMS)
		return;
	if (answer.max_segments & HOMA_CTL_TAKEN_BEFORE)
		return;
	if (answer.max_segments & HOMA_CTL_TAKEN_LISTENER) {
		to->listener = answer.total;
		return;
	}
	if (answer.total >= to->num_slots || answer.max_rpcs >= from->num_slots)
		raw_die("homad gave slot %u, which lies in slot %u",
			answer.total, answer.max_rpcs);
	*stream = (struct raw_stream){ .slot = answer.total,
				       .generation = answer.segment,
				       .home = from,
				       .home_slot = answer.max_rpcs };
	stream->end = raw_stream_words(stream)->tx_end;
	stream->read = raw_stream_words(stream)->rx_read;
	stream->map = raw_stream_words(stream)->tx_map;
	to->num++;
}

/* Passes streams and listeners to and fro between two attachments, which both go on with them. */
void live_stream_pass(struct hostile *h)
{
	struct raw_streams one, other, *s;
	uint32_t turns = 0;
	int stands, held;
	uint16_t port;

	hostile_streams_begin(h, &one);
	hostile_streams_begin(h, &other);
	port = listen_somewhere(h, &one);
	while (hostile_goes_on(h, &other, &turns)) {
		s = below(h, 2) ? &one : &other;
		hostile_work(h, s, port);
		hostile_hear(h, s);
		if (s->listener && below(h, 4) == 0)
			tend(h, s);
		if (below(h, 60))
			continue;
		if (stand_in(&stands, &held)) {
			pass(h, &one, stands, held);
			if (below(h, 8))
				held = closed(held);
			if (below(h, 4))
				take(&other, &one, stands);
			if (below(h, 4) == 0)
				take(&one, &one, stands);
		}
		closed(stands);
		closed(held);
		if (below(h, 20) == 0 && raw_evicted(&one.r, 0))
			break;
	}
	if (below(h, 2))
		hostile_streams_end(h, &other);
	hostile_streams_end(h, &one);
	if (other.area)
		hostile_streams_end(h, &other);
}
