// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP segments that leave as one unit. AF_XDP takes packets of the MTU only, and in copy mode the
 * kernel makes a buffer of each. Where the device cuts TCP itself (TSO), segments of one
 * connection that follow each other go through a packet socket as one packet of up to 64 KB with
 * a size to cut it to, as the kernel's TCP sends them. What cannot go so goes by the send ring.
 */
#include "afxdp.h"
#include "tcp_sum.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The most packets of a unit. */
#define UNIT_PACKETS 48
/* The longest unit, with IP header, in bytes. */
#define UNIT_BYTES 65535u
/* Bytes that wait in the packet socket at most, while the device has not sent them. */
#define UNIT_SNDBUF (4 << 20)
/* The number of units in a row that are refused before none are tried any more. */
#define UNIT_ERRORS 16u
/* Offsets in a TCP header, in bytes. */
#define SEQ_AT 4u
#define ACK_AT 8u
#define DOFF_AT 12u
#define FLAGS_AT 13u
#define WINDOW_AT 14u
#define OPTIONS_AT 20u
#define FLAG_FIN 0x01u
#define FLAG_PSH 0x08u
#define FLAG_CWR 0x80u

/** struct tcp_unit - packets that may leave together */
struct tcp_unit {
	/* The packets. */
	const struct nic_tx *pkts;
	/* Their number. */
	int n;
	/* The payload of all of them, in bytes. */
	u32 payload;
	/* The pieces of memory: struct virtio_net_hdr, the headers, and the payload. */
	struct iovec iov[UNIT_PACKETS + 2];
	/* The number of pieces. */
	u32 pieces;
};

/* Does the device cut TCP packets? */
static bool cuts_tcp(int fd, const char *name)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GTSO };
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	request.ifr_data = (void *)&value;
	return !ioctl(fd, SIOCETHTOOL, &request) && value.data;
}

void afxdp_units_open(struct afxdp *x)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_ifindex = (int)x->eth.netif.index };
	int one = 1, bytes = UNIT_SNDBUF;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	x->unit_fd = -1;
	if (fd < 0)
		return;
	/* Protocol 0: it receives nothing. */
	if (x->zero_copy || !cuts_tcp(fd, x->eth.netif.name) ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	x->unit_fd = fd;
}

void afxdp_units_close(struct afxdp *x)
{
	if (x->unit_fd >= 0)
		close(x->unit_fd);
	x->unit_fd = -1;
}

/* Do the two headers differ in nothing but sequence number, checksum and flags? */
static bool same_header(const struct nic_tx *a, const struct nic_tx *b)
{
	return a->hdr_len == b->hdr_len && a->hdr_len >= OPTIONS_AT &&
	       !memcmp(a->hdr, b->hdr, SEQ_AT) &&
	       !memcmp(a->hdr + ACK_AT, b->hdr + ACK_AT, FLAGS_AT - ACK_AT) &&
	       !memcmp(a->hdr + WINDOW_AT, b->hdr + WINDOW_AT,
		       NIC_TCP_CHECKSUM_AT - WINDOW_AT) &&
	       !memcmp(a->hdr + OPTIONS_AT, b->hdr + OPTIONS_AT,
		       a->hdr_len - OPTIONS_AT);
}

/* May @next leave in one unit behind @last, where all packets before have the size of @first? */
static bool follows(const struct nic_tx *first, const struct nic_tx *last,
		    const struct nic_tx *next)
{
	return next->proto == NIC_TCP && next->payload_len &&
	       next->payload_len <= first->payload_len &&
	       last->payload_len == first->payload_len &&
	       next->ecn == first->ecn && next->dscp == first->dscp &&
	       !(last->hdr[FLAGS_AT] & (FLAG_FIN | FLAG_PSH)) &&
	       !(next->hdr[FLAGS_AT] & FLAG_CWR) &&
	       homa_get_be32(next->hdr + SEQ_AT) ==
		       homa_get_be32(last->hdr + SEQ_AT) + last->payload_len &&
	       same_header(first, next) &&
	       !memcmp(first->dst.ip, next->dst.ip, sizeof(first->dst.ip)) &&
	       first->src && next->src &&
	       !memcmp(first->src->ip, next->src->ip, sizeof(first->src->ip));
}

bool afxdp_unit_begins(const struct nic_tx *pkts, int n)
{
	return pkts->proto == NIC_TCP && n > 1 && pkts->payload_len &&
	       follows(pkts, pkts, &pkts[1]);
}

