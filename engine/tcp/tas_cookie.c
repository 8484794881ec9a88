// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * SYN cookies (Bernstein, 1996): a SYN is answered without remembering it. What has to
 * be known later is in our initial sequence number, five bits of time, three that stand
 * for a segment size, and 24 that only we can compute; and, if the peer has timestamps,
 * in the low bits of ours: window scaling, SACK and ECN.
 */
#include "tas_impl.h"

#define PERIOD_NS (64 * TAS_SEC) /* unit of a cookie's time, in ns */
/* number of these units for which a cookie is valid */
#define PERIODS 2u
/* Bits of a cookie. */
#define TIME_SHIFT 27
#define SIZE_SHIFT 24
#define HASH_MASK 0xffffffu
/* Bits of our timestamp in a SYN-ACK with a cookie. */
#define SACK_BIT 0x10u
#define ECN_BIT 0x20u
#define TS_BITS 0x3fu
#define NO_SCALE 0xfu /* the shift of a peer that does not scale windows */

/* Segment sizes that a cookie can name, in bytes. */
static const u16 sizes[8] = { 216, 536, 1024, 1220, 1300, 1440, 1460, 8960 };

static u32 hash(const struct tas_engine *engine, const struct tas_pair *pair,
		u32 irs, u32 head)
{
	struct homa_siphash s =
		homa_siphash_begin(engine->key[4], engine->key[5]);

	homa_siphash_word(&s, homa_get_be64(pair->local));
	homa_siphash_word(&s, homa_get_be64(pair->local + 8));
	homa_siphash_word(&s, homa_get_be64(pair->remote));
	homa_siphash_word(&s, homa_get_be64(pair->remote + 8));
	homa_siphash_word(&s, (u64)pair->local_port << 16 | pair->remote_port);
	homa_siphash_word(&s, (u64)irs << 32 | head);
	return (u32)homa_siphash_end(&s) & HASH_MASK;
}

static u32 period(const struct tas_engine *engine)
{
	return (u32)homa_div64(engine->now, PERIOD_NS);
}

static u32 cookie(const struct tas_engine *engine, const struct tas_pair *pair,
		  u32 irs, u32 when, u32 size)
{
	u32 head = (when & 31) << TIME_SHIFT | size << SIZE_SHIFT;

	return head | hash(engine, pair, irs, when << 3 | size);
}

/* Our clock with @bits in its low bits, but not ahead of itself. */
static u32 stamp(const struct tas_engine *engine, u32 bits)
{
	u32 ts = (engine->clock_ms & ~TS_BITS) | bits;

	return ts > engine->clock_ms ? ts - TS_BITS - 1 : ts;
}

void tas_send_cookie(struct tas_engine *engine,
		     const struct tas_listener *listener,
		     const struct tas_pair *pair, const struct tas_segment *syn)
{
	const struct tas_params *params = &engine->params;
	u32 bits = NO_SCALE, size = 7,
	    mss = syn->options & TAS_OPT_MSS ? syn->mss : 536;
	struct tas_segment answer = { .flags = TAS_SYN | TAS_ACK,
				      .ack = syn->seq + 1,
				      .options = TAS_OPT_MSS };
	bool ts = params->timestamps && (syn->options & TAS_OPT_TS);
	struct tas_conn shape = { .f.pair = *pair, .rx_max = listener->rx_max };

	while (size && sizes[size] > mss)
		size--;
	shape.f.rx_shift = listener->rx_shift;
	answer.seq = cookie(engine, pair, syn->seq, period(engine), size);
	answer.mss = (u16)tas_mss_of(engine, &shape);
	answer.window = tas_syn_window(&shape);
	if (ts && params->window_scaling && (syn->options & TAS_OPT_WSCALE)) {
		bits = syn->wscale;
		answer.options |= TAS_OPT_WSCALE;
		answer.wscale = tas_scale_for(
			homa_max_u32(shape.rx_max, tas_rx_size(&shape)));
	}
	if (ts && params->sack && (syn->options & TAS_OPT_SACK_OK)) {
		bits |= SACK_BIT;
		answer.options |= TAS_OPT_SACK_OK;
	}
	if (ts && params->ecn &&
	    (syn->flags & (TAS_ECE | TAS_CWR)) == (TAS_ECE | TAS_CWR)) {
		bits |= ECN_BIT;
		answer.flags |= TAS_ECE;
	}
	if (ts) {
		answer.options |= TAS_OPT_TS;
		answer.ts = stamp(engine, bits);
		answer.ts_echo = syn->ts;
	}
	engine->cookie_at = engine->now;
	engine->metrics.cookies_sent++;
	tas_stray_send(engine, pair, &answer);
}

bool tas_cookies_out(const struct tas_engine *engine)
{
	return engine->metrics.cookies_sent &&
	       engine->now - engine->cookie_at < PERIODS * PERIOD_NS;
}

static void options_of(const struct tas_segment *seg, struct tas_segment *syn)
{
	u32 bits = seg->ts_echo & TS_BITS;

	if (!(seg->options & TAS_OPT_TS))
		return;
	syn->options |= TAS_OPT_TS;
	syn->ts = seg->ts;
	if ((bits & NO_SCALE) <= TAS_WSCALE_MAX) {
		syn->options |= TAS_OPT_WSCALE;
		syn->wscale = (u8)(bits & NO_SCALE);
	}
	if (bits & SACK_BIT)
		syn->options |= TAS_OPT_SACK_OK;
	if (bits & ECN_BIT)
		syn->flags |= TAS_ECE | TAS_CWR;
}

bool tas_check_cookie(const struct tas_engine *engine,
		      const struct tas_pair *pair,
		      const struct tas_segment *seg, struct tas_segment *syn)
{
	u32 value = seg->ack - 1, irs = seg->seq - 1,
	    size = value >> SIZE_SHIFT & 7;
	u32 when = period(engine), age = (when - (value >> TIME_SHIFT)) & 31;

	if (age >= PERIODS || age > when ||
	    value != cookie(engine, pair, irs, when - age, size))
		return false;
	memset(syn, 0, sizeof(*syn));
	syn->seq = irs;
	syn->flags = TAS_SYN;
	syn->options = TAS_OPT_MSS;
	syn->mss = sizes[size];
	options_of(seg, syn);
	return true;
}
