// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The card's other two sides: a TAP interface, at which the kernel has its addresses and sends
 * and receives what is not Homa, and the cable, an interface whose frames a packet socket sees.
 * The cable has no addresses and no ARP, so the kernel takes nothing there for itself.
 */
#include "card.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* The longest frame of an MTU of 1,500 with a VLAN tag, and the shortest of Ethernet. */
#define LONGEST 1518u
#define SHORTEST 60u

static int open_tap(struct card *c)
{
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = -1;

	c->tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", c->options.tap);
	/* It outlives a device that is killed, as a NIC's interface does, with its addresses. */
	if (c->tap >= 0 && sock >= 0 && !ioctl(c->tap, TUNSETIFF, &req) &&
	    !ioctl(c->tap, TUNSETPERSIST, 1)) {
		req.ifr_hwaddr.sa_family = ARPHRD_ETHER;
		memcpy(req.ifr_hwaddr.sa_data, c->options.mac, 6);
		rc = ioctl(sock, SIOCSIFHWADDR, &req);
	}
	if (!rc)
		rc = ioctl(sock, SIOCGIFFLAGS, &req);
	req.ifr_flags |= IFF_UP;
	if (!rc)
		rc = ioctl(sock, SIOCSIFFLAGS, &req);
	if (rc)
		perror("homa-card: cannot make the TAP interface");
	if (sock >= 0)
		close(sock);
	return rc;
}

int card_open_link(struct card *c)
{
	unsigned int index = if_nametoindex(c->options.link);
	struct sockaddr_ll name = { .sll_family = AF_PACKET,
				    .sll_protocol = htons(ETH_P_ALL),
				    .sll_ifindex = (int)index };
	struct packet_mreq promisc = { .mr_ifindex = (int)index,
				       .mr_type = PACKET_MR_PROMISC };
	int one = 1, bytes = 4 << 20;

	c->link = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(c->link, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	if (!index || c->link < 0 ||
	    setsockopt(c->link, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one,
		       sizeof(one)) ||
	    setsockopt(c->link, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc,
		       sizeof(promisc)) ||
	    bind(c->link, (struct sockaddr *)&name, sizeof(name))) {
		fprintf(stderr, "homa-card: cannot use %s as the cable: %s\n",
			c->options.link, strerror(index ? errno : ENODEV));
		return -1;
	}
	return open_tap(c);
}

/* Give the card a frame of @len bytes in @frame, which has room for SHORTEST. */
static bool give(struct card *c, enum model_input input, uint8_t *frame,
		 ssize_t len)
{
	if (len < ETHER_HDR_LEN || (size_t)len > LONGEST)
		return len >= 0;
	if ((size_t)len < SHORTEST) {
		memset(frame + len, 0, SHORTEST - (size_t)len);
		len = SHORTEST;
	}
	model_put(c->model, input, frame, (uint32_t)len, 0, 0);
	return true;
}

void card_close_link(struct card *c)
{
	(void)ioctl(c->tap, TUNSETPERSIST, 0);
	close(c->tap);
	close(c->link);
}

bool card_take(struct card *c)
{
	uint8_t frame[LONGEST + 1];
	bool moved = false;
	ssize_t len;

	if (model_takes(c->model, MODEL_OTHER)) {
		len = read(c->tap, frame, sizeof(frame));
		if (len >= ETHER_HDR_LEN)
			c->counts.kernel_out++;
		moved |= give(c, MODEL_OTHER, frame, len);
	}
	if (model_takes(c->model, MODEL_PORT)) {
		len = recv(c->link, frame, sizeof(frame), MSG_TRUNC);
		if (len >= ETHER_HDR_LEN && !(frame[0] & 1) &&
		    memcmp(frame, c->options.mac, 6))
			return true; /* It is for another card. */
		moved |= give(c, MODEL_PORT, frame, len);
	}
	return moved;
}

void card_to_link(struct card *c, const uint8_t *frame, uint32_t len)
{
	if (send(c->link, frame, len, MSG_DONTWAIT) != (ssize_t)len)
		c->counts.link_lost++;
}

void card_to_kernel(struct card *c, const uint8_t *frame, uint32_t len)
{
	if (write(c->tap, frame, len) == (ssize_t)len)
		c->counts.kernel_in++;
}
