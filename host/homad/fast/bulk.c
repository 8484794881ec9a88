// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Long messages by another way than short ones. On virtual devices AF_XDP is
 * the fastest for short messages, but UDP with segmentation offload moves long
 * ones several times faster, because 64 KiB cross the device as one unit. So a
 * long request goes over UDP encapsulation, and its response with it, if the
 * peer's UDP port is its homad's. Any process may have got hold of that port,
 * but the native protocol takes privileges. So we ask natively, with a packet
 * that every implementation bears: a RESEND of no bytes of an RPC that does not
 * exist, whose id is a random number. A homad answers RPC_UNKNOWN over UDP: who
 * knows the number there has the native protocol, too. That is believed for two
 * seconds and asked for anew every second while in use. No answer: the native
 * way it is.
 */
#include <sys/random.h>
#include "homa_codec.h"
#include "homa_hash.h"
#include "homa_sockaddr.h"
#include "dest_table.h"
#include "fast.h"

/* Time for which an answer is believed, ns. */
#define BELIEVE_NS 2000000000u
/* Time without a new answer after which the peer is asked again, ns. */
#define ANEW_NS 1000000000u
/* Time after which a peer that has not answered is asked again, ns; it doubles up to
 * LATEST_NS. */
#define AGAIN_NS 1000000000u
#define LATEST_NS 60000000000u
#define ASK_SPORT 1u
#define ASK_DPORT 0x8000u

/* Do both ends use the usual port, so that no packet need name another one? */
static bool have_port(const struct homad *d)
{
	return d->udp && d->udp->info->address.encap == HOMA_ENCAP_PORT;
}

static bool wanted(const struct homad *d, const struct homad_port *native)
{
	if (!have_port(d) || d->config.bulk == HOMAD_BULK_OFF)
		return false;
	/* A message NIC is never virtual. */
	return d->config.bulk == HOMAD_BULK_ON ? !native->is_message :
						 native->virtual_device;
}

static void ask(struct homad_thread *t, struct homad_dest *dest)
{
	u64 nonce;

	dest->bulk_wait = dest->bulk_wait ?
				  homa_min_u64(2 * dest->bulk_wait, LATEST_NS) :
				  AGAIN_NS;
	dest->bulk_ask = t->ctx.now + dest->bulk_wait;
	dest->bulk_nonce = 0;
	if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != sizeof(nonce))
		return;
	dest->bulk_nonce = (nonce | 2) & ~1ull;
	homa_say(&t->ctx, dest->port->link, &dest->way, HOMA_RESEND, ASK_SPORT,
		 ASK_DPORT, dest->bulk_nonce);
}

bool homad_bulk(struct homad_thread *t, struct homad_dest *dest, u32 length,
		struct homa_addr *addr, struct homad_port **port)
{
	struct homad *d = t->d;

	if (likely(length < d->config.bulk_min) || dest->port->encap ||
	    dest->port == d->local || !wanted(d, dest->port) ||
	    d->udp->thread != t->index)
		return false;
	if (t->ctx.now >= dest->bulk_ask)
		ask(t, dest);
	if (t->ctx.now >= dest->bulk_until)
		return false;
	addr->encap = HOMA_ENCAP_PORT;
	*port = d->udp;
	t->counters.bulk++;
	return true;
}

/* Answers the homad of a peer that asks. The answer goes to its UDP port from ours, and so
 * names ours. */
static void asked(struct homad_thread *t, const struct nic_rx *pkt,
		  const struct homa_hdr *hdr)
{
	struct homa_addr addr = pkt->src;
	u64 hash = homa_hash_ip(addr.ip, t->dests.key[0], t->dests.key[1]);

	if (!have_port(t->d) || !homa_seldom(&t->bulk_answered, hash, t->ctx.now))
		return;
	addr.encap = HOMA_ENCAP_PORT;
	homa_say(&t->ctx, t->d->udp->link, &addr, HOMA_RPC_UNKNOWN, ASK_DPORT,
		 ASK_SPORT, hdr->sender_id ^ 1);
}

static void answered(struct homad_thread *t, const struct nic_rx *pkt,
		     const struct homa_hdr *hdr)
{
	struct homa_addr addr = pkt->src;
	struct homad_dest *dest;

	if (addr.encap != HOMA_ENCAP_PORT)
		return;
	addr.encap = 0;
	dest = homad_dest_find(&t->dests, &addr);
	if (!dest || !dest->bulk_nonce ||
	    dest->bulk_nonce != (hdr->sender_id ^ 1))
		return;
	dest->bulk_nonce = 0;
	dest->bulk_wait = 0;
	dest->bulk_until = t->ctx.now + BELIEVE_NS;
	dest->bulk_ask = t->ctx.now + ANEW_NS;
}

void homad_bulk_heard(struct homad_thread *t, const struct homad_port *port,
		      const struct nic_rx *pkt)
{
	u8 type = port->encap ? HOMA_RPC_UNKNOWN : HOMA_RESEND;
	struct homa_packet p;

	if (pkt->len < HOMA_COMMON_HDR || homa_peek_type(pkt->data) != type ||
	    homa_packet_decode(&p, pkt->data, pkt->len))
		return;
	if (port->encap && p.hdr.sport == ASK_DPORT && p.hdr.dport == ASK_SPORT)
		answered(t, pkt, &p.hdr);
	else if (!port->encap && p.hdr.sport == ASK_SPORT &&
		 p.hdr.dport == ASK_DPORT && !p.resend.length)
		asked(t, pkt, &p.hdr);
}
