// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Descriptors that this library has for TCP and of which the program knows nothing: the
 * connection to homad, and eventfds by which threads wake each other. Programs close
 * descriptors whose numbers they do not know, before they run another program or when they go
 * into the background, and take numbers of their choice by dup2(). So ours have numbers that
 * few programs want, and close() says of them what it would say without this library: that
 * there is no such descriptor.
 *
 * What exec.c leaves to another program lies at numbers that this library looks at when it is
 * loaded there.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "exec_memory.h"
#include "internal.h"
#include "real.h"

/* As many as the table of sockets has. */
#define MOST (1 << 20)
#define BITS 64
/* The memfd and the pipe are at descriptors from this number on, if the limit allows it. */
#define FIRST_FD 1000
/* The number of places for them: from FIRST_FD on, from twice that on, and so on. */
#define PLACES 11

/* A bit for each descriptor, 1 if it is ours. Access is atomic. */
static uint64_t own[MOST / BITS];
/* No descriptor from this number on has been ours. It is atomic, and only grows. */
static int end;

int homa_pl_exec_fds(unsigned int which)
{
	struct rlimit limit = { .rlim_cur = FIRST_FD + HOMA_PL_EXEC_FDS };
	rlim_t first = (rlim_t)FIRST_FD << which;
	int most;

	if (which >= PLACES)
		return -1;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= first + HOMA_PL_EXEC_FDS)
		return (int)first;
	if (which)
		return -1;
	most = (int)limit.rlim_cur;
	return most > HOMA_PL_EXEC_FDS ? most - HOMA_PL_EXEC_FDS : 0;
}

int homa_pl_exec_fd(void)
{
	return homa_pl_exec_fds(0);
}

bool homa_pl_is_own_fd(int fd)
{
	return fd >= 0 && fd < MOST &&
	       (__atomic_load_n(&own[fd / BITS], __ATOMIC_RELAXED) >> (fd % BITS) &
		1);
}

static void note(int fd)
{
	int before = __atomic_load_n(&end, __ATOMIC_RELAXED);

	__atomic_fetch_or(&own[fd / BITS], (uint64_t)1 << (fd % BITS),
			  __ATOMIC_RELAXED);
	while (before <= fd &&
	       !__atomic_compare_exchange_n(&end, &before, fd + 1, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Half of the numbers below those that exec() needs are the program's. */
static int first_number(void)
{
	return homa_pl_exec_fd() / 2;
}

int homa_pl_own_fd(int fd)
{
	int up;

	if (fd < 0 || fd >= MOST)
		return fd;
	up = fd < first_number() ?
		     HOMA_PL_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, first_number()) :
		     -1;
	if (up >= homa_pl_exec_fd()) {
		HOMA_PL_REAL(close)(up);
		up = -1;
	}
	if (up >= 0) {
		HOMA_PL_REAL(close)(fd);
		fd = up;
	}
	note(fd);
	return fd;
}

void homa_pl_close_own_fd(int fd)
{
	if (fd < 0)
		return;
	if (fd < MOST)
		__atomic_fetch_and(&own[fd / BITS], ~((uint64_t)1 << (fd % BITS)),
				   __ATOMIC_RELAXED);
	HOMA_PL_REAL(close)(fd);
}

int homa_pl_next_own_fd(int fd)
{
	int most = __atomic_load_n(&end, __ATOMIC_RELAXED);

	while (fd < most) {
		uint64_t bits =
			__atomic_load_n(&own[fd / BITS], __ATOMIC_RELAXED) >>
			(fd % BITS);

		if (bits)
			return fd + __builtin_ctzll(bits);
		fd = (fd / BITS + 1) * BITS;
	}
	return -1;
}
