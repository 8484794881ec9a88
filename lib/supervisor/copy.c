// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Bytes between the program's pair of sockets and the stream. They go from the one's buffer into
 * the other's: what the program does not read stays in the stream's buffer, so the peer's window
 * closes; and while the peer takes nothing, the program's writes wait in the kernel.
 */
#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "supervisor.h"

/* The most bytes that are copied each way before other connections have their turn. */
#define TURN (256u << 10)
/* Of a process that may have a socket by fork(), the most children that are asked for it. */
#define CHILDREN 64

/* ---- a reset, as the program sees it ---- */

/* Send ourselves a byte from the program's end, if the process has it at that number. */
static bool sent_byte(const struct homa_sv_sock *s, pid_t process)
{
	int theirs = homa_sv_fetch_from(process, s->owner_fd);
	bool is_it;

	if (theirs < 0)
		return false;
	is_it = homa_sv_cookie(theirs) == s->cookie;
	if (is_it)
		send(theirs, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(theirs);
	return is_it;
}

/* The kernel lets the program's read() fail with ECONNRESET if we close our end while there are
 * bytes in it that we have not read. Its process is asked for its end, and then its children, which
 * may have it by fork(). */
static void leave_byte(const struct homa_sv_sock *s)
{
	char path[80];
	FILE *children;
	int child, n = 0;

	if (sent_byte(s, s->owner))
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)s->owner,
		 (int)s->owner);
	children = fopen(path, "re");
	while (children && n++ < CHILDREN && fscanf(children, "%d", &child) == 1)
		if (sent_byte(s, child))
			break;
	if (children)
		fclose(children);
}

static void reset(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	if (!s->closed && !s->has_tail && !s->was_reset)
		leave_byte(s);
	homa_sv_drop(sv, s);
}

/* A descriptor goes with our byte, so that it is found if it is not the last one. */
union rights {
	/* Its begin, which aligns it. */
	struct cmsghdr header;
	/* All of it. */
	char room[CMSG_SPACE(sizeof(int))];
};

