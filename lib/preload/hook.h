/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What hooks have in common: around every call on a Homa socket. */
#ifndef HOMA_PRELOAD_HOOK_H
#define HOMA_PRELOAD_HOOK_H

#include <errno.h>
#include "preload.h"
#include "real.h"

/**
 * homa_pl_begin() - before a call that uses libhoma
 * Threads are not cancelled inside: libhoma would be left half done.
 * Returns 0, then homa_pl_end() must follow, or an error.
 */
int homa_pl_begin(struct homa_pl_sock *s, int *cancel);
void homa_pl_end(int cancel);

/** homa_pl_result() - errno and -1 if @rc is an error; drops the reference. */
static inline int64_t homa_pl_result(struct homa_pl_sock *s, int64_t rc)
{
	homa_pl_put(s);
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

#endif
