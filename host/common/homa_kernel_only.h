/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What homa-run's two ways, the library and the supervisor, have to know of the kernel's TCP
 * sockets: which options only the kernel can carry out, and which addresses are this host's.
 */
#ifndef HOMA_KERNEL_ONLY_H
#define HOMA_KERNEL_ONLY_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* Headers of the C library may be older. */
#ifndef TCP_AO_ADD_KEY
#define TCP_AO_ADD_KEY 38
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

/**
 * struct homa_kernel_option - an option, as for setsockopt()
 *
 * Written by: nobody; all are constants.
 */
struct homa_kernel_option {
	/* Where the option belongs, SOL_SOCKET or a protocol, and its number there. */
	int level, name;
};

/** homa_option_is_kernels() - can only the kernel do what the option asks for? */
static inline bool homa_option_is_kernels(int level, int name)
{
	static const struct homa_kernel_option options[] = {
		/* They decide which packets are of the socket at all. */
		{ SOL_SOCKET, SO_ATTACH_FILTER },
		{ SOL_SOCKET, SO_ATTACH_BPF },
		{ SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF },
		{ SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF },
		{ IPPROTO_IP, IP_MINTTL },
		{ IPPROTO_IPV6, IPV6_MINHOPCOUNT },
		{ IPPROTO_TCP, TCP_MD5SIG },
		{ IPPROTO_TCP, TCP_MD5SIG_EXT },
		{ IPPROTO_TCP, TCP_AO_ADD_KEY },
		/* They decide on the way that packets take. */
		{ SOL_SOCKET, SO_BINDTODEVICE },
		{ SOL_SOCKET, SO_BINDTOIFINDEX },
		{ SOL_SOCKET, SO_MARK },
		{ IPPROTO_IP, IP_OPTIONS },
		{ IPPROTO_IP, IP_TRANSPARENT },
		{ IPPROTO_IP, IP_IPSEC_POLICY },
		{ IPPROTO_IP, IP_XFRM_POLICY },
		{ IPPROTO_IPV6, IPV6_TRANSPARENT },
		{ IPPROTO_IPV6, IPV6_IPSEC_POLICY },
		{ IPPROTO_IPV6, IPV6_XFRM_POLICY },
		/* They change what is read and written. */
		{ IPPROTO_TCP, TCP_REPAIR },
		{ IPPROTO_TCP, TCP_ULP },
	};
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].level == level && options[i].name == name)
			return true;
	return false;
}

/** homa_option_says_something() - is any byte of the value not 0? If all are, the option is as it
 *  was at the begin. */
static inline bool homa_option_says_something(const void *value, size_t len)
{
	const unsigned char *bytes = value;
	size_t i;

	for (i = 0; bytes && i < len; i++)
		if (bytes[i])
			return true;
	return false;
}

/** homa_name_same_ip() - have two socket addresses, of IPv4 or IPv6, the same IP address? */
static inline bool homa_name_same_ip(const struct sockaddr *a,
				     const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)a)->sin_addr,
			       &((const struct sockaddr_in *)b)->sin_addr, 4);
	return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, 16);
}

/** homa_name_is_loopback() - is it an address of the loopback device? One of IPv4 may be in the
 *  form of IPv6. */
static inline bool homa_name_is_loopback(const struct sockaddr *name)
{
	static const unsigned char loopback[16] = { [15] = 1 };
	static const unsigned char mapped[13] = { [10] = 0xff, 0xff, 127 };

	if (name->sa_family == AF_INET)
		return *(const unsigned char *)&((const struct sockaddr_in *)name)
				->sin_addr == 127;
	return !memcmp(&((const struct sockaddr_in6 *)name)->sin6_addr,
		       loopback, 16) ||
	       !memcmp(&((const struct sockaddr_in6 *)name)->sin6_addr, mapped,
		       13);
}

/** homa_name_is_set() - has @name, as getsockname() told it, a port or an address? With
 *  IP_BIND_ADDRESS_NO_PORT bind() gives an address alone. */
static inline bool homa_name_is_set(const struct sockaddr_in6 *name)
{
	static const unsigned char none[16];

	/* The port is in the same place in both families. */
	if (name->sin6_port)
		return true;
	if (name->sin6_family == AF_INET)
		return ((const struct sockaddr_in *)name)->sin_addr.s_addr != 0;
	return memcmp(&name->sin6_addr, none, sizeof(none)) != 0;
}

#endif
