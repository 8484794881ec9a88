/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What differs when the TCP transports' connections are UNIX sockets: the
 * addresses, "@NAME" in the abstract namespace, so that nothing is left behind
 * in a file system, and the kind of socket.
 */
#ifndef HOMA_BENCH_UNIX_H
#define HOMA_BENCH_UNIX_H

#include "bench_transport.h"

/** Longest message on a packet socket: one read takes it whole. */
#define UNIX_PACKET_MAX 100000u

/** bench_is_unix() - do this configuration's transports use UNIX sockets? */
bool bench_is_unix(const struct bench_config *config);

/** bench_unix_type() - return SOCK_STREAM or SOCK_SEQPACKET */
int bench_unix_type(const struct bench_config *config);

/** bench_unix_resolve() - read "@NAME". Return: 0 or -EINVAL */
int bench_unix_resolve(const char *text, struct sockaddr_storage *addr,
		       uint32_t *addrlen);

#endif
