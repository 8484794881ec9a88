/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Hosts, packets under way and time. Packets of one host to another arrive in the
 * order in which they were sent unless a fault says otherwise. Time stands still while
 * they do; it passes when a timer runs, and a timer that runs while packets are under
 * way is a fault: they are late.
 */
#include "explore.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TIMER_TURNS 256 /* timers that do nothing, in a row */

#define NAME(A, name, text) [XP_##A] = #name,
const char *const xp_fault_names[XP_NUM_FAULTS] = { XP_FAULTS(NAME) };
#undef NAME
#define TEXT(A, name, text) [XP_##A] = text,
const char *const xp_fault_texts[XP_NUM_FAULTS] = { XP_FAULTS(TEXT) };
#undef TEXT

struct xp_world *xp_world;
size_t xp_bytes;
size_t xp_most_bytes;
const struct xp_proto *xp_proto;
const struct xp_scenario *xp_scenario;
char xp_why[512];
FILE *xp_story;
bool xp_full;
u32 xp_touched;

static size_t bytes_of(const struct xp_scenario *scenario)
{
	return (sizeof(struct xp_world) + xp_proto->size(scenario) + 63) / 64 *
	       64;
}

bool xp_world_new(const struct xp_proto *proto)
{
	size_t most = 0;
	void *mem;
	u32 i;

	xp_proto = proto;
	for (i = 0; i < proto->num_scenarios; i++)
		if (bytes_of(&proto->scenarios[i]) > most)
			most = bytes_of(&proto->scenarios[i]);
	if (posix_memalign(&mem, 64, most))
		return false;
	xp_world = mem;
	xp_most_bytes = most;
	return true;
}

void xp_world_begin(const struct xp_scenario *scenario, u32 faults)
{
	xp_bytes = bytes_of(scenario);
	memset(xp_world, 0, xp_bytes);
	xp_scenario = scenario;
	xp_why[0] = 0;
	xp_full = false;
	xp_world->hosts = scenario->hosts;
	memcpy(xp_world->left, xp_bounded ? xp_bound : scenario->faults,
	       XP_NUM_FAULTS);
	xp_world->any = (u8)faults;
	xp_touched = ~0u;
	xp_proto->begin(xp_world, scenario);
}

void xp_fail(const char *fmt, ...)
{
	va_list args;

	if (xp_why[0])
		return;
	va_start(args, fmt);
	vsnprintf(xp_why, sizeof(xp_why), fmt, args);
	va_end(args);
}

void xp_tell(const char *fmt, ...)
{
	va_list args;

	if (!xp_story)
		return;
	va_start(args, fmt);
	vfprintf(xp_story, fmt, args);
	va_end(args);
}

void xp_send(struct xp_world *w, const struct xp_packet *p)
{
	char text[200];

	if (xp_story) {
		xp_proto->describe(p, text, sizeof(text));
		xp_tell("    %10.3f ms  host %u sends      %s\n",
			(double)w->now / 1e6, p->src, text);
	}
	if (w->num_packets == XP_PACKETS) {
		xp_full = true;
		return;
	}
	w->packets[w->num_packets] = *p;
	w->packets[w->num_packets].dst_life = w->life[p->dst];
	w->packets[w->num_packets++].sent = w->now;
	w->sent++;
}

static struct xp_packet take(struct xp_world *w, u32 i)
{
	struct xp_packet p = w->packets[i];

	w->num_packets--;
	memmove(&w->packets[i], &w->packets[i + 1],
		(w->num_packets - i) * sizeof(w->packets[0]));
	return p;
}

/* Packets that nobody has to wait for: copies may come or not. */
static u32 due(const struct xp_world *w)
{
	u32 i, n = 0;

	for (i = 0; i < w->num_packets; i++)
		n += !w->packets[i].copy;
	return n;
}

void xp_time_is(struct xp_world *w, u64 now)
{
	u32 i = 0;

	w->now = now > w->now ? now : w->now;
	while (i < w->num_packets)
		if (w->now - w->packets[i].sent > xp_scenario->late_ns)
			take(w, i);
		else
			i++;
}

