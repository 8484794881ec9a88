// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Buffers of streams grow by use, as the kernel's do. A receive buffer grows when its
 * application takes half of it within a round trip: then the window is what holds the peer
 * back. A send buffer grows when so much of it is full that its writer is told to wait, and the
 * congestion window would let more go. Up to 64 KiB it is enough that writer or peer waits:
 * programs rely on so much being taken off their hands while the other end does something else.
 * The slow path has the memory made, on the user's account; if there is none the buffer stays as it
 * is, which closes the window in time and loses nothing. Memory belongs to the slot
 * (stream_slots.c).
 */
#include <errno.h>
#include "fast.h"
#include "homad_tcp.h"
#include "stream_grow.h"
#include "streams.h"
#include "tcp_stream.h"

/* The time for which a stream that was refused memory does not ask again, ns. */
#define REFUSED_NS 250000000u
/* The shortest round trip that is believed, ns. */
#define ROUND_NS 50000u

/* ---- larger buffers ---- */

/* Moves bytes that have arrived out of the first buffer, with those behind gaps. Returns
 * the new map. */
static u64 move_out(const struct homad_stream *stream, u8 shift)
{
	const u8 *from = homad_stream_buffer(stream, HOMAD_RX, stream->rx_map);
	u64 map = homa_stream_map(shift, stream->rx_read);
	u8 *to = homad_stream_buffer(stream, HOMAD_RX, map);
	u32 first = homa_stream_to_end(stream->rx_map, stream->rx_read);

	memcpy(to, from + homa_stream_at(stream->rx_map, stream->rx_read), first);
	memcpy(to + first, from, HOMA_STREAM_FIRST - first);
	return map;
}

/* Returns a map of a larger buffer in which the bytes keep their places; 0: that is not
 * possible now. */
static u64 stay(const struct homad_stream *stream, u8 shift)
{
	u32 used = tas_readable(&stream->conn), end = stream->rx_read + used;
	u32 at = homa_stream_at(stream->rx_map, end);

	if (!at && used)
		at = 1u << (stream->rx_map >> 32);
	if (stream->conn.f.gaps || used > at)
		return 0;
	return homa_stream_map(shift, end - at);
}

void homad_stream_widen(struct homad_thread *t, struct homad_stream *stream)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	u8 shift = stream->rx_due;
	u64 map;

	if (stream->conn.f.state == TAS_CLOSED || shift <= stream->rx_map >> 32) {
		stream->rx_due = 0;
		return;
	}
	map = homa_stream_is_first(stream->rx_map) ? move_out(stream, shift) :
						     stay(stream, shift);
	if (!map)
		return;
	stream->rx_due = 0;
	stream->rx_map = map;
	__atomic_store_n(&slot->rx_map, map, __ATOMIC_RELEASE);
	tas_set_buffer(homad_engine_of(t->tcp, stream), &stream->conn, shift);
}

/* Tells whether the send buffer keeps its size; @refused: because its user has no memory. A writer
 * that sees that it does not keep it waits until it has grown. */
static void show_stays(struct homad_thread *t, struct homad_stream *stream,
		       bool refused)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	bool stays = refused || stream->tx_shift >= stream->home->tx_most;

	if (stays == stream->tx_stays)
		return;
	stream->tx_stays = stays;
	__atomic_store_n(&slot->tx_stays, stays, __ATOMIC_RELEASE);
	if (stays)
		homad_stream_news(t, stream, HOMAD_NEWS_CHANGED);
}

/* Uses larger buffers, for which there is memory now. */
static void use(struct homad_thread *t, struct homad_stream *stream, u32 way,
		u8 shift)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];

	if (way == HOMAD_RX) {
		stream->rx_due = shift;
		homad_stream_widen(t, stream);
	} else if (shift > stream->tx_shift) {
		stream->tx_shift = shift;
		__atomic_store_n(&slot->tx_shift, shift, __ATOMIC_RELEASE);
		show_stays(t, stream, false);
		homad_stream_news(t, stream, HOMAD_NEWS_CHANGED);
	}
}