/* Add the payload of a packet, which usually lies behind that of the one before. */
static void add_payload(struct tcp_unit *u, const struct nic_tx *pkt)
{
	struct iovec *last = &u->iov[u->pieces - 1];
	u8 *payload = (u8 *)(uintptr_t)pkt->payload;

	u->payload += pkt->payload_len;
	if (u->n && (u8 *)last->iov_base + last->iov_len == payload)
		last->iov_len += pkt->payload_len;
	else
		u->iov[u->pieces++] = (struct iovec){ payload, pkt->payload_len };
	u->n++;
}

/* Find the packets, from the first of @n on, that can leave together. */
static void find(struct tcp_unit *u, const struct nic_tx *pkts, int n)
{
	u32 room = UNIT_BYTES - NIC_IPV6_HLEN - pkts->hdr_len;

	u->pkts = pkts;
	u->n = 0;
	u->payload = 0;
	u->pieces = 2;
	if (n > UNIT_PACKETS)
		n = UNIT_PACKETS;
	add_payload(u, pkts);
	while (u->n < n && follows(pkts, &pkts[u->n - 1], &pkts[u->n]) &&
	       u->payload + pkts[u->n].payload_len <= room)
		add_payload(u, &pkts[u->n]);
}

/* Write the headers of the unit to @out; returns their length. */
static u32 put_headers(const struct nic_path *path, const struct tcp_unit *u,
		       u8 *out)
{
	const struct nic_tx *first = u->pkts, *last = &u->pkts[u->n - 1];
	struct nic_tx whole = *first;
	u8 *tcp = out + path->frame.len;
	u16 field;

	whole.payload_len = u->payload;
	nic_frame_build_tcp(&path->frame, out, &whole);
	memcpy(tcp, first->hdr, first->hdr_len);
	tcp[FLAGS_AT] |= last->hdr[FLAGS_AT] & (FLAG_FIN | FLAG_PSH);
	/* The device adds the rest to the sum of the pseudo-header. */
	field = nic_sum_fold(nic_sum_pseudo(first->src, &first->dst,
					    first->hdr_len + u->payload));
	memcpy(tcp + NIC_TCP_CHECKSUM_AT, &field, sizeof(field));
	return path->frame.len + first->hdr_len;
}

/* The kernel has not taken a unit. If it takes none, by reason of what they are, none are tried
 * any more. That an application's memory cannot be read is not the reason of others. */
static void refused(struct afxdp *x, int error)
{
	if (error != EINVAL && error != EMSGSIZE && error != EOPNOTSUPP &&
	    error != EPERM)
		return;
	if (++x->unit_errors == UNIT_ERRORS)
		afxdp_units_close(x);
}

int afxdp_unit(struct afxdp *x, const struct nic_path *path,
	       const struct nic_tx *pkts, int n)
{
	u8 headers[NIC_FRAME_HLEN_MAX + 60];
	struct virtio_net_hdr vnet = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM };
	struct tcp_unit u;
	struct msghdr msg = { .msg_iov = u.iov };

	find(&u, pkts, n);
	if (u.n < 2)
		return 0;
	vnet.gso_type = path->frame.v4 ? VIRTIO_NET_HDR_GSO_TCPV4 :
					 VIRTIO_NET_HDR_GSO_TCPV6;
	if (pkts->hdr[FLAGS_AT] & FLAG_CWR)
		vnet.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	vnet.gso_size = (u16)pkts->payload_len;
	vnet.csum_start = path->frame.len;
	vnet.csum_offset = NIC_TCP_CHECKSUM_AT;
	u.iov[0] = (struct iovec){ &vnet, sizeof(vnet) };
	u.iov[1].iov_base = headers;
	u.iov[1].iov_len = put_headers(path, &u, headers);
	vnet.hdr_len = (u16)u.iov[1].iov_len;
	msg.msg_iovlen = u.pieces;
	x->eth.nic.stats.syscalls++;
	if (sendmsg(x->unit_fd, &msg, MSG_DONTWAIT) < 0) {
		refused(x, errno);
		return 0;
	}
	x->unit_errors = 0;
	x->eth.nic.stats.tx_gso += (u32)u.n;
	x->eth.nic.stats.tx_packets += (u32)u.n;
	x->eth.nic.stats.tx_bytes += (u32)u.n * pkts->hdr_len + u.payload;
	return u.n;
}
