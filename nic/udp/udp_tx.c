// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sending UDP: consecutive packets to one peer, of one size and priority,
 * become one message with UDP_SEGMENT, so that the kernel walks its stack once
 * for up to 64 of them; several messages go in one sendmmsg(). Header and
 * payload are gathered by the kernel from where they are.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "frame.h"
#include "udp.h"

/* The most packets that nic_tx_room() tells; the socket buffer limits what is sent. */
#define ROOM 1024
/* The number of times that a packet is tried again while errors about others come. */
#define TRIES 3

int udp_tx_room(struct nic *nic)
{
	(void)nic;
	return ROOM;
}

static u32 packet_len(const struct nic_tx *pkt)
{
	return pkt->hdr_len + pkt->payload_len;
}

/* The number of packets from @pkts[0] on that can share a message. */
static int bundle_len(const struct udp *u, const struct nic_tx *pkts, int n)
{
	u32 seg = packet_len(&pkts[0]);
	u32 bytes = seg;
	int i;

	if (!u->gso)
		return 1;
	for (i = 1; i < n && i < UDP_GSO_SEGS; i++) {
		u32 len = packet_len(&pkts[i]);

		if (len > seg || bytes + len > UDP_GSO_BYTES ||
		    pkts[i].prio != pkts[0].prio ||
		    !homa_addr_equal(&pkts[i].dst, &pkts[0].dst))
			break;
		bytes += len;
		if (len < seg)
			return i + 1; /* only the last may be shorter */
	}
	return i;
}

static void *add_control(struct msghdr *mh, int level, int type, size_t len)
{
	struct cmsghdr *c =
		(struct cmsghdr *)((u8 *)mh->msg_control + mh->msg_controllen);

	memset(c, 0, CMSG_SPACE(len));
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	mh->msg_controllen += CMSG_SPACE(len);
	return CMSG_DATA(c);
}

static void add_source(struct msghdr *mh, const struct homa_addr *src)
{
	if (homa_addr_is_v4(src)) {
		struct in_pktinfo info = { 0 };

		memcpy(&info.ipi_spec_dst, src->ip + 12, 4);
		memcpy(add_control(mh, IPPROTO_IP, IP_PKTINFO, sizeof(info)),
		       &info, sizeof(info));
	} else {
		struct in6_pktinfo info = { 0 };

		memcpy(&info.ipi6_addr, src->ip, 16);
		memcpy(add_control(mh, IPPROTO_IPV6, IPV6_PKTINFO, sizeof(info)),
		       &info, sizeof(info));
	}
}

static void set_control(struct udp *u, struct msghdr *mh,
			const struct nic_tx *pkt, int count)
{
	const struct homa_addr *src = udp_route_source(u, &pkt->dst);
	int tos = pkt->prio << 5;

	if (src)
		add_source(mh, src);

	if (homa_addr_is_v4(&pkt->dst))
		memcpy(add_control(mh, IPPROTO_IP, IP_TOS, sizeof(tos)), &tos,
		       sizeof(tos));
	else
		memcpy(add_control(mh, IPPROTO_IPV6, IPV6_TCLASS, sizeof(tos)),
		       &tos, sizeof(tos));
	if (count > 1) {
		u16 seg = (u16)packet_len(pkt);

		memcpy(add_control(mh, IPPROTO_UDP, UDP_SEGMENT, sizeof(seg)),
		       &seg, sizeof(seg));
	}
}

static void add_message(struct udp *u, const struct nic_tx *pkts, int first,
			int count)
{
	struct udp_batch *b = &u->batch;
	struct msghdr *mh = &b->hdrs[b->n].msg_hdr;

	memset(mh, 0, sizeof(*mh));
	mh->msg_name = &b->names[b->n];
	mh->msg_namelen = udp_to_sockaddr(u, &pkts[first].dst, &b->names[b->n]);
	mh->msg_iov = &b->iovs[b->n_iovs];
	mh->msg_control = b->control[b->n];
	b->bytes[b->n] = 0;
	for (int i = first; i < first + count; i++) {
		struct iovec *iov = &b->iovs[b->n_iovs];

		iov[0].iov_base = (void *)pkts[i].hdr;
		iov[0].iov_len = pkts[i].hdr_len;
		iov[1].iov_base = (void *)pkts[i].payload;
		iov[1].iov_len = pkts[i].payload_len;
		b->n_iovs += pkts[i].payload_len ? 2 : 1;
		b->bytes[b->n] += packet_len(&pkts[i]);
	}
	mh->msg_iovlen = (size_t)(&b->iovs[b->n_iovs] - mh->msg_iov);
	set_control(u, mh, &pkts[first], count);
	b->first[b->n] = first;
	b->count[b->n] = count;
	b->n++;
}

