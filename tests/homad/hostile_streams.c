// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hostile lives in the memory of TCP streams: commands, rings, slots, positions and maps of
 * buffers, while connections are opened, carry bytes and end. Traffic that is proper
 * (hostile_work()) goes on beside, so that homad is busy where the lies are.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hostile_streams.h"

#define ALL_FEATURES                                                         \
	(HOMA_SHM_CAN_STREAM | HOMA_SHM_CAN_FORK | HOMA_SHM_CAN_EXEC |       \
	 HOMA_SHM_CAN_UNJOINED | HOMA_SHM_CAN_PATIENCE | HOMA_SHM_CAN_PASS | \
	 HOMA_SHM_CAN_URGENT | HOMA_SHM_CAN_BACKLOG | HOMA_SHM_CAN_BEGUN)
#define OPS (HOMA_STREAM_BACKLOG + 1u)
#define BUSY_SLOTS 16u /* where most of the streams are */

/* ---- what is proper ---- */

void hostile_streams_begin(struct hostile *h, struct raw_streams *s)
{
	uint32_t features = below(h, 8) ? ALL_FEATURES : (uint32_t)bits(h);
	int rc = raw_streams_attach(s, features & ~HOMA_SHM_CAN_HANDOVER);

	if (rc == -ECONNREFUSED || rc == -ENOENT)
		raw_die("homad is gone: %s", strerror(-rc));
	if (rc)
		_exit(HOSTILE_REFUSED);
}

void hostile_streams_end(struct hostile *h, struct raw_streams *s)
{
	if (below(h, 8) == 0)
		raise(SIGKILL);
	raw_streams_close(s);
}

void hostile_connect(struct hostile *h, struct raw_streams *s, uint16_t own_port)
{
	struct homa_stream_command c = { .op = HOMA_STREAM_CONNECT,
					 .token = below(h, 1000) };

	memcpy(c.remote.ip, h->ip, 16);
	c.remote.port = h->port;
	switch (below(h, 8)) {
	case 0:
		/* Most likely nobody has that address. */
		c.remote.ip[15] = (uint8_t)bits(h);
		break;
	case 1:
	case 2:
	case 3:
		if (h->has_far)
			memcpy(c.remote.ip, h->far, 16);
		break;
	case 4:
	case 5:
		if (own_port)
			c.remote.port = own_port;
		break;
	}
	if (below(h, 2))
		c.value = below(h, 32);
	if (below(h, 8) == 0)
		c.slot = 1 + below(h, 3000);
	raw_streams_give(s, &c);
}

static void let_go(struct hostile *h, struct raw_streams *s, uint32_t i)
{
	if (raw_stream_say(s, &s->mine[i],
			   below(h, 3) ? HOMA_STREAM_CLOSE : HOMA_STREAM_ABORT, 0))
		raw_stream_forget(s, i);
}

/* Does what a correct program may do with a stream. */
static void use(struct hostile *h, struct raw_streams *s, uint32_t i)
{
	struct raw_stream *stream = &s->mine[i];

	switch (below(h, 16)) {
	case 0:
		let_go(h, s, i);
		break;
	case 1:
		raw_stream_say(s, stream, HOMA_STREAM_SHUT, 0);
		break;
	case 2:
		raw_stream_say(s, stream, HOMA_STREAM_OPTIONS, below(h, 16));
		break;
	case 3:
		raw_stream_say(s, stream, HOMA_STREAM_URGENT,
			       stream->end + below(h, 5));
		break;
	case 4:
	case 5:
	case 6:
		raw_stream_jump(stream, 11 + below(h, 11), (uint32_t)bits(h));
		/* fall through */
	case 7:
	case 8:
	case 9:
	case 10:
		raw_stream_write(s, stream,
				 1 + below(h, below(h, 3) ? 200 : 100000),
				 (uint8_t)below(h, 256));
		break;
	default:
		raw_stream_read(s, stream);
	}
}