/* ---- time ---- */

/* The host whose timer is next, and when. */
static u64 next_timer(struct xp_world *w, u32 *host)
{
	u64 at, best = XP_NEVER;
	u32 i;

	for (i = 0; i < w->hosts; i++) {
		at = xp_proto->next_timer(w, i);
		if (at < best) {
			best = at;
			*host = i;
		}
	}
	return best;
}

static void time_passes(struct xp_world *w)
{
	u32 i, host = 0;

	for (i = 0; i < TIMER_TURNS; i++) {
		u64 at = next_timer(w, &host);

		if (at == XP_NEVER)
			return;
		xp_time_is(w, at);
		xp_touch(host);
		if (xp_proto->timer(w, host) || !xp_proto->may_wait(w))
			return;
	}
	xp_fail("timers of host %u run again and again and do nothing", host);
}

static void deliver(struct xp_world *w, struct xp_packet p)
{
	char text[200];

	if (xp_story) {
		xp_proto->describe(&p, text, sizeof(text));
		xp_tell("    %10.3f ms  host %u gets       %s%s\n",
			(double)w->now / 1e6, p.dst, text,
			p.copy ? "  (a copy)" : "");
	}
	xp_touch(p.dst);
	xp_proto->deliver(w, &p);
}

/* As late as a packet may be: timers that are due before run before. */
static void deliver_latest(struct xp_world *w, u32 i)
{
	struct xp_packet p = take(w, i);
	u64 at = p.sent + xp_scenario->late_ns;
	u32 host = 0, turns = 0;

	while (next_timer(w, &host) <= at && turns++ < TIMER_TURNS) {
		xp_time_is(w, next_timer(w, &host));
		xp_touch(host);
		xp_proto->timer(w, host);
	}
	xp_time_is(w, at);
	deliver(w, p);
}

/* ---- choices ---- */

static u32 add(struct xp_world *w, struct xp_choice *c, u32 n, u8 kind,
	       u8 fault, u8 host, u32 arg)
{
	if (n == XP_CHOICES)
		xp_fail("a state has more than %u choices", XP_CHOICES);
	if (n == XP_CHOICES || (fault != XP_NONE && (!w->left[fault] || !w->any)))
		return n;
	c[n] = (struct xp_choice){ kind, fault, host, (u8)arg };
	return n + 1;
}

/* The first packet on each way arrives; the oldest of them is what is first. */
static u32 arrivals(struct xp_world *w, struct xp_choice *c, u32 n)
{
	u32 seen = 0, i;

	for (i = 0; i < w->num_packets; i++) {
		const struct xp_packet *p = &w->packets[i];
		u32 way = 1u << (p->src * XP_HOSTS + p->dst);

		if (p->copy || seen & way)
			continue;
		seen |= way;
		n = add(w, c, n, XP_DELIVER, XP_NONE, p->dst, i);
	}
	return n;
}

static u32 faults_of_packets(struct xp_world *w, struct xp_choice *c, u32 n)
{
	u32 seen = 0, i;

	for (i = 0; i < w->num_packets; i++) {
		const struct xp_packet *p = &w->packets[i];
		u32 way = 1u << (p->src * XP_HOSTS + p->dst);

		if (p->copy) {
			n = add(w, c, n, XP_DELIVER, XP_NONE, p->dst, i);
			continue;
		}
		if (seen & way) {
			n = add(w, c, n, XP_DELIVER, XP_REORDER, p->dst, i);
			continue;
		}
		seen |= way;
		n = add(w, c, n, XP_LOSE, XP_LOSS, p->dst, i);
		n = add(w, c, n, XP_DOUBLE, XP_DUP, p->dst, i);
	}
	return n;
}

/*
 * While nothing but arrivals and losses may happen, what two hosts get changes nothing
 * for the other: one order is as good as all (partial order reduction). @n: arrivals.
 */