/* ---- asking for memory ---- */

static bool may_ask(struct homad_thread *t, const struct homad_streams *s)
{
	return s->app->phase == HOMAD_APP_OPEN &&
	       !(s->grow_refused_at &&
		 homa_since(t->ctx.now, s->grow_refused_at) < REFUSED_NS);
}

static void ask_for(struct homad_thread *t, struct homad_streams *s, u32 slot,
		    u32 way, u8 shift)
{
	struct homad_backing *b = &s->backing[slot];

	memcpy(b->want, b->have, sizeof(b->want));
	b->want[way] = shift;
	b->busy = true;
	s->asks[s->asks_tail & (s->num_asks - 1)] = slot;
	__atomic_store_n(&s->asks_tail, s->asks_tail + 1, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&s->asks_told, true, __ATOMIC_SEQ_CST))
		return;
	HOMAD_PUSH(&t->tcp->growing, s, next_growing);
	homad_tcp_call_slow(t->tcp);
}

static void ask(struct homad_thread *t, struct homad_stream *stream, u32 way,
		u8 shift)
{
	struct homad_streams *s = stream->home;
	const struct homad_backing *b = &s->backing[stream->slot];

	if (b->have[way] >= shift) {
		use(t, stream, way, shift);
		return;
	}
	if (!b->busy && may_ask(t, s))
		ask_for(t, s, stream->slot, way, shift);
	if (way == HOMAD_TX)
		show_stays(t, stream, !b->busy);
}

int homad_slot_prepare(struct homad_thread *t, struct homad_streams *s, u8 shift)
{
	const struct homad_backing *next;
	u32 slot;

	if (s->num_free && shift <= HOMA_STREAM_MIN_SHIFT)
		return 0;
	/* This is the slot that homad_slot_take() will give. */
	next = s->num_warm ? &s->backing[s->free[s->num_slots - s->num_warm]] :
			     NULL;
	if (next && next->have[HOMAD_RX] >= shift)
		return 0;
	/* One slot is prepared at a time, however often it is tried. */
	if (s->preparing && s->preparing->busy)
		return -EAGAIN;
	if (!s->num_free)
		return -ENOSPC;
	if (!may_ask(t, s))
		return -ENOMEM;
	slot = homad_slot_take(s);
	s->preparing = &s->backing[slot];
	ask_for(t, s, slot, HOMAD_RX, shift);
	return -EAGAIN;
}

/* Returns log2 of the smallest buffer for @bytes, which is larger than the present one and
 * no larger than allowed. */
static u8 shift_for(u64 bytes, u8 now, u32 most)
{
	u8 shift = now + 1;

	/* The bytes of a first buffer can always move. Those in a larger one may lie so that it
	 * cannot grow before they are taken, and programs rely on 64 KiB without that. */
	if (now == HOMAD_STREAM_SHIFT)
		bytes = homa_max_u64(bytes, 1u << HOMAD_USUAL_SHIFT);
	while (shift < most && (u64)1 << shift < bytes)
		shift++;
	return shift < most ? shift : (u8)most;
}

void homad_stream_keeps_up(struct homad_thread *t, struct homad_stream *stream,
			   u32 taken)
{
	struct homad_streams *s = stream->home;
	u8 shift = stream->conn.f.rx_shift;
	u64 now = t->ctx.now;

	stream->rx_taken += taken;
	if (shift < s->rx_most && stream->rx_taken >= 1u << (shift - 1) &&
	    !stream->rx_due && !(stream->conn.f.flags & TAS_F_FIN_IN))
		ask(t, stream, HOMAD_RX,
		    shift_for(4 * (u64)stream->rx_taken, shift, s->rx_most));
	if (now - stream->rx_since < homa_max_u64(stream->conn.srtt, ROUND_NS))
		return;
	stream->rx_since = now;
	stream->rx_taken = 0;
}

