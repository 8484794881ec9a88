/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Between the socket addresses of the API and the engine's struct homa_addr.
 *
 * A socket address has an IP address and one port, the Homa port. The peer's
 * UDP encapsulation port, where it is not 54321, travels in a part of the
 * structure that programs copy but do not use; abi/homa_encap.h says where.
 */
#ifndef HOMA_SOCKADDR_H
#define HOMA_SOCKADDR_H

#include <netinet/in.h>
#include <sys/socket.h>
#include "homa_addr.h"

#define HOMA_ENCAP_PORT 54321u

/** homa_sockaddr_encap() - returns the encapsulation port kept in @sa; 0: none. */
u16 homa_sockaddr_encap(const struct sockaddr *sa);

/** homa_sockaddr_set_encap() - keep @port in @sa; 0 or 54321 removes it. */
void homa_sockaddr_set_encap(struct sockaddr *sa, u16 port);

/**
 * homa_sockaddr_to_addr() - take an API address apart
 * @encap: set @addr->encap to the kept port (default 54321) instead of 0.
 * @port: receives the Homa port, host order.
 * Returns 0 or -EAFNOSUPPORT.
 */
int homa_sockaddr_to_addr(const struct sockaddr *sa, bool encap,
			  struct homa_addr *addr, u16 *port);

/**
 * homa_sockaddr_from_addr() - make an API address; IPv4 becomes AF_INET
 * Only as much of @sa is written as its family needs.
 */
void homa_sockaddr_from_addr(struct sockaddr_storage *sa,
			     const struct homa_addr *addr, u16 port);

#endif
