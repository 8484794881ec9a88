// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What homad's memory for streams looks like. It is checked once; after that every index
 * is checked against the copies that are taken here. Applications trust homad, but a
 * mistake there shall end in an error here and not in a wild pointer.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "homa_sockaddr.h"
#include "stream_impl.h"

/* Do @n things of @size bytes fit behind @offset? */
static bool fits(const struct homa_streams *ctx, u64 offset, u64 n, u64 size)
{
	return offset >= sizeof(struct homa_stream_area) &&
	       offset % HOMA_SHM_LINE == 0 && offset <= ctx->bytes &&
	       n * size <= ctx->bytes - offset;
}

int homa_streams_lay(struct homa_streams *ctx)
{
	struct homa_stream_area *area = ctx->area;
	u8 *begin = (u8 *)area;

	if (ctx->bytes < sizeof(*area) || area->magic != HOMA_STREAM_MAGIC ||
	    area->bytes != ctx->bytes)
		return -EPROTO;
	ctx->num_slots = area->num_slots;
	ctx->entries = area->ring_entries;
	ctx->num_rules = area->num_rules;
	ctx->id = area->id;
	if (!ctx->num_slots || ctx->num_slots > HOMA_STREAM_SLOTS ||
	    !ctx->entries || ctx->entries > HOMA_STREAM_RING_MAX ||
	    (ctx->entries & (ctx->entries - 1)) ||
	    ctx->num_rules > HOMA_STREAM_RULES)
		return -EPROTO;
	if (!fits(ctx, area->commands, ctx->entries, sizeof(*ctx->commands)) ||
	    !fits(ctx, area->events, ctx->entries, sizeof(*ctx->events)) ||
	    !fits(ctx, area->slots, ctx->num_slots, sizeof(*ctx->slots)) ||
	    !fits(ctx, area->firsts, ctx->num_slots, 2 * (u64)HOMA_STREAM_FIRST) ||
	    !fits(ctx, area->spans, ctx->num_slots, 2 * (u64)HOMA_STREAM_SPAN))
		return -EPROTO;
	ctx->commands = (void *)(begin + area->commands);
	ctx->events = (void *)(begin + area->events);
	ctx->slots = (void *)(begin + area->slots);
	ctx->spans = begin + area->spans;
	ctx->firsts = begin + area->firsts;
	memcpy(ctx->rules, area->rules, sizeof(ctx->rules));
	return 0;
}

static bool rule_has(const struct homa_stream_rule *rule, const u8 *ip, u16 port)
{
	u32 whole = rule->prefix / 8, rest = rule->prefix % 8;

	if (port < rule->from || port > rule->to || rule->prefix > 128 ||
	    memcmp(rule->ip, ip, whole))
		return false;
	return !rest || !((rule->ip[whole] ^ ip[whole]) >> (8 - rest));
}

int homa_streams_takes(struct homa_streams *ctx, const struct sockaddr *remote,
		       socklen_t length)
{
	struct homa_stream_end end;
	u32 i;

	if (homa_stream_end_of(&end, remote, length))
		return 0;
	for (i = 0; i < ctx->num_rules; i++)
		if (rule_has(&ctx->rules[i], end.ip, end.port))
			return 1;
	return 0;
}

int homa_stream_end_of(struct homa_stream_end *end, const struct sockaddr *sa,
		       socklen_t length)
{
	static const u8 any[4];
	struct homa_addr addr;

	memset(end, 0, sizeof(*end));
	if (!sa || length < sizeof(sa->sa_family))
		return -EINVAL;
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (length < (sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						 sizeof(struct sockaddr_in6)))
		return -EINVAL;
	if (homa_sockaddr_to_addr(sa, false, &addr, &end->port))
		return -EAFNOSUPPORT;
	/* 0.0.0.0 is any address, as :: is. */
	if (!homa_addr_is_v4(&addr) || memcmp(addr.ip + 12, any, sizeof(any)))
		memcpy(end->ip, addr.ip, sizeof(end->ip));
	return 0;
}

void homa_stream_end_to(struct sockaddr_storage *sa,
			const struct homa_stream_end *end)
{
	struct homa_addr addr = { .encap = 0 };

	memset(sa, 0, sizeof(*sa));
	memcpy(addr.ip, end->ip, sizeof(addr.ip));
	homa_sockaddr_from_addr(sa, &addr, end->port);
}
