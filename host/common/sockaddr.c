// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Socket addresses of the API to engine addresses and back; see
 * homa_sockaddr.h for where the encapsulation port is kept.
 */
#include <errno.h>
#include <string.h>
#include "../../abi/homa_encap.h"
#include "homa_sockaddr.h"

static const u8 v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

u16 homa_sockaddr_encap(const struct sockaddr *sa)
{
	u16 port = 0;

	if (sa->sa_family == AF_INET)
		homa_encap_in_zero(((const struct sockaddr_in *)sa)->sin_zero,
				   &port);
	else if (sa->sa_family == AF_INET6)
		homa_encap_in_flow(ntohl(((const struct sockaddr_in6 *)sa)
						 ->sin6_flowinfo),
				   &port);
	return port;
}

void homa_sockaddr_set_encap(struct sockaddr *sa, u16 port)
{
	if (port == HOMA_ENCAP_PORT)
		port = 0;
	if (sa->sa_family == AF_INET) {
		u8 *z = ((struct sockaddr_in *)sa)->sin_zero;

		memset(z, 0, 8);
		if (port)
			homa_encap_to_zero(z, port);
	} else if (sa->sa_family == AF_INET6) {
		((struct sockaddr_in6 *)sa)->sin6_flowinfo =
			port ? htonl(homa_encap_to_flow(port)) : 0;
	}
}

int homa_sockaddr_to_addr(const struct sockaddr *sa, bool encap,
			  struct homa_addr *addr, u16 *port)
{
	memset(addr, 0, sizeof(*addr));
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

		memcpy(addr->ip, v4_prefix, sizeof(v4_prefix));
		memcpy(addr->ip + 12, &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

		memcpy(addr->ip, &in6->sin6_addr, 16);
		*port = ntohs(in6->sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	if (encap) {
		u16 kept = homa_sockaddr_encap(sa);

		addr->encap = kept ? kept : HOMA_ENCAP_PORT;
	}
	return 0;
}

void homa_sockaddr_from_addr(struct sockaddr_storage *sa,
			     const struct homa_addr *addr, u16 port)
{
	if (homa_addr_is_v4(addr)) {
		struct sockaddr_in *in = (struct sockaddr_in *)sa;

		memset(in, 0, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr->ip + 12, 4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;

		memset(in6, 0, sizeof(*in6));
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, addr->ip, 16);
	}
	homa_sockaddr_set_encap((struct sockaddr *)sa, addr->encap);
}
