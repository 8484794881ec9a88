// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Addresses as text: "10.0.0.1:4000", "[fd00::1]:4000", either with
 * "/40001" behind it when the peer's UDP encapsulation port is not 54321.
 * IPv6 link-local addresses may carry a zone: "[fe80::1%eth0]:4000".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "homa_sockaddr.h"
#include "libhoma_impl.h"

/* A number from 1 to 65535 that ends at @end; 0 if it is not one. */
static unsigned int parse_port(const char *text, char end, const char **rest)
{
	char *stop;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return 0;
	value = strtoul(text, &stop, 10);
	if ((*stop != end && *stop) || value == 0 || value > 65535)
		return 0;
	*rest = stop;
	return (unsigned int)value;
}

/* Split "[fd00::1]:..." or "10.0.0.1:..."; returns what follows the colon. */
static const char *split_host(const char *text, char *host, size_t size,
			      int *bracketed)
{
	const char *start = text, *end;

	*bracketed = *text == '[';
	if (*bracketed) {
		start++;
		end = strchr(start, ']');
		if (!end || end[1] != ':')
			return NULL;
	} else {
		end = strchr(start, ':');
		if (!end)
			return NULL;
	}
	if ((size_t)(end - start) >= size)
		return NULL;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	return end + (*bracketed ? 2 : 1);
}

static int parse_ip(char *host, int bracketed, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	char *zone;

	if (!bracketed) {
		in->sin_family = AF_INET;
		return inet_pton(AF_INET, host, &in->sin_addr) == 1 ? 0 : -EINVAL;
	}
	in6->sin6_family = AF_INET6;
	zone = strchr(host, '%');
	if (zone) {
		*zone++ = '\0';
		in6->sin6_scope_id = if_nametoindex(zone);
		if (in6->sin6_scope_id == 0)
			return -EINVAL;
	}
	return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
}

int homa_parse_address(const char *text, struct sockaddr_storage *addr)
{
	unsigned int port, encap = 0;
	const char *rest;
	char host[80];
	int bracketed;

	if (!text || !addr)
		return homa_fail(
			NULL, -EINVAL,
			"homa_parse_address: no text or no place for the address");
	memset(addr, 0, sizeof(*addr));
	rest = split_host(text, host, sizeof(host), &bracketed);
	if (!rest || parse_ip(host, bracketed, addr))
		goto bad;
	port = parse_port(rest, '/', &rest);
	if (!port)
		goto bad;
	if (*rest == '/') {
		encap = parse_port(rest + 1, '\0', &rest);
		if (!encap)
			goto bad;
	}
	/* sin_port and sin6_port are in the same place. */
	((struct sockaddr_in *)addr)->sin_port = htons((uint16_t)port);
	homa_sockaddr_set_encap((struct sockaddr *)addr, (uint16_t)encap);
	return 0;
bad:
	memset(addr, 0, sizeof(*addr));
	return homa_fail(NULL, -EINVAL,
			 "address '%s': write 10.0.0.1:4000 or [fd00::1]:4000, with /PORT behind it for a UDP port other than %u",
			 text, HOMA_ENCAP_PORT);
}

char *homa_format_address(const struct sockaddr_storage *addr, char *text,
			  size_t size)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	char ip[INET6_ADDRSTRLEN], zone[IF_NAMESIZE + 1] = "", encap[8] = "";
	unsigned int port;

	if (!text || !size)
		return text;
	port = homa_sockaddr_encap((const struct sockaddr *)addr);
	if (port)
		snprintf(encap, sizeof(encap), "/%u", port);
	if (addr->ss_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
		snprintf(text, size, "%s:%u%s", ip, ntohs(in->sin_port), encap);
	} else if (addr->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
		if (in6->sin6_scope_id) {
			zone[0] = '%';
			if (!if_indextoname(in6->sin6_scope_id, zone + 1))
				zone[0] = '\0';
		}
		snprintf(text, size, "[%s%s]:%u%s", ip, zone,
			 ntohs(in6->sin6_port), encap);
	} else {
		snprintf(text, size, "(no address)");
	}
	return text;
}
