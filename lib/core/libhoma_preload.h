/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What libhoma does for libhoma-preload besides libhoma.h: the socket API of the
 * kernel module has things that ours leaves out. Nothing here is exported; the
 * preload library has libhoma compiled in.
 */
#ifndef LIBHOMA_PRELOAD_H
#define LIBHOMA_PRELOAD_H

#include <homa/libhoma.h>
#include "shm.h"

/**
 * homa_internal_open() - homa_open() with messages arriving in @region
 * @region: memory of options->rcvbuf bytes, aligned to a page; its content is lost. It must
 *	stay mapped until homa_close(), after which it is plain memory again. NULL means that
 *	the library takes memory of its own, as homa_open() does.
 */
int homa_internal_open(struct homa **out, const struct homa_options *options,
		       void *region);

/**
 * homa_internal_set_region() - let messages arrive elsewhere from now on
 * @region: memory as for homa_internal_open(), or NULL.
 * @bytes: the size of the region in bytes, a multiple of 64 KiB.
 * Errors: -EBUSY if messages were received or RPCs are open.
 */
int homa_internal_set_region(struct homa *h, void *region, size_t bytes);

/** homa_internal_pages() - the offset in bytes from the begin of the region of each of the
 *  msg->iovcnt pieces of a message. */
static inline const uint32_t *homa_internal_pages(const struct homa_message *msg)
{
	return (const uint32_t *)&msg->priv[0];
}

/**
 * homa_internal_release_pages() - give back pages of received messages by their offsets
 * Errors: -EINVAL if the program did not have one of them; the others are given back.
 */
int homa_internal_release_pages(struct homa *h, const uint32_t *pages,
				unsigned int num);

/** homa_internal_rpcs() - call @visit for each open RPC; returns how many, or an error. */
int homa_internal_rpcs(struct homa *h,
		       void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		       void *arg);

/**
 * homa_internal_listen() - begin or cease to take requests
 * Peers whose requests are not taken hear that nobody listens.
 * @port: the port to serve; a handle that is bound moves there. 0 means the present port,
 *	even one that was given automatically.
 * @flags: HOMA_CTL_LISTEN_ON, HOMA_CTL_LISTEN_V4.
 * Errors: those of homa_bind(); -EACCES if homad's rules forbid it; -EOPNOTSUPP.
 */
int homa_internal_listen(struct homa *h, uint16_t port, unsigned int flags);

/** homa_internal_fd_edges() - from now on the descriptor of homa_fd() signals each message. */
int homa_internal_fd_edges(struct homa *h);

/**
 * homa_internal_shutdown() - end all RPCs
 * Calls that wait and later calls return -ESHUTDOWN, and the descriptor of homa_fd() stays
 * readable. Only homa_close() can be called afterwards with success.
 */
int homa_internal_shutdown(struct homa *h);

#endif
