/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a program tells the one that it runs: exec.c writes it, exec_after.c reads it. */
#ifndef HOMA_PRELOAD_EXEC_MEMORY_H
#define HOMA_PRELOAD_EXEC_MEMORY_H

#include <fcntl.h>
#include <stdint.h>
#include "stream_fork.h"

/* The memfd and the pipe are among so many descriptors from homa_pl_exec_fd() on. */
#define HOMA_PL_EXEC_FDS 24
#define HOMA_PL_EXEC_SEALS \
	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define HOMA_PL_EXEC_MAGIC 0x63657865616d6f68ull /* "homaexec" */
#define HOMA_PL_KEPT_MOST 8192u			 /* descriptors */

/* struct homa_pl_kept - a descriptor of a TCP socket, of which there may be several
 * @dev, @ino: the kernel's socket. The rest is as in homa_pl_sock and homa_pl_tcp. */
struct homa_pl_kept {
	uint64_t dev, ino;
	int64_t rcvtimeo, sndtimeo, linger;
	uint64_t least;
	struct homa_stream_carried stream;
	int32_t family, status;
	uint32_t options;
	uint8_t has_stream, open, error_told, shut_read, shut_write;
	uint8_t unused[3];
};

/* struct homa_pl_memory - the memfd begins with it, and entries of sockets follow
 * @size, @num: of these. @token: homad's ticket. @pipe: its pipe, and that's inode.
 * @tcp, @debug, @path: HOMA_TCP, HOMA_PRELOAD_DEBUG and HOMA_SERVICE_SOCKET. */
struct homa_pl_memory {
	uint64_t magic;
	uint32_t size, num;
	uint8_t token[16];
	uint64_t dev, ino;
	int32_t pipe;
	uint8_t tcp, debug;
	char path[108];
	uint8_t unused[2];
};

/** homa_pl_exec_fd() - the first of those descriptors. */
int homa_pl_exec_fd(void);

#endif
