/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the homads that tests make up have in common. Whatever goes wrong in them is the
 * test's mistake and ends it. */
#ifndef FAKE_PARTS_H
#define FAKE_PARTS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "homa_plat.h"
#include "shm.h"

#define must(cond)                                                          \
	do {                                                                \
		if (!(cond)) {                                              \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, \
				__LINE__, #cond, errno);                    \
			abort();                                            \
		}                                                           \
	} while (0)

/** fake_memory() - @bytes of shared memory; @mapping: a pointer that is set to it. Returns
 *  the descriptor. */
int fake_memory(void *mapping, u64 bytes);

/** fake_answer() - send @a with @num descriptors, which are closed. */
void fake_answer(int conn, const struct homa_ctl_answer *a, const int *fds,
		 u32 num);
/** fake_answer_of() - only the first @bytes of @a. */
void fake_answer_of(int conn, const struct homa_ctl_answer *a, size_t bytes,
		    const int *fds, u32 num);

#endif
