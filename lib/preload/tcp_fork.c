// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets that are still the kernel's when the process forks. Parent and child have one socket
 * then, and what the one connects the other reads and writes. homad could give the connection to
 * the one alone that has asked for it, so the kernel makes it. Listeners have such a socket, too.
 */
#include "internal.h"
#include "preload_sock.h"
#include "tcp.h"

/* This thread is in vfork(). */
static __thread bool vforks __attribute__((tls_model("initial-exec")));

void homa_pl_tcp_vforks(bool does)
{
	vforks = does;
}

bool homa_pl_tcp_in_vfork(void)
{
	return vforks;
}

void homa_pl_tcp_divide(void)
{
	struct homa_pl_sock *s;

	/* A child of vfork() is about to run another program, and does not connect. */
	if (vforks || homa_pl_inside())
		return;
	homa_pl_lock_list();
	for (s = homa_pl_all; s; s = s->next)
		if (s->tcp && (!s->tcp->stream || s->tcp->listens))
			s->tcp->forked = true;
	homa_pl_unlock_list();
}

void homa_pl_tcp_none_begins(void)
{
	struct homa_pl_sock *s;

	for (s = homa_pl_all; s; s = s->next)
		if (s->tcp)
			s->tcp->begins = false;
}
