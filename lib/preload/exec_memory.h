/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a program tells the one that it runs. Written by: exec.c, in the program before,
 * which seals it; read by: exec_after.c, in the one after it. */
#ifndef HOMA_PRELOAD_EXEC_MEMORY_H
#define HOMA_PRELOAD_EXEC_MEMORY_H

#include <fcntl.h>
#include <stdint.h>
#include "stream_fork.h"

/* The number of descriptors, from each homa_pl_exec_fds() on, among which the memfd is looked
 * for. */
#define HOMA_PL_EXEC_FDS 24
#define HOMA_PL_EXEC_SEALS \
	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define HOMA_PL_EXEC_MAGIC 0x63657865616d6f68ull /* "homaexec" */
#define HOMA_PL_KEPT_MOST 8192u			 /* descriptors of sockets */

/**
 * struct homa_pl_kept - what is known of the socket behind a descriptor. A socket with several
 *	descriptors has several of these.
 * @dev: the device by which the kernel's socket is known (fstat()).
 * @ino: the inode by which it is known, together with @dev.
 * @rcvtimeo: how long a receive waits in ns (SO_RCVTIMEO); -1 for ever.
 * @sndtimeo: how long sending waits in ns (SO_SNDTIMEO); -1 for ever.
 * @linger: how long close() waits until the peer has everything in ns (SO_LINGER); -1 for ever.
 * @least: the number of bytes of SO_RCVLOWAT.
 * @stream: where homad finds the stream, if @has_stream is 1.
 * @family: AF_INET or AF_INET6.
 * @status: O_NONBLOCK or 0.
 * @options: a set of HOMA_STREAM_NODELAY and the like.
 * @send_most: the number of bytes of SO_SNDBUF, 0 if it was not set.
 * @patience: how long the socket waits for a silent peer, as far as the program has said that.
 * @has_stream: 1 if the socket is homad's, 0 if it is the kernel's.
 * @open: 1 if the connection is open, and the program knows it.
 * @error_told: 1 if the program has heard why the connection failed.
 * @shut_read: 1 if the program has shut it down for reading.
 * @shut_write: 1 if the program has shut it down for writing.
 * @common: 1 if another process has or had the connection, too.
 * @kernels: 1 if the socket has an option that homad does not know.
 * @forked: 1 if a process has forked while the socket was the kernel's or a listener.
 * @peek_from: 1 more than SO_PEEK_OFF, 0 if it is not set.
 */
struct homa_pl_kept {
	uint64_t dev, ino;
	int64_t rcvtimeo, sndtimeo, linger;
	uint64_t least;
	struct homa_stream_carried stream;
	int32_t family, status;
	uint32_t options, send_most;
	struct homa_patience patience;
	uint8_t has_stream, open, error_told, shut_read, shut_write, common;
	uint8_t kernels, forked;
	uint32_t peek_from;
};

/* struct homa_pl_memory - the begin of the memfd, behind which entries of sockets follow */
struct homa_pl_memory {
	/* HOMA_PL_EXEC_MAGIC. */
	uint64_t magic;
	/* The size of an entry in bytes, and the number of entries. */
	uint32_t size, num;
	/* The token of homad's ticket. */
	uint8_t token[16];
	/* The device and the inode of the ticket's pipe. */
	uint64_t dev, ino;
	/* The descriptor of the ticket's pipe. */
	int32_t pipe;
	/* 1 if HOMA_TCP is "on"; 1 if HOMA_PRELOAD_DEBUG is set. */
	uint8_t tcp, debug;
	/* The value of HOMA_SERVICE_SOCKET, or "". */
	char path[108];
	/* Zeros, so that all bytes of the struct have a value. */
	uint8_t unused[2];
};

/** homa_pl_exec_fd() - the first descriptor at which the memfd and the pipe may be. */
int homa_pl_exec_fd(void);
/** homa_pl_exec_fds() - the first descriptor of each place where they may be: 0 is the first
 *  place, the others are for programs that have all numbers of those before; -1 if there are no
 *  more. */
int homa_pl_exec_fds(unsigned int which);

#endif