static bool one_order(const struct xp_world *w, u32 n)
{
	u32 i;

	for (i = 0; i < XP_NUM_FAULTS; i++)
		if (i != XP_LOSS && w->left[i] && w->any)
			return false;
	for (i = 0; i < w->num_packets; i++)
		if (w->packets[i].copy)
			return false;
	return n > 1;
}

static u32 only_first(struct xp_world *w, struct xp_choice *c)
{
	u32 host = c[0].host, i, n = 0;
	struct xp_choice all[XP_CHOICES];
	u32 total = faults_of_packets(w, all, arrivals(w, all, 0));

	for (i = 0; i < total; i++)
		if (all[i].host == host)
			c[n++] = all[i];
	return n;
}

u32 xp_choices(struct xp_world *w, struct xp_choice *c)
{
	struct xp_choice own[XP_CHOICES];
	bool ended = xp_proto->ended(w);
	u32 i, n = 0, num_own, arrived, host;

	if (!w->num_packets && ended)
		return 0;
	num_own = xp_proto->choices(w, own);
	for (i = 0; i < num_own; i++)
		if (own[i].fault == XP_NONE)
			c[n++] = own[i];
	if (!n) {
		arrived = arrivals(w, c, n);
		if (one_order(w, arrived))
			return only_first(w, c);
		n = arrived;
	} else {
		n = arrivals(w, c, n);
	}
	if (!ended && xp_proto->may_wait(w) && next_timer(w, &host) != XP_NEVER)
		n = add(w, c, n, XP_TIMER, due(w) ? XP_LATE : XP_NONE, 0, 0);
	n = faults_of_packets(w, c, n);
	if (ended) {
		for (i = 0; i < w->num_packets; i++)
			if (w->packets[i].copy)
				n = add(w, c, n, XP_LATEST, XP_NONE,
					w->packets[i].dst, i);
		return n;
	}
	for (i = 0; i < num_own; i++)
		if (own[i].fault != XP_NONE)
			n = add(w, c, n, own[i].kind, own[i].fault, own[i].host,
				own[i].arg);
	for (i = 0; i < w->hosts; i++) {
		n = add(w, c, n, XP_START, XP_RESTART, (u8)i, 0);
		n = add(w, c, n, XP_START, XP_RESTART, (u8)i, 1);
	}
	return n;
}

void xp_choice_text(struct xp_world *w, struct xp_choice c, char *text,
		    size_t size)
{
	(void)w;
	switch (c.kind) {
	case XP_DELIVER:
		snprintf(text, size, "packet %u arrives%s", c.arg,
			 c.fault == XP_REORDER ? ", before others" : "");
		break;
	case XP_LOSE:
		snprintf(text, size, "packet %u is lost", c.arg);
		break;
	case XP_DOUBLE:
		snprintf(text, size, "packet %u is doubled", c.arg);
		break;
	case XP_LATEST:
		snprintf(text, size, "packet %u arrives as late as it may",
			 c.arg);
		break;
	case XP_TIMER:
		snprintf(text, size, "time passes%s",
			 c.fault == XP_LATE ? ", packets are late" : "");
		break;
	case XP_START:
		snprintf(text, size, "host %u starts again%s", c.host,
			 c.arg ? " without its servers" : "");
		break;
	default:
		xp_proto->name_of(c, text, size);
	}
}

bool xp_choice_same(struct xp_choice a, struct xp_choice b)
{
	return a.kind == b.kind && a.host == b.host && a.arg == b.arg;
}

void xp_apply(struct xp_world *w, struct xp_choice c)
{
	struct xp_packet p;

	if (c.fault != XP_NONE) {
		w->left[c.fault]--;
		w->any--;
	}
	switch (c.kind) {
	case XP_DELIVER:
		deliver(w, take(w, c.arg));
		break;
	case XP_LOSE:
		take(w, c.arg);
		break;
	case XP_DOUBLE:
		if (w->num_packets == XP_PACKETS) {
			xp_full = true;
			return;
		}
		p = w->packets[c.arg];
		p.copy = 1;
		w->packets[w->num_packets++] = p;
		break;
	case XP_LATEST:
		deliver_latest(w, c.arg);
		break;
	case XP_TIMER:
		time_passes(w);
		break;
	case XP_START:
		w->life[c.host]++;
		xp_touch(c.host);
		xp_proto->start(w, c.host, c.arg);
		break;
	default:
		xp_touch(c.host);
		xp_proto->act(w, c);
	}
	if (!xp_why[0])
		xp_proto->check(w);
}

