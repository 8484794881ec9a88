/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What both ways out have in common, through the link's scheduler (homa_out.c) and at once
 * (homa_out_now.c).
 */
#ifndef HOMA_OUT_IMPL_H
#define HOMA_OUT_IMPL_H

#include "homa_impl.h"

/* Returns the bytes on the cable of a packet that carries @len bytes of Homa. */
static inline u32 homa_cable_bytes(const struct homa_addr *dst, u32 len)
{
	return len + (homa_addr_is_v4(dst) ? 20 : 40) + (dst->encap ? 8 : 0) +
	       HOMA_ETH_HEADER + HOMA_WIRE_OVERHEAD;
}

/* Returns how many bytes of @out were never sent. */
static inline u32 homa_out_left(const struct homa_out *out)
{
	return out->length - out->next;
}

/* May @out send now? If not, *@not_before is the time at which to ask again, in ns. Link
 * locked. */
static inline bool homa_out_ready(const struct homa_link *link,
				  const struct homa_out *out, u64 now,
				  u64 *not_before)
{
	return homa_sched_ready(&link->sched, &out->send, homa_out_left(out),
				link->engine->params.defer_min_bytes, now,
				not_before);
}

/* Writes the header fields that all packets of a message have in common. */
static inline void homa_out_begin(const struct homa_engine *engine,
				  const struct homa_rpc *rpc, u8 *to)
{
	const struct homa_out *out = &rpc->out;
	const struct homa_hdr hdr = {
		.sport = rpc->sport,
		.dport = rpc->dport,
		.sender_id = rpc->id,
	};
	const bool client = homa_rpc_is_client(rpc);
	struct homa_data data HOMA_NOINIT;

	data.length = out->length;
	data.incoming = out->unsched;
	data.incast = out->incast;
	data.resp_limit_kib = client ? out->resp_limit_kib : 0;
	data.error = client ? 0 : out->error;
	homa_data_begin(to, &hdr, client ? rpc->life : engine->life, &data);
}

#endif
