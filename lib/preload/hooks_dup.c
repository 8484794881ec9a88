// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hooks of the calls that duplicate descriptors. */
#include <errno.h>
#include <unistd.h>
#include "hook.h"
#include "internal.h"
#include "pl_signals.h"
#include "tcp.h"

HOMA_PL_HOOK int dup(int old)
{
	struct homa_pl_sock *s = homa_pl_find(old);

	if (!s)
		return HOMA_PL_REAL(dup)(old);
	return (int)homa_pl_result(s, homa_pl_dup(s, old, 0, false));
}

/* Do dup2() or dup3() of different numbers, at least one of which is a socket's of ours. */
static int dup_to(int old, int fd, int flags)
{
	struct homa_pl_sock *s = homa_pl_find(old), *before = homa_pl_find(fd);
	int rc;

	/* The socket that was behind @fd may end here, so signal handlers have to wait. */
	homa_pl_hold();
	if (before && before->tcp)
		homa_pl_tcp_leaves(before, fd);
	if (before)
		homa_pl_put(before);
	rc = homa_pl_dup_to(s, old, fd, flags);
	if (s)
		homa_pl_put(s);
	homa_pl_unhold();
	if (rc >= 0) {
		homa_pl_stdio_replaced(fd);
		return rc;
	}
	errno = -rc;
	return -1;
}

static bool of_homa(int fd)
{
	struct homa_pl_sock *s = homa_pl_find(fd);

	if (s)
		homa_pl_put(s);
	return s != NULL;
}

/* Is @fd one of our own descriptors, which the program would replace? */
static bool is_in_use(int fd)
{
	if (HOMA_PL_LIKELY(!homa_pl_is_own_fd(fd)))
		return false;
	errno = EBUSY;
	return true;
}

HOMA_PL_HOOK int dup2(int old, int fd)
{
	if (old != fd && is_in_use(fd))
		return -1;
	if (old == fd || fd < 0 || (!of_homa(old) && !of_homa(fd)))
		return HOMA_PL_REAL(dup2)(old, fd);
	return dup_to(old, fd, 0);
}

HOMA_PL_HOOK int dup3(int old, int fd, int flags)
{
	if (old != fd && is_in_use(fd))
		return -1;
	if (old == fd || fd < 0 || (!of_homa(old) && !of_homa(fd)))
		return HOMA_PL_REAL(dup3)(old, fd, flags);
	return dup_to(old, fd, flags);
}
