/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Calls of 32-bit programs: bits32.c. */
#ifndef HOMA_BITS32_H
#define HOMA_BITS32_H

#include "homa_kernel.h"

#ifdef CONFIG_COMPAT
/** homak_compat_ioctl() - the ioctl() of a 32-bit program. */
int homak_compat_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);
/** homak_compat_region() - reads SO_HOMA_RCVBUF's value if a 32-bit program set it, and writes 0 or
 *  -EFAULT to @err; false: it is no such value, and nothing was done. */
bool homak_compat_region(sockptr_t value, unsigned int len,
			 struct homa_rcvbuf_args *args, int *err);
/** homak_compat_region_size() - makes @args what the program's call wants to read, and returns the
 *  bytes of that. */
int homak_compat_region_size(struct homa_rcvbuf_args *args);
#else
static inline bool homak_compat_region(sockptr_t value, unsigned int len,
				       struct homa_rcvbuf_args *args, int *err)
{
	return false;
}

static inline int homak_compat_region_size(struct homa_rcvbuf_args *args)
{
	return sizeof(*args);
}
#endif

#endif