void hostile_hear(struct hostile *h, struct raw_streams *s)
{
	struct homa_stream_event event;
	uint32_t most = below(h, 40);

	while (most-- && raw_streams_hear(s, &event))
		;
}

void hostile_work(struct hostile *h, struct raw_streams *s, uint16_t own_port)
{
	if (below(h, s->num < 4 ? 8 : 40) == 0)
		hostile_connect(h, s, own_port);
	if (s->num)
		use(h, s, below(h, s->num));
	if (s->num > RAW_STREAMS / 2)
		let_go(h, s, below(h, s->num));
}

bool hostile_goes_on(struct hostile *h, struct raw_streams *s, uint32_t *turns)
{
	/* To look whether homad has hung up takes a millisecond. */
	return ++*turns % 64 || (going(h) && !raw_evicted(&s->r, 0));
}

/* ---- what is not ---- */

/* Returns a command that is allowed, whatever the attachment has. */
static struct homa_stream_command good_command(struct hostile *h,
					       const struct raw_streams *s)
{
	static const uint16_t ops[] = {
		HOMA_STREAM_RING,   HOMA_STREAM_SHUT,	  HOMA_STREAM_OPTIONS,
		HOMA_STREAM_URGENT, HOMA_STREAM_PATIENCE, HOMA_STREAM_ACCEPT,
		HOMA_STREAM_BACKLOG
	};
	struct homa_stream_command c = { .value = 1 + below(h, 63),
					 .token = below(h, 1000) };

	c.op = ops[below(h, sizeof(ops) / sizeof(ops[0]))];
	if (c.op == HOMA_STREAM_ACCEPT || c.op == HOMA_STREAM_BACKLOG) {
		c.slot = s->listener;
	} else if (s->num) {
		const struct raw_stream *stream = &s->mine[below(h, s->num)];

		c.slot = stream->slot;
		c.generation = stream->generation;
	}
	if (c.op == HOMA_STREAM_PATIENCE)
		c.token = below(h, HOMA_STREAM_PATIENCES);
	if (!c.generation && !c.slot) {
		c.op = HOMA_STREAM_CONNECT;
		memcpy(c.remote.ip, h->ip, 16);
		c.remote.port = h->port;
	}
	return c;
}

struct homa_stream_command hostile_command(struct hostile *h,
					   const struct raw_streams *s, int evil)
{
	struct homa_stream_command c = good_command(h, s);

	while (evil-- > 0) {
		switch (below(h, 9)) {
		case 0:
			c.op = (uint16_t)(below(h, 2) ? below(h, OPS + 2) :
							bits(h));
			break;
		case 1:
			c.slot = below(h, 2) ? below(h, s->num_slots + 2) :
					       (uint32_t)bits(h);
			break;
		case 2:
			c.generation += below(h, 5) - 2u;
			break;
		case 3:
			c.generation = (uint32_t)bits(h);
			break;
		case 4:
			c.value = (uint32_t)bits(h);
			break;
		case 5:
			c.token = bits(h);
			break;
		case 6:
			c.remote.ip[below(h, 16)] = (uint8_t)bits(h);
			break;
		case 7:
			c.remote.port = (uint16_t)bits(h);
			c.local.port = (uint16_t)(bits(h) * below(h, 2));
			break;
		case 8:
			c.local.ip[below(h, 16)] = (uint8_t)bits(h);
			break;
		}
	}
	return c;
}

/* Any command, of which few are impossible: after the first of these homad hangs up. */
void live_stream_commands(struct hostile *h)
{
	bool deaf = below(h, 4) == 0;
	uint32_t turns = 0, often = 1 + below(h, 300);
	struct homa_stream_command c;
	struct raw_streams s;

	hostile_streams_begin(h, &s);
	while (hostile_goes_on(h, &s, &turns)) {
		if (below(h, 4) == 0) {
			c = hostile_command(h, &s, below(h, often) ? 0 : 2);
			raw_streams_give(&s, &c);
		} else {
			hostile_work(h, &s, 0);
		}
		if (!deaf)
			hostile_hear(h, &s);
	}
	hostile_streams_end(h, &s);
}

