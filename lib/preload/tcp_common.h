/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * O_NONBLOCK, options and what is shut down of a connection, which several processes may have in
 * common.
 */
#ifndef HOMA_PRELOAD_TCP_COMMON_H
#define HOMA_PRELOAD_TCP_COMMON_H

#include "tcp.h"

/** homa_pl_tcp_fetch_common() - see homa_pl_tcp_fetch(). */
void homa_pl_tcp_fetch_common(struct homa_pl_sock *s);
/** homa_pl_tcp_fetch() - renew them, as another process may have changed them, before they are
 *  looked at. */
static inline void homa_pl_tcp_fetch(struct homa_pl_sock *s)
{
	if (!HOMA_PL_LIKELY(!s->tcp->common))
		homa_pl_tcp_fetch_common(s);
}
/** homa_pl_tcp_store_common() - let the other processes see them. */
void homa_pl_tcp_store_common(struct homa_pl_sock *s);
/** homa_pl_tcp_fetch_listener() - renew O_NONBLOCK and SO_RCVTIMEO of a socket that listens. */
void homa_pl_tcp_fetch_listener(struct homa_pl_sock *s);
/** homa_pl_tcp_seems_nonblocking() - is the kernel's socket of @s nonblocking, though the program
 *  wants it to wait? Another process listens at it by homad then. */
bool homa_pl_tcp_seems_nonblocking(const struct homa_pl_sock *s, int fd);
/** homa_pl_tcp_store_listener() - let the other processes that have it see its O_NONBLOCK. */
void homa_pl_tcp_store_listener(const struct homa_pl_sock *s);
/** homa_pl_tcp_leave_listener() - have O_NONBLOCK of the kernel's socket as the program wants it,
 *  for one without this library. */
void homa_pl_tcp_leave_listener(const struct homa_pl_sock *s);
/** homa_pl_tcp_share() - make them common for a connection that another process is about to get.
 *  The caller has homa_pl_tcp_lock(). */
void homa_pl_tcp_share(struct homa_stream *stream);
/** homa_pl_tcp_family() - AF_INET or AF_INET6: of which family is a socket whose connection is
 *  common? */
int homa_pl_tcp_family(const struct homa_stream *stream);
/** homa_pl_tcp_share_all() - make them common for all connections of @ctx, which another process is
 *  about to get. The caller has homa_pl_tcp_lock(). */
void homa_pl_tcp_share_all(struct homa_streams *ctx);

#endif
