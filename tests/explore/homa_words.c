/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packets and worlds in words.
 */
#include "homa_world.h"

static const char *type_name(u8 type)
{
	static const char *const names[HOMA_TYPES] = {
		[HOMA_DATA - HOMA_TYPE_FIRST] = "DATA",
		[HOMA_GRANT - HOMA_TYPE_FIRST] = "GRANT",
		[HOMA_RESEND - HOMA_TYPE_FIRST] = "RESEND",
		[HOMA_RPC_UNKNOWN - HOMA_TYPE_FIRST] = "RPC_UNKNOWN",
		[HOMA_BUSY - HOMA_TYPE_FIRST] = "BUSY",
		[HOMA_CUTOFFS - HOMA_TYPE_FIRST] = "CUTOFFS",
		[HOMA_FREEZE - HOMA_TYPE_FIRST] = "FREEZE",
		[HOMA_NEED_ACK - HOMA_TYPE_FIRST] = "NEED_ACK",
		[HOMA_ACK - HOMA_TYPE_FIRST] = "ACK",
	};
	const char *name = names[type - HOMA_TYPE_FIRST];

	return name ? name : "packet";
}

static void resend_text(const struct homa_resend *resend, char *text, size_t size)
{
	if (resend->length == HOMA_RESEND_ALL)
		snprintf(text, size, ": all of it");
	else
		snprintf(text, size, ": bytes %u-%u", resend->offset,
			 resend->offset + resend->length);
}

void xh_describe(const struct xp_packet *p, char *text, size_t size)
{
	struct homa_packet q;
	int n;

	if (homa_packet_decode(&q, p->data, p->len)) {
		snprintf(text, size, "what is no packet");
		return;
	}
	n = snprintf(text, size, "%s%s of id %llx",
		     p->kind == XH_ICMP ? "ICMP about " : "",
		     type_name(q.hdr.type), (unsigned long long)q.hdr.sender_id);
	if (n < 0 || (size_t)n >= size)
		return;
	text += n;
	size -= (size_t)n;
	if (q.hdr.type == HOMA_DATA)
		snprintf(text, size, ": %s of RPC %u, bytes %u-%u of %u%s%s",
			 (p->note - 1) % 2 ? "response" : "request",
			 (p->note - 1) / 2, q.data.offset,
			 q.data.offset + q.data.payload_len, q.data.length,
			 q.data.retransmit ? ", again" : "",
			 q.data.ack.client_id ? ", with an ack" : "");
	else if (q.hdr.type == HOMA_GRANT)
		snprintf(text, size, ": up to %u", q.grant.offset);
	else if (q.hdr.type == HOMA_RESEND)
		resend_text(&q.resend, text, size);
	else if (q.hdr.type == HOMA_ACK)
		snprintf(text, size, ": %u acks", q.ack.num);
}

void xh_summary(struct xp_world *w, char *text, size_t size)
{
	static const char *const states[] = { "planned", "pending", "ok",
					      "failed",	 "aborted", "gone" };
	struct xh_world *x = xh_of(w);
	u32 i;
	int n = 0;

	for (i = 0; i < xh_what->num && n >= 0 && (size_t)n < size; i++)
		n += snprintf(text + n, size - (size_t)n,
			      "%sRPC %u: %s, executed %u times", i ? "; " : "",
			      i, states[x->book[i].state], x->book[i].executed);
}
