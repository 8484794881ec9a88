// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Which host runs the protocol. A forced host is used or is an error. "auto"
 * takes the kernel where its module is loaded, then homad where one can be
 * attached to, unless the program or the environment says something that is
 * theirs to decide: interface, address, UDP port, link rate, protocol settings.
 * Beyond that it must never surprise:
 * AF_XDP takes over Homa packets of an interface, so it is tried only when the
 * program or the environment names the interface, or a local address that
 * belongs to one; everything else goes over UDP, which needs nothing. Whatever
 * was not taken is told by homa_via_reason().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "libhoma_impl.h"

static const char *env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int same_address(const struct sockaddr *sa, int family, const void *ip)
{
	if (!sa || sa->sa_family != family)
		return 0;
	if (family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)sa)->sin_addr, ip,
			       4);
	return !memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, ip, 16);
}

/*
 * Find the interface that has @address. Returns 1 and its name, 0 if it is
 * the loopback interface or the unspecified address, or -EADDRNOTAVAIL.
 */
static int interface_of(const char *address, char *name, size_t size)
{
	static const char any[16];
	struct ifaddrs *list, *i;
	char ip[16];
	int family = strchr(address, ':') ? AF_INET6 : AF_INET;
	int rc = -EADDRNOTAVAIL;

	if (inet_pton(family, address, ip) != 1)
		return -EINVAL;
	if (!memcmp(ip, any, family == AF_INET ? 4 : 16))
		return 0;
	if (family == AF_INET && ip[0] == 127)
		return 0;
	if (getifaddrs(&list))
		return -errno;
	for (i = list; i; i = i->ifa_next) {
		if (!same_address(i->ifa_addr, family, ip))
			continue;
		rc = !(i->ifa_flags & IFF_LOOPBACK);
		if (rc)
			snprintf(name, size, "%s", i->ifa_name);
		break;
	}
	freeifaddrs(list);
	return rc;
}

static int find_interface(const char *interface, struct homa_choice *choice,
			  char *err, size_t errlen)
{
	int rc;

	if (interface) {
		if (strlen(interface) >= IFNAMSIZ || !if_nametoindex(interface)) {
			snprintf(err, errlen,
				 "there is no network interface '%s'; 'ip link' lists them",
				 interface);
			return -ENODEV;
		}
		snprintf(choice->interface, sizeof(choice->interface), "%s",
			 interface);
		return 1;
	}
	if (!choice->address)
		return 0;
	rc = interface_of(choice->address, choice->interface,
			  sizeof(choice->interface));
	if (rc == -EINVAL)
		snprintf(err, errlen,
			 "local address '%s' is not a numeric IPv4 or IPv6 address",
			 choice->address);
	else if (rc < 0)
		snprintf(err, errlen,
			 "no interface has the local address %s; 'ip addr' lists them",
			 choice->address);
	return rc;
}

static int choose_auto(int found, struct homa_choice *choice)
{
	if (found) {
		choice->via = "afxdp";
		choice->fallback = 1;
		return 0;
	}
	choice->via = "udp";
	if (choice->address)
		snprintf(choice->reason, sizeof(choice->reason),
			 "AF_XDP was not tried: %s is not the address of a network device",
			 choice->address);
	else
		snprintf(choice->reason, sizeof(choice->reason),
			 "AF_XDP was not tried: no interface and no local address was given");
	return 0;
}

/* True if nothing was asked for that a socket of the kernel or homad could not give. */
static int shared_will_do(const struct homa_options *options,
			  const char *interface, const char *address)
{
	return !interface && !address && !options->udp_port &&
	       !options->link_mbps && !env("HOMA_LINK_MBPS") &&
	       !options->config && !env("HOMA_CONFIG");
}

int homa_choose(const struct homa_options *options, struct homa_choice *choice,
		char *err, size_t errlen)
{
	const char *interface = options->interface;
	const char *via = options->via;
	int found;

	memset(choice, 0, sizeof(*choice));
	if (!via || !strcmp(via, "auto"))
		via = env("HOMA_VIA");
	if (!via)
		via = "auto";
	if (!interface)
		interface = env("HOMA_INTERFACE");
	choice->address =
		options->address ? options->address : env("HOMA_ADDRESS");

	/* libhoma-preload has no kernel backend: its socket() has asked the kernel already. */
	if (!strcmp(via, "kernel") && !homa_ksock_get())
		via = "auto";
	if (!strcmp(via, "kernel") || !strcmp(via, "service")) {
		choice->via = !strcmp(via, "kernel") ? "kernel" : "service";
		return 0;
	}
	if (strcmp(via, "auto") && strcmp(via, "afxdp") &&
	    strcmp(via, "message") && strcmp(via, "udp")) {
		snprintf(err, errlen,
			 "unknown host '%s'; use auto, kernel, service, afxdp, message or udp",
			 via);
		return -EINVAL;
	}
	found = find_interface(interface, choice, err, errlen);
	if (found < 0)
		return found;
	if (!strcmp(via, "auto")) {
		choice->try_service =
			shared_will_do(options, interface, choice->address);
		choice->try_kernel = choice->try_service && homa_ksock_get();
		return choose_auto(found, choice);
	}
	if (!strcmp(via, "udp")) {
		choice->via = "udp";
		return 0;
	}
	choice->via = !strcmp(via, "message") ? "message" : "afxdp";
	if (!found) {
		snprintf(err, errlen,
			 "%s needs a network device: name one in the option interface, by HOMA_INTERFACE, or by its local address",
			 choice->via);
		return -EINVAL;
	}
	return 0;
}