static bool sent_tail(int theirs)
{
	const int nothing = STDIN_FILENO;
	union rights rights = { 0 };
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = &rights,
				  .msg_controllen = sizeof(rights) };

	rights.header.cmsg_level = SOL_SOCKET;
	rights.header.cmsg_type = SCM_RIGHTS;
	rights.header.cmsg_len = CMSG_LEN(sizeof(nothing));
	memcpy(CMSG_DATA(&rights.header), &nothing, sizeof(nothing));
	return sendmsg(theirs, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* The number of bytes that the program has written and we have not read. */
static size_t unread(const struct homa_sv_sock *s)
{
	int bytes = 0;

	return ioctl(s->end, SIOCINQ, &bytes) || bytes < 0 ? 0 : (size_t)bytes;
}

/* The kernel would let our byte through no more after shutdown(), so it is sent before. If there is
 * no room for it, there are bytes that we have not read. Another thread may write meanwhile. */
int homa_sv_shut(struct homa_sv_sock *s, int theirs, int how)
{
	size_t before;
	int rc;

	if (how != SHUT_WR || s->wrote_all || s->has_tail)
		return shutdown(theirs, how) ? -errno : 0;
	before = unread(s);
	s->has_tail = sent_tail(theirs);
	rc = shutdown(theirs, how) ? -errno : 0;
	s->is_within = s->has_tail && unread(s) != before + 1;
	return rc;
}

/* ---- from the program ---- */

/* The number of bytes that may be read, before ours. */
static size_t before_tail(const struct homa_sv_sock *s)
{
	size_t bytes = unread(s);

	return bytes ? bytes - 1 : 0;
}

/* Read what the program has written around our byte, which the kernel gives as the last one of a
 * read. */
static ssize_t read_around_tail(struct homa_sv_sock *s, struct iovec piece[2])
{
	union rights rights;
	struct msghdr message = { .msg_iov = piece,
				  .msg_iovlen = piece[1].iov_len ? 2 : 1 };
	ssize_t n;
	int fd;

	do {
		message.msg_control = &rights;
		message.msg_controllen = sizeof(rights);
		n = recvmsg(s->end, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n > 0 && message.msg_controllen) {
			if (message.msg_controllen >= CMSG_LEN(sizeof(fd))) {
				memcpy(&fd, CMSG_DATA(&rights.header),
				       sizeof(fd));
				close(fd);
			}
			s->has_tail = s->is_within = false;
			n--;
			/* It was alone; 0 would be the end. */
			if (!n)
				continue;
		}
		return n;
	} while (true);
}

static void limit(struct iovec piece[2], size_t most)
{
	if (piece[0].iov_len > most)
		piece[0].iov_len = most;
	if (piece[1].iov_len > most - piece[0].iov_len)
		piece[1].iov_len = most - piece[0].iov_len;
}

/* Take our own bytes away; false if the program has closed the socket. */
static bool take_junk(struct homa_sv_sock *s)
{
	static u8 nowhere[65536];
	ssize_t n;

	while (s->junk) {
		n = read(s->end, nowhere,
			 s->junk < sizeof(nowhere) ? s->junk : sizeof(nowhere));
		if (n <= 0)
			return false;
		s->junk -= (u32)n;
	}
	return true;
}

/* Returns true if there may be more to copy at once. */
static bool to_stream(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	struct iovec piece[2];
	size_t done = 0, room;
	ssize_t n;

	while (s->may_read && !s->wrote_all && done < TURN) {
		room = homa_stream_room(s->stream, piece);
		if ((ssize_t)room <= 0)
			return false;
		if (s->has_tail && !s->is_within)
			limit(piece, before_tail(s));
		n = s->is_within ?
			    read_around_tail(s, piece) :
		    piece[0].iov_len ?
			    readv(s->end, piece, piece[1].iov_len ? 2 : 1) :
			    0;
		if (n > 0) {
			homa_stream_written(s->stream, (size_t)n);
			sv->moved = true;
			done += (size_t)n;
			/* Less than there was room for: it was all, and the next brings an event,
			 * but for an end that was told of already. */
			if ((size_t)n < room && !s->ends)
				s->may_read = false;
		} else if (n == 0) {
			s->wrote_all = true;
			homa_stream_shutdown(s->stream);
		} else {
			s->may_read = false;
			/* The program has closed the socket and not read everything. */
			if (errno != EAGAIN)
				homa_sv_drop(sv, s);
		}
	}
	return done >= TURN;
}

/* ---- to the program ---- */

static bool from_stream(struct homa_supervisor *sv, struct homa_sv_sock *s,
			unsigned int ready)
{
	struct msghdr message = { 0 };
	struct iovec piece[2];
	size_t done = 0, bytes;
	ssize_t n;

	while (done < TURN) {
		bytes = homa_stream_arrived(s->stream, piece);
		if (!bytes)
			break;
		if (s->closed) {
			/* As TCP does when bytes come to a socket that is closed. */
			homa_sv_drop(sv, s);
			return false;
		}
		if (s->reads_no_more) {
			homa_stream_taken(s->stream, bytes);
			continue;
		}
		if (!s->may_write)
			return false;
		message.msg_iov = piece;
		message.msg_iovlen = piece[1].iov_len ? 2 : 1;
		n = sendmsg(s->end, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0) {
			homa_stream_taken(s->stream, (size_t)n);
			sv->moved = true;
			done += (size_t)n;
		} else if (errno == EAGAIN) {
			s->may_write = false;
		} else {
			s->reads_no_more = true;
		}
	}
	if (!bytes && (ready & HOMA_STREAM_EOF) && !s->told_end) {
		s->told_end = true;
		shutdown(s->end, SHUT_WR);
	}
	return done >= TURN;
}

/* ---- a reset that comes while the program does not read ---- */

/* Who waits until he can write wakes up and fails, also in poll(): so there has to be room. One
 * byte stays unread, for which see leave_byte(), and which the program cannot send us later. If
 * there is no room for it now, there are others. */
static void refuse_writes(struct homa_sv_sock *s)
{
	u8 nowhere[16384];
	size_t bytes;

	if (!s->has_tail)
		leave_byte(s);
	shutdown(s->end, SHUT_RD);
	while ((bytes = before_tail(s)) > 0 &&
	       read(s->end, nowhere,
		    bytes < sizeof(nowhere) ? bytes : sizeof(nowhere)) > 0)
		;
}

/* The pair may hold more now, as far as net.core.wmem_max lets it: most often all that has arrived,
 * so that the program's poll() tells of the reset at once. */
static void make_room(struct homa_sv_sock *s)
{
	const int most = INT_MAX / 2;
	int before = 0, after = 0;
	socklen_t size = sizeof(int);

	getsockopt(s->end, SOL_SOCKET, SO_SNDBUF, &before, &size);
	setsockopt(s->end, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	getsockopt(s->end, SOL_SOCKET, SO_SNDBUF, &after, &size);
	if (after < before) {
		/* The kernel doubles what is set. */
		before /= 2;
		setsockopt(s->end, SOL_SOCKET, SO_SNDBUF, &before,
			   sizeof(before));
	}
	s->may_write = true;
}

/* Bytes that have arrived before a reset are the program's, whenever it reads them. Returns true if
 * there may be more to copy at once. */
static bool reset_later(struct homa_sv_sock *s)
{
	if (s->was_reset)
		return false;
	s->was_reset = true;
	refuse_writes(s);
	make_room(s);
	homa_sv_debug("a connection was reset, and the program has not read all");
	return true;
}

/* Both directions have ended, or the program has closed the socket and its bytes are homad's. */
static bool is_over(const struct homa_sv_sock *s)
{
	return s->wrote_all && (s->closed || s->told_end);
}

void homa_sv_copy(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	struct iovec piece[2];
	unsigned int ready;
	bool more;
	char tail;

	if (s->dead || s->kind != HOMA_SV_OPEN || s->end < 0)
		return;
	if (s->closed &&
	    (s->resets ||
	     homa_sv_number(s->end, SOL_SOCKET, SO_ERROR, 0) == ECONNRESET)) {
		homa_sv_drop(sv, s);
		return;
	}
	/* Before the bytes are looked at: none comes after the end. */
	ready = homa_stream_ready(s->stream);
	more = from_stream(sv, s, ready);
	if (!s->dead && !(ready & HOMA_STREAM_ERROR))
		more |= to_stream(sv, s);
	if (s->dead)
		return;
	if (ready & HOMA_STREAM_ERROR) {
		if (s->closed || !homa_stream_arrived(s->stream, piece))
			reset(sv, s);
		else if (!s->may_write)
			more |= reset_later(s);
	} else if (is_over(s)) {
		if (s->has_tail && read(s->end, &tail, 1) != 1)
			homa_sv_debug("a byte is missing");
		homa_stream_set_user(s->stream, NULL);
		homa_stream_close(s->stream);
		s->stream = NULL;
		homa_sv_drop(sv, s);
		return;
	}
	if (more)
		homa_sv_turn(sv, s);
}

void homa_sv_opened(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	homa_list_del(&s->kin);
	s->kind = HOMA_SV_OPEN;
	sv->num_open++;
	if (!take_junk(s))
		homa_sv_drop(sv, s);
	else
		homa_sv_copy(sv, s);
}
