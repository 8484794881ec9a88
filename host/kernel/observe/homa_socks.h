/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What homa.ko tells homa_diag.ko (inet_diag.c) of its sockets. */
#ifndef HOMA_SOCKS_H
#define HOMA_SOCKS_H

#include <linux/types.h>

struct inet_diag_msg;
struct net;
struct sock;

/**
 * homak_socks_walk() - calls @each for sockets of a namespace, in an RCU read side, until it
 * returns another value than 0. Returns that value, which is negative; 0 if there are no more
 * sockets; 1 if there are, and this call has looked at as many as it may.
 * @index: the number of sockets that are passed. It grows by those for which @each returned 0.
 */
int homak_socks_walk(struct net *net, u32 *index,
		     int (*each)(struct sock *sk, void *arg), void *arg);
/** homak_sock_show() - writes what the kernel does not know of a socket: the port, the peer that
 *  connect() named, and bytes that wait. RCU read side. */
void homak_sock_show(const struct sock *sk, struct inet_diag_msg *r);

#endif
