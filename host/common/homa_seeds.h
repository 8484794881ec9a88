/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* An engine's secrets, from the kernel's generator. */
#ifndef HOMA_SEEDS_H
#define HOMA_SEEDS_H

#include <errno.h>
#include <sys/random.h>
#include "homa_types.h"

/** homa_seeds_draw() - draws the secrets of an engine; 0 or -errno. */
static inline int homa_seeds_draw(struct homa_seeds *seeds)
{
	ssize_t n = getrandom(seeds, sizeof(*seeds), 0);

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(*seeds) ? 0 : -EIO;
}

#endif
