// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* See homa_slice.h. */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "homa_slice.h"

/* struct policy - struct sched_attr of the kernel, as far as its first version goes */
struct policy {
	/* The size of this structure, bytes. */
	u32 size;
	/* SCHED_OTHER or another one. */
	u32 policy;
	/* SCHED_FLAG_*. */
	u64 flags;
	/* From -20 to 19. */
	int nice;
	/* Of real-time threads. */
	u32 priority;
	/* The slice of a thread of SCHED_OTHER, ns; 0: the kernel does not say. */
	u64 runtime;
	/* Of SCHED_DEADLINE, ns. */
	u64 deadline, period;
};

void homa_slice_set(u64 ns)
{
	struct policy p = { .size = sizeof(p) };
	int before = errno;

	if (!syscall(SYS_sched_getattr, 0, &p, sizeof(p), 0) &&
	    p.policy == SCHED_OTHER && (!p.runtime || p.runtime > ns)) {
		p.size = sizeof(p);
		p.runtime = ns;
		syscall(SYS_sched_setattr, 0, &p, 0);
	}
	errno = before;
}