/* One word of a slot becomes what it was, a little more or less, or anything. */
static void spoil_slot(struct hostile *h, struct homa_stream_slot *slot)
{
	uint32_t *words = (uint32_t *)slot;
	uint32_t i = below(h, sizeof(*slot) / 4);
	uint32_t *word = &words[i];

	/* Half of the time where homad looks. */
	switch (below(h, 12)) {
	case 0:
		word = &slot->rx_read;
		break;
	case 1:
		word = &slot->tx_end;
		break;
	case 2:
		word = &slot->rung;
		break;
	case 3:
		word = &slot->told;
		break;
	case 4:
		word = below(h, 2) ? &slot->rx_lock : &slot->tx_lock;
		break;
	case 5:
		__atomic_store_n(&slot->tx_map,
				 homa_stream_map(10 + below(h, 14),
						 (uint32_t)bits(h)),
				 __ATOMIC_SEQ_CST);
		return;
	case 6:
		__atomic_store_n(&slot->tx_map, bits(h), __ATOMIC_SEQ_CST);
		return;
	}
	__atomic_store_n(word,
			 below(h, 2) ? *word + below(h, 9) - 4u :
				       (uint32_t)bits(h),
			 __ATOMIC_SEQ_CST);
}

void live_stream_slots(struct hostile *h)
{
	uint32_t turns = 0, often = 1 + below(h, 300);
	struct raw_streams s;

	hostile_streams_begin(h, &s);
	while (hostile_goes_on(h, &s, &turns)) {
		hostile_work(h, &s, 0);
		hostile_hear(h, &s);
		if (below(h, often) || !s.num)
			continue;
		spoil_slot(h, below(h, 4) ?
				      raw_stream_words(&s.mine[below(h, s.num)]) :
				      &s.slots[below(h, s.num_slots)]);
		raw_stream_say(&s, &s.mine[below(h, s.num)], HOMA_STREAM_RING, 0);
	}
	hostile_streams_end(h, &s);
}

/* Indices of both rings, the reader's and the writer's, and a bell that is rung for nothing. */
void live_stream_indices(struct hostile *h)
{
	uint32_t turns = 0, often = 1 + below(h, 300);
	struct raw_streams s;

	hostile_streams_begin(h, &s);
	while (hostile_goes_on(h, &s, &turns)) {
		struct homa_shm_ring *ring =
			below(h, 3) ? &s.area->event : &s.area->command;
		uint32_t *word = below(h, 2) ? &ring->tail : &ring->head;
		uint32_t value = *word + below(h, 9) - 4u;

		hostile_work(h, &s, 0);
		hostile_hear(h, &s);
		if (below(h, 3) == 0)
			__atomic_store_n(&s.area->armed, (uint32_t)bits(h),
					 __ATOMIC_SEQ_CST);
		if (below(h, often))
			continue;
		if (below(h, 4) == 0)
			value = (uint32_t)bits(h);
		__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
		/* A command that waits is taken back, and events are read all at once. */
		if (below(h, 2))
			s.tail = s.area->command.tail = s.area->command.head;
		if (below(h, 2))
			s.head = s.area->event.head = s.area->event.tail;
		raw_kick(&s.r);
	}
	hostile_streams_end(h, &s);
}

/* ---- scribbling ---- */

struct scribbler {
	struct raw_streams *s;
	uint64_t seed;
	bool wild; /* words do not become again what they were */
	bool stop;
};

