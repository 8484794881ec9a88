// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * exec and posix_spawn(): the program that is run has descriptors of sockets, but no memory that
 * says what they are. So before it runs, all that is known of TCP sockets goes into a sealed
 * memfd, together with a ticket of homad's that holds the streams (lib/stream/exec.c). The memfd
 * and the ticket's pipe lie at descriptors from FIRST_FD on, or just below the limit, where this
 * library finds them when it is loaded into the new program: an environment variable would not
 * come through system(), popen() or a program that clears its environment before.
 *
 * Which descriptors the new program has is asked of the kernel: sockets are known by their
 * inodes, so it does not matter what was closed, duplicated or had FD_CLOEXEC. Streams without
 * a descriptor are closed. The memfd is what a process tells itself or its child, and is
 * checked like anything else: homad says what a stream is. A program that runs with the rights
 * of another user (AT_SECURE) looks for none.
 *
 * A program that does not load this library gets nothing: its connections are reset, and its
 * listeners go on with the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "exec.h"
#include "exec_memory.h"
#include "hook.h"
#include "preload_sock.h"
#include "real.h"
#include "tcp.h"
#include "tcp_common.h"

#define MOST HOMA_PL_KEPT_MOST

/* ---- before the program runs ---- */

static bool keep(struct homa_pl_sock *s, int fd, struct homa_pl_kept *kept)
{
	const struct homa_pl_tcp *tcp = s->tcp;
	struct stat file;

	if (fstat(fd, &file))
		return false;
	homa_pl_tcp_fetch(s);
	*kept = (struct homa_pl_kept){
		.dev = file.st_dev,
		.ino = file.st_ino,
		.rcvtimeo = s->rcvtimeo,
		.sndtimeo = s->sndtimeo,
		.linger = tcp->linger,
		.least = tcp->least,
		.patience = tcp->patience,
		.family = s->family,
		.status = s->status,
		.options = tcp->options,
		.send_most = tcp->send_most,
		.open = tcp->open,
		.error_told = tcp->error_told,
		.shut_read = tcp->shut_read,
		.shut_write = tcp->shut_write,
		.common = tcp->common,
		.kernels = tcp->kernels,
		.forked = tcp->forked,
		.peek_from = tcp->peek_off < 0 ? 0 : (uint32_t)tcp->peek_off + 1,
	};
	kept->has_stream = tcp->stream && !tcp->stopped &&
			   homa_stream_carry(tcp->last, &kept->stream);
	return true;
}

/* Write what is known of all TCP sockets to @kept, which has room for MOST; returns how many. */
static uint32_t keep_all(struct homa_pl_kept *kept)
{
	uint32_t num = 0;
	int fd = -1;

	while (num < MOST && (fd = homa_pl_table_next(fd + 1)) >= 0) {
		struct homa_pl_sock *s = homa_pl_find(fd);

		if (!s)
			continue;
		num += s->tcp && keep(s, fd, &kept[num]);
		homa_pl_put(s);
	}
	return num;
}

/* Would the other program have a socket that is homad's? */
static bool passes_on(int how)
{
	bool any = false;
	int fd = -1;

	while (!any && homa_pl_live && (fd = homa_pl_table_next(fd + 1)) >= 0) {
		struct homa_pl_sock *s = homa_pl_find(fd);

		if (!s)
			continue;
		any = s->tcp && s->tcp->stream &&
		      ((how & HOMA_PL_ACTIONS) ||
		       !(HOMA_PL_REAL(fcntl)(fd, F_GETFD) & FD_CLOEXEC));
		homa_pl_put(s);
	}
	return any;
}

/* Move the descriptor to a number where the new program looks for it, without FD_CLOEXEC. */
static int move_up(int fd)
{
	int up = -1, first;
	unsigned int i;

	if (fd < 0)
		return -1;
	for (i = 0; up < 0 && (first = homa_pl_exec_fds(i)) >= 0; i++) {
		up = HOMA_PL_REAL(fcntl)(fd, F_DUPFD, first);
		if (up < first + HOMA_PL_EXEC_FDS)
			continue;
		/* The program has all of these numbers. */
		HOMA_PL_REAL(close)(up);
		up = -1;
	}
	HOMA_PL_REAL(close)(fd);
	return up;
}

