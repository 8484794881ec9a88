/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What libhoma does for libhoma-preload besides libhoma.h: the socket API of the
 * kernel module has things that ours leaves out. Nothing here is exported; the
 * preload library has libhoma compiled in.
 */
#ifndef LIBHOMA_INTERNAL_H
#define LIBHOMA_INTERNAL_H

#include <homa/libhoma.h>
#include "shm.h"

/**
 * homa_internal_open() - homa_open() with messages arriving in @region
 * @region: options->rcvbuf bytes, aligned to a page of memory; what was there is
 *	lost. It stays valid until homa_close(), after which it is plain memory.
 *	NULL: as homa_open().
 */
int homa_internal_open(struct homa **out, const struct homa_options *options,
		       void *region);

/**
 * homa_internal_set_region() - let messages arrive elsewhere from now on
 * @region: as above, @bytes long, a multiple of 64 KiB; NULL: memory of the
 *	library's own. Errors: -EBUSY (messages were received, or RPCs are open).
 */
int homa_internal_set_region(struct homa *h, void *region, size_t bytes);

/** homa_internal_pages() - msg->iovcnt offsets, one for each piece, from the
 *  begin of the region. */
static inline const uint32_t *homa_internal_pages(const struct homa_message *msg)
{
	return (const uint32_t *)&msg->priv[0];
}

/**
 * homa_internal_release_pages() - homa_release() by offsets
 * Errors: -EINVAL, one of them was not out; the others are given back.
 */
int homa_internal_release_pages(struct homa *h, const uint32_t *pages,
				unsigned int num);

/** homa_internal_rpcs() - visit the open RPCs; returns how many, or an error. */
int homa_internal_rpcs(struct homa *h,
		       void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		       void *arg);

/**
 * homa_internal_listen() - take requests, or no longer: peers that send some hear
 * that nobody listens
 * @port: to become the server of, 0: the present port, also an automatic one. A
 *	handle that is bound moves.
 * @flags: HOMA_CTL_LISTEN_ON, HOMA_CTL_LISTEN_V4.
 * Errors: those of homa_bind(); -EACCES (homad's rules), -EOPNOTSUPP.
 */
int homa_internal_listen(struct homa *h, uint16_t port, unsigned int flags);

/** homa_internal_fd_edges() - from now on homa_fd() has an edge for each message. */
int homa_internal_fd_edges(struct homa *h);

/**
 * homa_internal_shutdown() - end all RPCs; calls that wait and later ones give
 * -ESHUTDOWN, homa_fd() is readable for ever; only homa_close() remains.
 */
int homa_internal_shutdown(struct homa *h);

#endif