void homad_stream_piles_up(struct homad_thread *t, struct homad_stream *stream)
{
	struct homad_streams *s = stream->home;
	u32 size = tas_rx_size(&stream->conn);
	u32 room = size - tas_readable(&stream->conn);

	/* With less room than a segment or half of the window the peer waits for more. A parked
	 * stream is about to move. */
	if (room >= homa_min_u32(stream->conn.f.mss, size / 2) ||
	    stream->closed || stream->parked)
		return;
	if (stream->rx_due)
		homad_stream_widen(t, stream);
	else
		ask(t, stream, HOMAD_RX,
		    shift_for(4 * (u64)size, stream->conn.f.rx_shift,
			      homa_min_u32(s->rx_most, HOMAD_USUAL_SHIFT)));
}

void homad_stream_fills(struct homad_thread *t, struct homad_stream *stream)
{
	struct homad_streams *s = stream->home;
	u8 shift = (u8)(stream->tx_map >> 32);
	u32 size = 1u << shift, held = stream->tx_last - stream->tx_end;
	u64 could = homa_max_u64(2 * (u64)stream->conn.f.cwnd,
				 homa_min_u64(4 * (u64)size,
					      1u << HOMAD_USUAL_SHIFT));

	/* With less than a third free the application hears that it may not write. */
	if (3 * (tas_unacked(&stream->conn) + held) <= 2 * size ||
	    could <= size || stream->tx_shift > shift)
		return;
	ask(t, stream, HOMAD_TX, shift_for(could, shift, s->tx_most));
}

/* ---- answers of the slow path ---- */

static void grown(struct homad_thread *t, struct homad_streams *s,
		  const struct homad_grow *g, u32 i)
{
	struct homad_backing *b = &s->backing[g->slot[i]];
	struct homad_stream *stream = s->stream[g->slot[i]];
	bool less = g->to[i][0] < b->want[0] || g->to[i][1] < b->want[1];

	b->busy = false;
	memcpy(b->have, g->to[i], sizeof(b->have));
	if (less)
		s->grow_refused_at = homa_max_u64(t->ctx.now, 1);
	if (!stream) {
		homad_slot_put(s, g->slot[i]);
		return;
	}
	if (stream->closed)
		return;
	/* The slot may have more memory than the stream uses, from one before; the stream gets it
	 * if it has asked for a larger buffer of that way, also if it does not get as much. */
	if (b->want[HOMAD_RX] > g->from[i][HOMAD_RX])
		use(t, stream, HOMAD_RX, b->have[HOMAD_RX]);
	if (b->want[HOMAD_TX] > g->from[i][HOMAD_TX] &&
	    b->have[HOMAD_TX] > stream->tx_shift)
		use(t, stream, HOMAD_TX, b->have[HOMAD_TX]);
	else
		homad_stream_fills(t, stream);
}

int homad_streams_grown(struct homad_thread *t, void *arg)
{
	const struct homad_grow *g = arg;
	struct homad_streams *s = g->streams;
	u32 i;

	homad_now(t);
	homad_tcp_enter(t, s->tcp);
	homad_tcp_round(t);
	for (i = 0; i < g->num; i++)
		grown(t, s, g, i);
	if (s->starved && s->num_free && s->app->phase == HOMAD_APP_OPEN)
		homad_streams_accept(t, s);
	return 0;
}

int homad_streams_cool(struct homad_thread *t, void *arg)
{
	struct homad_grow *g = arg;
	struct homad_streams *s = g->streams;
	u32 n = homa_min_u32(s->warm_least, HOMAD_GROW_BATCH), slot;

	(void)t;
	for (g->num = 0; g->num < n; g->num++) {
		slot = homad_slot_take(s);
		s->backing[slot].busy = true;
		g->slot[g->num] = slot;
		memcpy(g->from[g->num], s->backing[slot].have,
		       sizeof(g->from[0]));
		memset(g->to[g->num], HOMA_STREAM_MIN_SHIFT, sizeof(g->to[0]));
		memcpy(s->backing[slot].want, g->to[g->num], sizeof(g->to[0]));
	}
	s->warm_least = s->num_warm;
	return 0;
}
