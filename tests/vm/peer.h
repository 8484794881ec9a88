/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A peer of the machine's two sockets: what the programs behind a tap (tap.h) do
 * with them in the same way, each in a conversation of its own.
 */
#ifndef TESTS_VM_PEER_H
#define TESTS_VM_PEER_H

#include "tap.h"

#define PORT 4000		      /* the machine's server socket */
#define PEER_PORT 5000		      /* a server of ours */
#define PATIENCE (20000 * patience()) /* ms, for what must come */
#define UNSCHED 20000u

extern struct sock sv, cl;
extern struct frame frame;
extern struct seen seen;

/** name_flavour() - "plain", "napi" or "frags". */
void name_flavour(const char *name);
/** open_socks() - the machine's server and client; close_socks() */
void open_socks(void);
void close_socks(void);
/** meet() - settings for a conversation in which nothing is hurried, the tap, the
 *  sockets. @resend_ticks: after which the machine asks for what is missing. */
void meet(long resend_ticks);
/** patient_timeout() - ticks of silence after which an RPC ends in such a conversation: the
 *  most that the setting takes where a check may take longer than elsewhere. */
long patient_timeout(void);
/** client_port() - of the machine's client. */
int client_port(void);
/** serve() - take request @id (as we name it) from the machine's server, others are dropped. */
void serve(uint64_t id, uint32_t size);
/** answer() - the machine's server responds to what serve() took. */
void answer(int peer, uint64_t id, const void *bytes, size_t size);
/** ask() - the machine's client sends us @size bytes, byte_at() each; its id. */
uint64_t ask(int peer, uint32_t size);
/** finish() - we respond to ask() by one packet of @size bytes, and the machine's client
 *  receives it. */
void finish(int peer, uint64_t id, uint32_t size);

#endif
