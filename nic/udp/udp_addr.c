// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Addresses between the engine's form and the socket's: a dual-stack socket
 * takes IPv4 peers as v4-mapped, which is the engine's form already.
 */
#include <arpa/inet.h>
#include <string.h>

#include "netif.h"
#include "udp.h"

socklen_t udp_to_sockaddr(const struct udp *u, const struct homa_addr *addr,
			  struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	u16 port = htons(addr->encap ? addr->encap : UDP_PORT);

	if (!u->v6) {
		memset(in, 0, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_port = port;
		memcpy(&in->sin_addr, addr->ip + 12, 4);
		return sizeof(*in);
	}
	memset(in6, 0, sizeof(*in6));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	memcpy(&in6->sin6_addr, addr->ip, 16);
	if (nic_addr_link_local(addr))
		in6->sin6_scope_id = u->scope;
	return sizeof(*in6);
}

void udp_from_sockaddr(const struct sockaddr_storage *ss, struct homa_addr *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;

	memset(addr, 0, sizeof(*addr));
	if (ss->ss_family == AF_INET6) {
		memcpy(addr->ip, &in6->sin6_addr, 16);
		addr->encap = ntohs(in6->sin6_port);
	} else {
		addr->ip[10] = 0xff;
		addr->ip[11] = 0xff;
		memcpy(addr->ip + 12, &in->sin_addr, 4);
		addr->encap = ntohs(in->sin_port);
	}
}
