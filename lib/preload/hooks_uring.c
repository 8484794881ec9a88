// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * io_uring: the kernel serves its requests by itself, and knows nothing of what is homad's. So a
 * program whose TCP may be homad's hears that the kernel has no io_uring, and does without, as
 * programs that run on older kernels can. It is reached where the C library's syscall() makes
 * the call (libuv, Rust; hooks_syscall.c) and where liburing's functions are called; an instruction
 * in the program itself is not.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include "pl_signals.h"
#include "real.h"
#include "tcp.h"

/* These are liburing's, whose headers need not be there. */
int io_uring_setup(unsigned int entries, struct io_uring_params *params);
int io_uring_queue_init(unsigned int entries, struct io_uring *ring,
			unsigned int flags);
int io_uring_queue_init_params(unsigned int entries, struct io_uring *ring,
			       struct io_uring_params *params);
int io_uring_queue_init_mem(unsigned int entries, struct io_uring *ring,
			    struct io_uring_params *params, void *memory,
			    size_t bytes);

bool homa_pl_uring_denied(void)
{
	int before = errno;
	bool has;

	if (!homa_pl_tcp_wanted(AF_INET, SOCK_STREAM, 0))
		return false;
	homa_pl_hold();
	has = homa_pl_streams() != NULL;
	if (has)
		homa_pl_debug("io_uring is denied, as it would pass homad by");
	homa_pl_unhold();
	errno = before;
	return has;
}

HOMA_PL_HOOK int io_uring_setup(unsigned int entries,
				struct io_uring_params *params)
{
	if (!homa_pl_real.io_uring_setup || homa_pl_uring_denied())
		return -ENOSYS;
	return homa_pl_real.io_uring_setup(entries, params);
}

HOMA_PL_HOOK int io_uring_queue_init(unsigned int entries,
				     struct io_uring *ring, unsigned int flags)
{
	if (!homa_pl_real.io_uring_queue_init || homa_pl_uring_denied())
		return -ENOSYS;
	return homa_pl_real.io_uring_queue_init(entries, ring, flags);
}

HOMA_PL_HOOK int io_uring_queue_init_params(unsigned int entries,
					    struct io_uring *ring,
					    struct io_uring_params *params)
{
	if (!homa_pl_real.io_uring_queue_init_params || homa_pl_uring_denied())
		return -ENOSYS;
	return homa_pl_real.io_uring_queue_init_params(entries, ring, params);
}

HOMA_PL_HOOK int io_uring_queue_init_mem(unsigned int n, struct io_uring *ring,
					 struct io_uring_params *p, void *mem,
					 size_t size)
{
	if (!homa_pl_real.io_uring_queue_init_mem || homa_pl_uring_denied())
		return -ENOSYS;
	return homa_pl_real.io_uring_queue_init_mem(n, ring, p, mem, size);
}
