// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What the evil application of fuzz_shm does to its TCP streams; see shm_lies.h. */
#include "shm_lies.h"

enum stream_op {
	STREAM_CONNECT,
	STREAM_CONNECT_SELF,
	STREAM_LISTEN,
	STREAM_COMMAND,
	STREAM_SLOT,
	STREAM_POKE,
	STREAM_INDEX,
	STREAM_WRITE,
	STREAM_READ,
	STREAM_HEAR,
	STREAM_CLOSE,
	STREAM_GRANT,
	STREAM_SHARE,
	STREAM_JOIN,
	STREAM_DROP,
	STREAM_OPS,
};

/* Says something of the stream in slot @i, perhaps with a field spoiled. */
static void say(struct script *s, struct shm_streams *st, struct shm_side *side,
		u32 i, u16 op, u32 spoil)
{
	struct homa_stream_command c = { .op = op, .slot = i };

	c.generation = i < SHM_SLOTS ? st->of[i].generation : 1;
	if (spoil & 1)
		c.value = number(s);
	if (spoil & 2)
		c.token = number(s);
	if (spoil & 4)
		c.generation += byte(s);
	if (spoil & 8)
		c.slot = number(s);
	if (spoil & 16)
		c.slot = st->listener;
	if (op == HOMA_STREAM_CONNECT) {
		c.remote =
			shm_streams_connect(spoil & 32 ? GOOD_TCP : EVIL_TCP).remote;
		c.slot = spoil & 8 ? c.slot : 0;
		if (spoil & 64)
			c.local.ip[byte(s) % 16] = (u8)byte(s);
		if (spoil & 128)
			c.remote.ip[byte(s) % 16] = (u8)byte(s);
	}
	shm_streams_give(st, side, &c);
}

/* Writes as a correct program does, perhaps to a buffer that has jumped. */
static void write_some(struct script *s, struct shm_streams *st,
		       struct shm_side *side, u32 i)
{
	struct homa_stream_slot *slot = &st->s.slots[i];
	struct shm_stream *stream = &st->of[i];
	u32 n = word(s), how = byte(s), used = stream->end - slot->tx_free, size;
	u64 shift = HOMA_STREAM_MIN_SHIFT + how % 5;

	if (!used && how & 128 && shift <= slot->tx_shift)
		stream->map = shift << 32 | word(s);
	size = 1u << (stream->map >> 32 & 31);
	if (used <= size)
		stream->end += homa_min_u32(n, size - used);
	slot->tx_map = stream->map;
	slot->tx_end = stream->end;
	say(s, st, side, i, HOMA_STREAM_RING, 0);
}

static void spoil_slot(struct script *s, struct shm_streams *st,
		       struct shm_side *side, u32 i)
{
	u32 *words = (u32 *)&st->s.slots[i];
	/* Mostly those that are the application's. */
	u32 how = byte(s), at = how & 128 ? how % 64 : 32 + how % 16;

	words[at] = byte(s) & 1 ? words[at] + (u32)(int8_t)byte(s) : number(s);
	say(s, st, side, i, HOMA_STREAM_RING, 0);
}

static void poke_streams(struct script *s, const struct shm_streams *st)
{
	u8 *area = (u8 *)st->s.area;
	size_t size = (size_t)(st->s.firsts - area) +
		      SHM_SLOTS * 2u * HOMA_STREAM_FIRST;
	size_t at = (word(s) | byte(s) << 16) % size;
	u32 n = byte(s) % 64;

	if (byte(s) & 1)
		at %= sizeof(struct homa_stream_area);
	while (n-- && at < size)
		area[at++] = (u8)byte(s);
}

static void spoil_index(struct script *s, struct shm_streams *st,
			struct shm_side *side)
{
	struct homa_stream_area *area = st->s.area;
	u32 which = byte(s);
	struct homa_shm_ring *ring = which & 1 ? &area->event : &area->command;
	u32 *index = which & 2 ? &ring->tail : &ring->head;

	*index = which & 4 ? *index + (u32)(int8_t)byte(s) : number(s);
	if (which & 8)
		st->tail = area->command.tail = area->command.head;
	homad_poll_app(shm_homad.threads[0], &side->app);
}

void shm_lies_step(struct script *s, struct shm_streams *st, struct shm_side *side)
{
	u32 op = byte(s) % STREAM_OPS, i = byte(s) % SHM_SLOTS, n;

	switch (op) {
	case STREAM_CONNECT:
		say(s, st, side, 0, HOMA_STREAM_CONNECT, 32);
		break;
	case STREAM_CONNECT_SELF:
		say(s, st, side, 0, HOMA_STREAM_CONNECT, 0);
		break;
	case STREAM_LISTEN:
		shm_streams_listen(st, EVIL_TCP);
		break;
	case STREAM_COMMAND:
		n = byte(s) % (HOMA_STREAM_BACKLOG + 2);
		say(s, st, side, i, (u16)n, byte(s));
		break;
	case STREAM_SLOT:
		spoil_slot(s, st, side, i);
		break;
	case STREAM_POKE:
		poke_streams(s, st);
		break;
	case STREAM_INDEX:
		spoil_index(s, st, side);
		break;
	case STREAM_WRITE:
		if (st->of[i].used)
			write_some(s, st, side, i);
		break;
	case STREAM_READ:
		st->s.slots[i].rx_read = st->s.slots[i].rx_end;
		say(s, st, side, i, HOMA_STREAM_RING, 0);
		break;
	case STREAM_HEAR:
		for (n = 0; n < 32 && shm_streams_hear(st); n++)
			;
		break;
	case STREAM_CLOSE:
		say(s, st, side, i,
		    byte(s) & 1 ? HOMA_STREAM_CLOSE : HOMA_STREAM_ABORT, 0);
		st->of[i].used = false;
		break;
	case STREAM_GRANT:
		shm_streams_grant((u8)(HOMA_STREAM_MIN_SHIFT + byte(s) % 5));
		break;
	case STREAM_SHARE:
		shm_streams_share(st, byte(s) & 1);
		break;
	case STREAM_JOIN:
		shm_streams_join(st);
		break;
	case STREAM_DROP:
		shm_streams_leave(st);
		break;
	}
}