static int write_memory(const struct homa_pl_memory *head,
			const struct homa_pl_kept *kept)
{
	size_t size = head->num * sizeof(*kept);
	int fd = memfd_create("homa-exec", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (HOMA_PL_REAL(write)(fd, head, sizeof(*head)) == sizeof(*head) &&
	    HOMA_PL_REAL(write)(fd, kept, size) == (ssize_t)size &&
	    !HOMA_PL_REAL(fcntl)(fd, F_ADD_SEALS, HOMA_PL_EXEC_SEALS))
		return move_up(fd);
	HOMA_PL_REAL(close)(fd);
	return -1;
}

static int write_all(const struct homa_streams_ticket *ticket, int pipe)
{
	const char *path = homa_pl_service_socket();
	struct homa_pl_memory head = { .magic = HOMA_PL_EXEC_MAGIC,
				       .size = sizeof(struct homa_pl_kept),
				       .pipe = pipe,
				       .tcp = homa_pl_tcp_is_on(),
				       .debug = getenv("HOMA_PRELOAD_DEBUG") !=
						NULL };
	struct homa_pl_kept *kept = calloc(MOST, sizeof(*kept));
	struct stat file;
	int fd = -1;

	memcpy(head.token, ticket->token, sizeof(head.token));
	if (kept && strlen(path) < sizeof(head.path) && !fstat(pipe, &file)) {
		strcpy(head.path, path);
		head.dev = file.st_dev;
		head.ino = file.st_ino;
		head.num = keep_all(kept);
		fd = write_memory(&head, kept);
	}
	free(kept);
	return fd;
}

/* Prepare a socket, which a program without this library is about to have, or undo that:
 * connections that nobody else has are reset when the attachment ends, and listeners that nobody
 * else has wait as the kernel's do. Returns whether there was something to do. */
static bool leave(struct homa_pl_sock *s, int fd, bool on)
{
	const struct homa_pl_tcp *tcp = s->tcp;

	if (!tcp || !tcp->stream ||
	    (HOMA_PL_REAL(fcntl)(fd, F_GETFD) & FD_CLOEXEC))
		return false;
	if (tcp->listens && !tcp->forked) {
		(on ? homa_pl_tcp_leave_listener : homa_pl_tcp_store_listener)(s);
		return true;
	}
	if (!tcp->open || tcp->listens || homa_stream_is_shared(tcp->last))
		return false;
	homa_stream_options(tcp->last, on ? tcp->options | HOMA_STREAM_RESET :
					    tcp->options);
	return true;
}

/* Do so for all sockets; true if there was one. */
static bool leave_all(bool on)
{
	bool any = false;
	int fd = -1;

	while (homa_pl_tcp_has_context() &&
	       (fd = homa_pl_table_next(fd + 1)) >= 0) {
		struct homa_pl_sock *s = homa_pl_find(fd);

		if (!s)
			continue;
		any |= leave(s, fd, on);
		homa_pl_put(s);
	}
	return any;
}

void homa_pl_exec_begin(struct homa_pl_exec *exec, const char *path,
			char *const *env, int how)
{
	struct homa_streams_ticket ticket;
	const char *why;

	*exec = (struct homa_pl_exec){ .memory = -1, .pipe = -1 };
	if (HOMA_PL_LIKELY(!homa_pl_live) || homa_pl_inside() || !passes_on(how))
		return;
	why = homa_pl_exec_refuses(path, env, how & HOMA_PL_SEARCHES);
	if (why && !(how & HOMA_PL_SPAWNS))
		exec->left = leave_all(true);
	if (why) {
		homa_pl_debug("%s does not get TCP connections: %s",
			      path ? path : "the program that is run", why);
		return;
	}
	if (how & HOMA_PL_ALONE)
		exec->alone = homa_pl_exec_lock();
	homa_pl_tcp_ticket(&ticket);
	exec->pipe = move_up(ticket.pipe);
	if (exec->pipe < 0)
		return;
	exec->memory = write_all(&ticket, exec->pipe);
}

void homa_pl_exec_end(struct homa_pl_exec *exec)
{
	int error = errno;

	if (exec->memory >= 0)
		HOMA_PL_REAL(close)(exec->memory);
	if (exec->pipe >= 0)
		HOMA_PL_REAL(close)(exec->pipe);
	if (exec->left)
		leave_all(false);
	if (exec->alone)
		homa_pl_exec_unlock();
	errno = error;
}
