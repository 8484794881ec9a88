// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Connections in TIME_WAIT whose application has let go, in 104 bytes each: enough to
 * acknowledge a FIN that comes again and to know whose SYN is newer (RFC 9293, 3.10.7.4;
 * RFC 6191; RFC 1337). All last equally long, so a list in order of time serves for a
 * timer. If there is no memory for one more the oldest makes room; if there is none at
 * all a connection stays what it is until its time is over.
 */
#include "tas_impl.h"

static struct tas_ended *ended_at(const struct homa_list *node)
{
	return homa_container_of(node, struct tas_ended, hash);
}

static u32 hash_of(const struct homa_list *node)
{
	return ended_at(node)->value;
}

struct tas_ended *tas_find_ended(struct tas_engine *engine,
				 const struct tas_pair *pair)
{
	struct homa_list *node, *head;

	if (likely(!engine->ended.count))
		return NULL;
	head = homa_table_find(&engine->ended, tas_hash(engine, pair));
	homa_list_for_each(node, head)
		if (tas_pair_equal(&ended_at(node)->pair, pair))
			return ended_at(node);
	return NULL;
}

bool tas_knows(struct tas_engine *engine, const struct tas_pair *pair)
{
	return tas_find(engine, pair) || tas_find_ended(engine, pair);
}

void tas_add_ended(struct tas_engine *engine, struct tas_ended *ended)
{
	homa_list_init(&ended->hash);
	homa_list_init(&ended->order);
	homa_list_add_head(&engine->spare_ended, &ended->order);
	engine->num_spare_ended++;
}

struct tas_ended *tas_take_ended(struct tas_engine *engine)
{
	struct homa_list *node = homa_list_pop(&engine->spare_ended);

	if (!node)
		return NULL;
	engine->num_spare_ended--;
	return homa_container_of(node, struct tas_ended, order);
}

static void forget(struct tas_engine *engine, struct tas_ended *ended)
{
	homa_table_del(&engine->ended, &ended->hash);
	homa_list_del(&ended->order);
	tas_add_ended(engine, ended);
}

static struct tas_ended *oldest(const struct tas_engine *engine)
{
	struct homa_list *node = homa_list_first(&engine->ended_order);

	return node ? homa_container_of(node, struct tas_ended, order) : NULL;
}

static void begin_again(struct tas_engine *engine, struct tas_ended *ended)
{
	homa_list_del(&ended->order);
	homa_list_add_tail(&engine->ended_order, &ended->order);
	ended->deadline = engine->now + engine->params.time_wait_ms * TAS_MSEC;
}

bool tas_shrink(struct tas_engine *engine, struct tas_conn *conn)
{
	struct homa_segment *segment = engine->segments;
	struct tas_ended *ended;

	if (!(conn->f.flags & TAS_F_CLOSED))
		return false;
	if (!engine->num_spare_ended && oldest(engine)) {
		engine->metrics.time_wait_dropped++;
		forget(engine, oldest(engine));
	}
	ended = tas_take_ended(engine);
	if (!ended)
		return false;
	ended->pair = conn->f.pair;
	ended->value = conn->hash;
	ended->snd_nxt = conn->f.snd_nxt;
	ended->rcv_nxt = conn->f.rcv_nxt;
	ended->ts_recent = conn->f.ts_recent;
	ended->ts_offset = conn->ts_offset;
	ended->window =
		(u16)homa_min_u32((tas_window(conn) + tas_scale_slack(conn)) >>
					  conn->f.rcv_wscale,
				  65535);
	ended->ts = conn->f.flags & TAS_F_TS;
	begin_again(engine, ended);
	homa_table_add(&engine->ended, ended->value, &ended->hash);
	if (unlikely(homa_table_full(&engine->ended)) &&
	    homa_table_grow(&engine->ended, segment, hash_of))
		engine->segments = segment->next;
	/* The ACK of the peer's FIN may still be owed. */
	if (conn->f.flags & (TAS_F_ACK_NOW | TAS_F_ACK_LATER))
		tas_ended_ack(engine, ended);
	tas_gone(engine, conn);
	return true;
}