/* Chooses a word of the memory, more often where homad reads. */
static uint32_t *any_word(struct hostile *h, const struct raw_streams *s)
{
	size_t at = below(h, BUSY_SLOTS * 2 * HOMA_STREAM_FIRST / 4);
	uint32_t buffer = below(h, BUSY_SLOTS * 2);

	switch (below(h, 8)) {
	case 0:
		return (uint32_t *)s->area +
		       below(h, sizeof(struct homa_stream_area) / 4);
	case 1:
	case 2:
		return (uint32_t *)&s->commands[below(h, s->entries)] +
		       below(h, sizeof(*s->commands) / 4);
	case 3:
		return (uint32_t *)&s->events[below(h, s->entries)] +
		       below(h, sizeof(*s->events) / 4);
	case 4:
	case 5:
		return (uint32_t *)&s->slots[below(h, BUSY_SLOTS)] +
		       below(h, sizeof(*s->slots) / 4);
	case 6:
		return (uint32_t *)s->firsts + at;
	default:
		return (uint32_t *)(s->spans + buffer * (size_t)HOMA_STREAM_SPAN) +
		       below(h, 1 << 14);
	}
}

static void *scribble(void *arg)
{
	struct scribbler *sc = arg;
	struct hostile h = { .rng = sc->seed };

	while (!__atomic_load_n(&sc->stop, __ATOMIC_RELAXED)) {
		volatile uint32_t *word = any_word(&h, sc->s);
		uint32_t old = *word, i;

		for (i = 0; i < 50; i++) {
			*word = (uint32_t)bits(&h);
			*word = old;
		}
		if (sc->wild && below(&h, 20) == 0)
			*word = (uint32_t)bits(&h);
		/* The other thread has to get on, too. */
		if (below(&h, 50) == 0)
			usleep(below(&h, 300));
	}
	return NULL;
}

/* Random bytes over all of the memory, while connections carry bytes and buffers jump. */
void live_stream_scribble(struct hostile *h)
{
	struct scribbler sc = { .seed = bits(h), .wild = below(h, 4) == 0 };
	struct raw_streams s;
	uint32_t turns = 0;
	pthread_t thread;

	hostile_streams_begin(h, &s);
	sc.s = &s;
	while (s.num < 4 && going(h)) {
		hostile_work(h, &s, 0);
		hostile_hear(h, &s);
		usleep(100);
	}
	if (pthread_create(&thread, NULL, scribble, &sc))
		raw_die("no thread");
	while (hostile_goes_on(h, &s, &turns)) {
		hostile_work(h, &s, 0);
		hostile_hear(h, &s);
	}
	__atomic_store_n(&sc.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	hostile_streams_end(h, &s);
}

/* Its size stays; holes may come into it, and what homad finds there is zeros. */
void live_stream_memory(struct hostile *h)
{
	struct raw_streams s;
	uint32_t turns = 0;

	hostile_streams_begin(h, &s);
	while (hostile_goes_on(h, &s, &turns)) {
		size_t all = s.bytes, at = 0, length;

		hostile_work(h, &s, 0);
		hostile_hear(h, &s);
		/* Spans are far more than the rest. */
		if (below(h, 2))
			all = (size_t)(s.spans - (uint8_t *)s.area);
		at = (size_t)below(h, (uint32_t)(all >> 12)) << 12;
		length = (size_t)(1 + below(h, 64)) << 12;
		if (length > s.bytes - at)
			length = s.bytes - at;
		switch (below(h, 200)) {
		case 0:
			if (!ftruncate(s.memory, (off_t)at))
				raw_die("the memory for streams could be cut off");
			break;
		case 1:
			if (!ftruncate(s.memory, (off_t)s.bytes + 4096))
				raw_die("the memory for streams could be extended");
			break;
		case 2:
			if (!fcntl(s.memory, F_ADD_SEALS, F_SEAL_WRITE))
				raw_die("the memory for streams could be made read-only");
			break;
		case 3:
			madvise((uint8_t *)s.area + at, length, MADV_REMOVE);
			break;
		case 4:
			fcntl(s.event, F_SETPIPE_SZ, 4096);
			fcntl(s.event, F_SETFL, below(h, 2) ? O_NONBLOCK : 0);
			break;
		case 5:
			close(s.event);
			s.event = -1;
			break;
		}
	}
	hostile_streams_end(h, &s);
}
