// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A program begins that was run by one with TCP sockets: see exec.c. This happens before main(),
 * in one thread.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include "exec_memory.h"
#include "hook.h"
#include "internal.h"
#include "preload_sock.h"
#include "real.h"
#include "tcp.h"

#define ALL_OPTIONS                                                       \
	(HOMA_STREAM_NODELAY | HOMA_STREAM_CORK | HOMA_STREAM_KEEPALIVE | \
	 HOMA_STREAM_RESET)

/* struct found - what a memfd says, and what of it is here */
struct found {
	/* The begin of the memfd. */
	struct homa_pl_memory head;
	/* The entries of the memfd, one for each descriptor of the former program. */
	struct homa_pl_kept *kept;
	/* For each entry the stream that homad has given, or NULL. */
	struct homa_stream **streams;
	/* The descriptors of these sockets that this process has. */
	int *fds;
	/* @of: for each of @fds the index of its entry. @num: the number of @fds. */
	uint32_t *of, num;
};

/* ---- reading ---- */

static bool is_sound(const struct homa_pl_memory *head, off_t size)
{
	return head->magic == HOMA_PL_EXEC_MAGIC &&
	       head->size == sizeof(struct homa_pl_kept) && head->num &&
	       head->num <= HOMA_PL_KEPT_MOST &&
	       size == (off_t)(sizeof(*head) +
			       head->num * sizeof(struct homa_pl_kept)) &&
	       !head->path[sizeof(head->path) - 1];
}

static bool is_possible(const struct homa_pl_kept *kept)
{
	return (kept->family == AF_INET || kept->family == AF_INET6) &&
	       !(kept->status & ~SOCK_NONBLOCK) &&
	       !(kept->options & ~(unsigned int)ALL_OPTIONS) &&
	       !(kept->stream.options & ~(unsigned int)ALL_OPTIONS) &&
	       homa_patience_possible(&kept->patience) &&
	       kept->rcvtimeo >= -1 && kept->sndtimeo >= -1 &&
	       kept->linger >= -1 && kept->stream.listens <= 1;
}

static bool read_memory(int fd, struct found *found)
{
	struct homa_pl_memory *head = &found->head;
	struct stat file;
	uint32_t i;
	size_t size;

	if (HOMA_PL_REAL(fcntl)(fd, F_GET_SEALS) != HOMA_PL_EXEC_SEALS ||
	    fstat(fd, &file) ||
	    pread(fd, head, sizeof(*head), 0) != sizeof(*head) ||
	    !is_sound(head, file.st_size))
		return false;
	size = head->num * sizeof(*found->kept);
	found->kept = malloc(size);
	found->streams = calloc(head->num, sizeof(struct homa_stream *));
	found->fds = calloc(HOMA_PL_KEPT_MOST, sizeof(int));
	found->of = calloc(HOMA_PL_KEPT_MOST, sizeof(uint32_t));
	if (!found->kept || !found->streams || !found->fds || !found->of ||
	    pread(fd, found->kept, size, sizeof(*head)) != (ssize_t)size)
		return false;
	for (i = 0; i < head->num; i++)
		if (!is_possible(&found->kept[i]))
			return false;
	return true;
}

/* Add @fd to the list if it is one of the sockets. */
static void enlist(struct found *found, int fd)
{
	struct stat file;
	uint32_t i;

	if (fstat(fd, &file) || !S_ISSOCK(file.st_mode) ||
	    found->num == HOMA_PL_KEPT_MOST)
		return;
	for (i = 0; i < found->head.num; i++) {
		if (found->kept[i].ino != file.st_ino ||
		    found->kept[i].dev != file.st_dev)
			continue;
		found->fds[found->num] = fd;
		found->of[found->num++] = i;
		return;
	}
}

static void enlist_all(struct found *found)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd;

	if (!folder) {
		for (fd = 0; fd < homa_pl_exec_fd(); fd++)
			enlist(found, fd);
		return;
	}
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			enlist(found, atoi(entry->d_name));
	closedir(folder);
}

/* ---- going on ---- */

/* Get the streams that have descriptors here from homad; the others are closed. */
static int join(struct found *found)
{
	uint32_t i, num = 0, *from = calloc(found->num, sizeof(*from));
	struct homa_stream_carried *list = calloc(found->num, sizeof(*list));
	struct homa_stream **streams =
		calloc(found->num, sizeof(struct homa_stream *));
	const char *path = *found->head.path ? found->head.path : NULL;
	bool *has = calloc(found->head.num, sizeof(*has));
	struct homa_streams *ctx;
	int rc = -ENOMEM;

	if (!from || !list || !streams || !has)
		goto out;
	for (i = 0; i < found->num; i++) {
		uint32_t of = found->of[i];

		if (has[of] || !found->kept[of].has_stream)
			continue;
		has[of] = true;
		from[num] = of;
		list[num++] = found->kept[of].stream;
	}
	rc = homa_streams_after_exec(&ctx, path, found->head.token, list, num,
				     streams);
	if (rc)
		goto out;
	for (i = 0; i < num; i++)
		found->streams[from[i]] = streams[i];
	homa_pl_tcp_go_on(ctx);
	homa_pl_debug("goes on with %u TCP sockets of the program before", num);
out:
	free(from);
	free(list);
	free(streams);
	free(has);
	return rc;
}

