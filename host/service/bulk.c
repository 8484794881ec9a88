// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Long messages by another way than short ones. On virtual devices AF_XDP is
 * the fastest for short messages, but UDP with segmentation offload moves long
 * ones several times faster, because 64 KiB cross the device as one unit. So a
 * long request goes over UDP encapsulation, and its response with it, if the
 * peer understands that. Nothing in the protocol says so; we ask with a packet
 * that every implementation answers: a NEED_ACK for an RPC that does not exist
 * brings an ACK (docs/protocol.md). No answer, or an ICMP error: the native way
 * it is. Answers are believed for a minute and asked for anew while in use.
 */
#include "homa_codec.h"
#include "homa_sockaddr.h"
#include "service.h"

#define BELIEVE_NS 60000000000u
#define AGAIN_NS 1000000000u /* after no answer; doubles up to BELIEVE_NS */

static bool wanted(const struct homad *d, const struct homad_port *native)
{
	if (!d->udp || d->config.bulk == HOMAD_BULK_OFF)
		return false;
	return d->config.bulk == HOMAD_BULK_ON || native->virtual_device;
}

static void ask(struct homad_thread *t, struct homad_dest *dest)
{
	struct homa_packet packet = {
		.hdr = {
			.sport = 1,
			.dport = HOMA_MIN_CLIENT_PORT,
			.type = HOMA_NEED_ACK,
			/* A server's id that nobody has: our RPCs' ids begin at
			 * random places, and count up from there. Not 1, which
			 * older homads ask with: ids below 2 are refused in
			 * all that is no such question. */
			.sender_id = 3,
		},
	};
	u8 hdr[HOMA_MAX_HDR];
	struct nic_tx tx = { .dst = dest->addr, .hdr = hdr, .prio = 7 };

	tx.dst.encap = HOMA_ENCAP_PORT;
	tx.hdr_len = homa_packet_encode(hdr, &packet);
	dest->bulk = dest->bulk == HOMAD_BULK_YES ? HOMAD_BULK_YES :
						    HOMAD_BULK_ASKED;
	dest->bulk_wait = dest->bulk_wait ?
				  homa_min_u64(2 * dest->bulk_wait, BELIEVE_NS) :
				  AGAIN_NS;
	dest->bulk_at = t->ctx.now;
	t->asked++;
	nic_tx(t->d->udp->nic, &tx, 1);
	nic_flush(t->d->udp->nic);
}

bool homad_bulk(struct homad_thread *t, struct homad_dest *dest, u32 length,
		struct homa_addr *addr, struct homad_port **port)
{
	struct homad *d = t->d;

	if (likely(length < d->config.bulk_min) || dest->port->encap ||
	    dest->port == d->local || !wanted(d, dest->port) ||
	    d->udp->thread != t->index)
		return false;
	if (!dest->bulk_wait || homa_since(t->ctx.now, dest->bulk_at) > dest->bulk_wait)
		ask(t, dest);
	if (dest->bulk != HOMAD_BULK_YES)
		return false;
	addr->encap = HOMA_ENCAP_PORT;
	*port = d->udp;
	t->counters.bulk++;
	return true;
}

void homad_bulk_heard(struct homad_thread *t, const struct nic_rx *pkt)
{
	struct homa_addr addr = pkt->src;
	struct homad_dest *dest;

	if (pkt->len < HOMA_COMMON_HDR || homa_peek_type(pkt->data) != HOMA_ACK ||
	    addr.encap != HOMA_ENCAP_PORT)
		return;
	addr.encap = 0;
	dest = homad_dest_find(t, &addr);
	if (!dest || !dest->bulk_wait)
		return;
	dest->bulk = HOMAD_BULK_YES;
	dest->bulk_wait = BELIEVE_NS;
	if (t->asked)
		t->asked--;
}

void homad_bulk_refused(struct homad_thread *t, const struct homa_addr *where)
{
	struct homa_addr addr = *where;
	struct homad_dest *dest;

	if (addr.encap != HOMA_ENCAP_PORT)
		return;
	addr.encap = 0;
	dest = homad_dest_find(t, &addr);
	if (dest && dest->bulk_wait) {
		dest->bulk = HOMAD_BULK_NO;
		dest->bulk_wait = BELIEVE_NS;
	}
}
