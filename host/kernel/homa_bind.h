/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A socket's own name, and what follows from it: bind.c. */
#ifndef HOMA_BIND_H
#define HOMA_BIND_H

#include "homa_kernel.h"

void homak_use_first(struct homak_sock *hsk);
/** homak_use() - is called before the socket begins an RPC or lets others begin one. */
static inline void homak_use(struct homak_sock *hsk)
{
	if (unlikely(!READ_ONCE(hsk->used)))
		homak_use_first(hsk);
}

int homak_bind(struct socket *sock, homak_bind_addr *addr, int len);
int homak_getname(struct socket *sock, struct sockaddr *addr, int peer);
/** homak_rehash() - tells the engine the device that the socket is bound to; in any context. */
void homak_rehash(struct sock *sk);
/** homak_way_update() - sets hsk->way after something that it follows from has changed. */
void homak_way_update(struct homak_sock *hsk);

/** homak_port_note() - writes the port where the kernel and programs that look at sockets expect
 *  it. The socket is locked, or nobody else knows it yet. */
static inline void homak_port_note(struct homak_sock *hsk, u16 port)
{
	hsk->inet.inet_num = port;
	hsk->inet.inet_sport = htons(port);
}

#endif