void tas_ended_ack(struct tas_engine *engine, struct tas_ended *ended)
{
	struct tas_segment seg = { .seq = ended->snd_nxt,
				   .ack = ended->rcv_nxt,
				   .flags = TAS_ACK,
				   .window = ended->window };

	if (ended->ts) {
		seg.options = TAS_OPT_TS;
		seg.ts = engine->clock_ms + ended->ts_offset;
		seg.ts_echo = ended->ts_recent;
	}
	engine->metrics.acks_sent++;
	tas_stray_send(engine, &ended->pair, &seg);
}

/* Answers a segment by an ACK within the limit for all connections, as somebody may have
 * made the segment up. */
static void answer(struct tas_engine *engine, struct tas_ended *ended)
{
	if (tas_within(engine, &engine->challenges, engine->params.challenge_acks))
		tas_ended_ack(engine, ended);
	else
		engine->metrics.challenge_drops++;
}

bool tas_ended_rx(struct tas_engine *engine, struct tas_ended *ended,
		  const struct tas_segment *seg)
{
	bool newer;

	newer = ended->ts && (seg->options & TAS_OPT_TS) ?
			(s32)(seg->ts - ended->ts_recent) > 0 :
			tas_after(seg->seq, ended->rcv_nxt);
	if ((seg->flags & (TAS_SYN | TAS_ACK | TAS_RST)) == TAS_SYN && newer) {
		const bool listens = tas_find_listener(engine, &ended->pair);

		if (!listens && !engine->elsewhere)
			return true;
		engine->metrics.time_wait_recycled++;
		forget(engine, ended);
		return !listens;
	}
	/* RFC 1337: a reset does not end TIME_WAIT. */
	if (seg->flags & TAS_RST)
		return true;
	if ((seg->flags & TAS_FIN) &&
	    seg->seq + seg->length + 1 == ended->rcv_nxt) {
		begin_again(engine, ended);
		tas_ended_ack(engine, ended);
	} else if (seg->length || (seg->flags & (TAS_FIN | TAS_SYN))) {
		answer(engine, ended);
	}
	return true;
}

/*
 * RFC 6191 and RFC 7323, appendix B.2, from the side that opens: old segments of the peer are
 * told from new ones by their timestamps. A timestamp may change as seldom as once in a
 * second (RFC 7323, 5.4), so that long must have passed.
 */
bool tas_may_follow(const struct tas_engine *engine, const struct tas_ended *ended)
{
	const struct tas_params *params = &engine->params;

	return ended->ts && params->timestamps &&
	       ended->deadline + params->time_wait_reuse_ms * TAS_MSEC <=
		       engine->now + params->time_wait_ms * TAS_MSEC;
}

void tas_follow_ended(struct tas_engine *engine, struct tas_ended *ended,
		      struct tas_conn *conn)
{
	u32 least = ended->snd_nxt + 65537;

	/* Our timestamps go on, and so do our sequence numbers, however fast the last
	 * one was: its peer may be in TIME_WAIT, too. */
	conn->ts_offset = ended->ts_offset;
	if (tas_before(conn->iss, least)) {
		conn->iss = conn->f.snd_una = conn->f.snd_nxt = least;
		conn->f.snd_end = least + 1;
		conn->rtx_nxt = conn->rtx_end = conn->recover = conn->ecn_seq =
			least;
	}
	engine->metrics.time_wait_reused++;
	forget(engine, ended);
}

u32 tas_expire_ended(struct tas_engine *engine, u32 budget)
{
	struct tas_ended *ended;

	while (budget && (ended = oldest(engine)) &&
	       ended->deadline <= engine->now) {
		forget(engine, ended);
		budget--;
	}
	return budget;
}

u64 tas_next_ended(const struct tas_engine *engine)
{
	const struct tas_ended *ended = oldest(engine);

	return ended ? ended->deadline : TAS_NEVER;
}
