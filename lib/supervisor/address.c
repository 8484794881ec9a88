// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Addresses in the program's memory. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "supervisor.h"

bool homa_sv_load_address(const struct homa_sv_call *call, u64 from, u64 len,
			  struct sockaddr_storage *to)
{
	memset(to, 0, sizeof(*to));
	return len >= sizeof(sa_family_t) && len <= sizeof(*to) &&
	       homa_sv_load(call, to, from, len);
}

/* The address of an IPv4 peer as a socket of AF_INET6 has it. */
static void map(struct sockaddr_in6 *to, const struct sockaddr_in *from)
{
	*to = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				     .sin6_port = from->sin_port };
	memset(&to->sin6_addr.s6_addr[10], 0xff, 2);
	memcpy(&to->sin6_addr.s6_addr[12], &from->sin_addr, 4);
}

int homa_sv_store_address(const struct homa_sv_call *call, int family,
			  const struct sockaddr_storage *address, u64 to,
			  u64 len_at)
{
	struct sockaddr_storage mapped = { 0 };
	u32 size = sizeof(struct sockaddr_in), room;

	if (!homa_sv_load(call, &room, len_at, sizeof(room)))
		return -EFAULT;
	if ((s32)room < 0)
		return -EINVAL;
	if (family == AF_INET6 && address->ss_family == AF_INET) {
		map((struct sockaddr_in6 *)&mapped,
		    (const struct sockaddr_in *)address);
		address = &mapped;
	}
	if (address->ss_family == AF_INET6)
		size = sizeof(struct sockaddr_in6);
	if (room > size)
		room = size;
	if ((room && !homa_sv_store(call, to, address, room)) ||
	    !homa_sv_store(call, len_at, &size, sizeof(size)))
		return -EFAULT;
	return 0;
}