static void fill(struct homa_pl_sock *s, int fd, const struct homa_pl_kept *kept)
{
	struct homa_pl_tcp *tcp = s->tcp;

	s->rcvtimeo = kept->rcvtimeo;
	s->sndtimeo = kept->sndtimeo;
	tcp->linger = kept->linger;
	tcp->least = kept->least;
	tcp->peek_off = (int32_t)(kept->peek_from - 1);
	tcp->options = kept->options;
	tcp->patience = kept->patience;
	tcp->send_most = kept->send_most;
	tcp->inlines = homa_pl_tcp_inlines(fd);
	tcp->kernels = kept->kernels != 0;
	tcp->forked = kept->forked != 0;
	if (!tcp->stream)
		return;
	tcp->open = kept->open != 0;
	tcp->error_told = kept->error_told != 0;
	tcp->shut_read = kept->shut_read != 0;
	tcp->shut_write = kept->shut_write != 0;
	tcp->common = kept->common != 0;
	if (!kept->stream.listens) {
		homa_pl_tcp_limit(s);
		return;
	}
	tcp->open = false;
	tcp->listens = true;
	/* Whoever has run this program may have it, too. */
	tcp->forked = true;
	tcp->fd = homa_pl_own_fd(HOMA_PL_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 0));
}

/* Make a socket for every descriptor. */
static void adopt(const struct found *found)
{
	struct homa_pl_sock **socks =
		calloc(found->head.num, sizeof(struct homa_pl_sock *));
	uint32_t i;

	for (i = 0; socks && i < found->num; i++) {
		uint32_t of = found->of[i];
		const struct homa_pl_kept *kept = &found->kept[of];

		if (kept->has_stream && !found->streams[of])
			continue;
		if (socks[of]) {
			homa_pl_add_fd(socks[of], found->fds[i]);
			continue;
		}
		socks[of] = homa_pl_tcp_adopt(found->fds[i], kept->family,
					      kept->status, found->streams[of]);
		if (socks[of])
			fill(socks[of], found->fds[i], kept);
	}
	free(socks);
}

/* Set the variables again that the former program had and may have cleared. */
static void restore_environment(const struct homa_pl_memory *head)
{
	if (head->tcp)
		setenv("HOMA_TCP", "on", 0);
	if (head->debug)
		setenv("HOMA_PRELOAD_DEBUG", "1", 0);
	if (*head->path)
		setenv("HOMA_SERVICE_SOCKET", head->path, 0);
}

/* Close the ticket's pipe, if it is certainly that. */
static void close_pipe(const struct homa_pl_memory *head)
{
	struct stat file;

	if (head->pipe >= homa_pl_exec_fd() && !fstat(head->pipe, &file) &&
	    file.st_ino == head->ino && file.st_dev == head->dev)
		HOMA_PL_REAL(close)(head->pipe);
}

/* Go on with the sockets of the memfd @fd; false if it is none, or there were no sockets. If
 * @closes, it and its pipe are only closed. */
static bool go_on(int fd, bool closes)
{
	struct found found = { .num = 0 };
	bool rc = read_memory(fd, &found);

	if (rc) {
		HOMA_PL_REAL(close)(fd);
		restore_environment(&found.head);
		if (!closes)
			enlist_all(&found);
		rc = found.num && !join(&found) && homa_pl_sleeper_fd() >= 0;
		if (rc)
			adopt(&found);
		if (rc)
			homa_pl_stdio_begin();
		close_pipe(&found.head);
	}
	free(found.kept);
	free(found.streams);
	free(found.fds);
	free(found.of);
	return rc;
}

__attribute__((constructor)) static void begin(void)
{
	unsigned int which;
	bool done = false;
	int first, i;

	/* A program with rights that its caller has not takes nothing from the caller. */
	if (getauxval(AT_SECURE))
		return;
	/* There may be several, if other threads of the caller ran programs at the same time. */
	for (which = 0; (first = homa_pl_exec_fds(which)) >= 0; which++)
		for (i = first; i < first + HOMA_PL_EXEC_FDS; i++)
			if (HOMA_PL_REAL(fcntl)(i, F_GET_SEALS) ==
				    HOMA_PL_EXEC_SEALS &&
			    go_on(i, done))
				done = true;
}