/* ---- what is the same state ---- */

static u64 mix(u64 a, u64 b)
{
	__uint128_t m = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) *
			(b ^ 0xe7037ed1a0b428dbull);

	return (u64)m ^ (u64)(m >> 64);
}

static void put_packets(const struct xp_world *w, struct xp_sink *sink)
{
	u32 i, k;

	for (i = 0; i < w->num_packets; i++) {
		const struct xp_packet *p = &w->packets[i];
		u32 len = p->len < XP_HEADER ? p->len : XP_HEADER;
		u64 word;

		xp_put(sink, (u64)p->len << 48 | (u64)p->src << 40 |
				     (u64)p->dst << 32 | (u64)p->prio << 24 |
				     (u64)p->copy << 16 | (u64)p->kind << 8 |
				     p->link);
		xp_put(sink, w->now - p->sent);
		xp_put(sink, (u64)p->dst_life << 32 | p->note);
		for (k = 0; k < len; k += 8) {
			memcpy(&word, p->data + k, 8);
			xp_put(sink, word);
		}
	}
}

/* All that belongs to no host. */
static void canon_common(struct xp_world *w, struct xp_sink *sink)
{
	u64 left = 0, any = 0;
	u32 i;

	sink->n = 0;
	/* What is more than may still happen in all says nothing. */
	for (i = 0; i < XP_NUM_FAULTS; i++) {
		u32 n = w->left[i] < w->any ? w->left[i] : w->any;

		left = left * 16 + n;
		any += n;
	}
	xp_put(sink, left);
	xp_put(sink, any < w->any ? any : w->any);
	xp_put(sink, w->num_packets);
	put_packets(w, sink);
	xp_proto->canon(w, sink);
}

static void canon_fits(struct xp_sink *sink)
{
	if (sink->n < HOMA_ARRAY_SIZE(sink->word) - 1)
		return;
	xp_fail("a state has %u words, more than there is room for", sink->n);
	sink->n = HOMA_ARRAY_SIZE(sink->word) - 1;
}

void xp_canon(struct xp_world *w, struct xp_sink *sink)
{
	u32 i;

	canon_common(w, sink);
	for (i = 0; i < w->hosts; i++)
		xp_proto->canon_host(w, i, sink);
	canon_fits(sink);
}

static void digest(struct xp_sink *sink, u64 out[2])
{
	u64 a = 0x243f6a8885a308d3ull, b = 0x13198a2e03707344ull;
	u32 i;

	canon_fits(sink);
	sink->word[sink->n] = 0;
	for (i = 0; i < sink->n; i += 2) {
		a = mix(a ^ sink->word[i], sink->word[i + 1] + i);
		b += a;
	}
	out[0] = mix(a ^ sink->n, b);
	out[1] = b;
}

/* A host that no step touched, at the same time, is what it was. */
u64 xp_hash(struct xp_world *w)
{
	static struct xp_sink sink;
	u64 both[2];
	u32 i;

	for (i = 0; i < w->hosts; i++) {
		if (!(xp_touched >> i & 1) && w->seen_at[i] == w->now)
			continue;
		sink.n = 0;
		xp_proto->canon_host(w, i, &sink);
		digest(&sink, w->seen[i]);
		w->seen_at[i] = w->now;
	}
	canon_common(w, &sink);
	for (i = 0; i < w->hosts; i++) {
		xp_put(&sink, w->seen[i][0]);
		xp_put(&sink, w->seen[i][1]);
	}
	digest(&sink, both);
	return both[0] ? both[0] : 1;
}