/* Send one packet without GSO, to find out what a refusal was about. */
static int send_plain(struct udp *u, const struct nic_tx *pkt)
{
	struct sockaddr_storage name;
	_Alignas(8) u8 control[UDP_TX_CONTROL];
	struct iovec iov[2] = {
		{ (void *)pkt->hdr, pkt->hdr_len },
		{ (void *)pkt->payload, pkt->payload_len },
	};
	struct msghdr mh = {
		.msg_name = &name,
		.msg_namelen = udp_to_sockaddr(u, &pkt->dst, &name),
		.msg_iov = iov,
		.msg_iovlen = pkt->payload_len ? 2 : 1,
		.msg_control = control,
	};

	set_control(u, &mh, pkt, 1);
	u->nic.stats.syscalls++;
	return sendmsg(u->fd, &mh, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* The errors that the kernel makes of ICMP errors. It also returns the first OF_ROUTES of them for
 * a packet itself, if there is no route, or none for packets of its length. */
static const int of_icmp[] = {
	-EHOSTUNREACH, -ENETUNREACH, -EMSGSIZE, -EACCES, -ECONNREFUSED,
	-ENOPROTOOPT,  -EHOSTDOWN,   -ENONET,	-EPROTO, -EOPNOTSUPP,
};
#define OF_ROUTES 4u

static bool among(int error, u32 first_ones)
{
	u32 i;

	for (i = 0; i < first_ones; i++)
		if (of_icmp[i] == error)
			return true;
	return false;
}

static bool may_be_icmp(int error)
{
	return among(error, HOMA_ARRAY_SIZE(of_icmp));
}

/*
 * Is @error, with which the kernel refused @pkt, about @pkt? If not, 0 is returned. The kernel
 * reports an ICMP error about an earlier packet in place of sending the next one, whatever its
 * destination. If there are many, one may come between any two calls.
 */
static int own_error(struct udp *u, const struct nic_tx *pkt, int error)
{
	u32 head = homa_addr_is_v4(&pkt->dst) ? NIC_IPV4_HLEN : NIC_IPV6_HLEN;
	u32 mtu = u->nic.info.mtu;
	int rc;

	if (!may_be_icmp(error))
		return error;
	if (!among(error, OF_ROUTES))
		return 0;
	udp_route_forget(u, &pkt->dst);
	rc = udp_route(&u->nic, &pkt->dst, &mtu);
	if (!rc && error == -EMSGSIZE && packet_len(pkt) + head > mtu)
		rc = error;
	return rc;
}

/* Does @error say that the packet may be sent later? ENOBUFS is said of the device's queue, and the
 * socket is writable all the same, so nobody may wait for that: the caller tries again after a
 * while. */
static bool is_full(struct udp *u, int error)
{
	u->blocked = error == -EAGAIN;
	return error == -EAGAIN || error == -ENOBUFS;
}

/*
 * A message was refused. The error may be about an earlier packet, so each packet is
 * tried again by itself. That also shows whether the device cannot do GSO (EIO, EINVAL)
 * or a packet was too large. A packet that only errors about others keep back is lost.
 * Returns how many packets of the message were dealt with.
 */
static int retry(struct udp *u, const struct nic_tx *pkts, int count, int error)
{
	bool gso_refused = count > 1 && (error == -EIO || error == -EINVAL);

	udp_take_errors(u);
	for (int i = 0; i < count; i++) {
		int rc = send_plain(u, &pkts[i]);

		for (int tries = 0; tries < TRIES && may_be_icmp(rc); tries++) {
			udp_take_errors(u);
			rc = send_plain(u, &pkts[i]);
		}
		if (is_full(u, rc))
			return i;
		if (rc == -EMSGSIZE)
			gso_refused = false;
		if (!rc) {
			u->nic.stats.tx_packets++;
			u->nic.stats.tx_bytes += packet_len(&pkts[i]);
			continue;
		}
		rc = own_error(u, &pkts[i], rc);
		if (rc)
			udp_refuse(u, &pkts[i], -rc, 0);
		else
			u->nic.stats.tx_errors++;
	}
	if (gso_refused) {
		u->gso = false;
		u->nic.info.max_segs = 1;
	}
	return count;
}

/* Send the batch; returns how many packets were dealt with. */
static int send_batch(struct udp *u, const struct nic_tx *pkts)
{
	struct udp_batch *b = &u->batch;
	int done = 0;

	for (int at = 0; at < b->n;) {
		int sent = sendmmsg(u->fd, b->hdrs + at,
				    (unsigned int)(b->n - at), MSG_DONTWAIT);
		int error = sent < 0 ? -errno : 0;

		u->nic.stats.syscalls++;
		for (; sent > 0; sent--, at++) {
			done = b->first[at] + b->count[at];
			u->nic.stats.tx_packets += (u64)b->count[at];
			u->nic.stats.tx_bytes += b->bytes[at];
			if (b->count[at] > 1)
				u->nic.stats.tx_gso += (u64)b->count[at];
		}
		if (!error)
			continue;
		if (is_full(u, error))
			return done;
		if (error == -EINTR)
			continue;
		sent = retry(u, pkts + b->first[at], b->count[at], error);
		done = b->first[at] + sent;
		if (sent < b->count[at])
			return done;
		at++;
	}
	return done;
}

int udp_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	struct udp *u = udp_of(nic);
	struct udp_batch *b = &u->batch;
	int done = 0;

	u->blocked = false;
	while (done < n) {
		int end = done, sent;

		b->n = 0;
		b->n_iovs = 0;
		while (end < n && b->n < UDP_BATCH) {
			int count = bundle_len(u, pkts + end, n - end);

			if (!u->v6 && !homa_addr_is_v4(&pkts[end].dst)) {
				if (b->n)
					break;
				udp_refuse(u, &pkts[end], ENETUNREACH, 0);
				done = ++end;
				continue;
			}
			add_message(u, pkts + done, end - done, count);
			end += count;
		}
		sent = send_batch(u, pkts + done);
		if (b->n && sent < end - done)
			return done + sent;
		done = end;
	}
	return done;
}
