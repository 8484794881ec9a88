// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The rings and streams of fake_streams.h. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fake_impl.h"

void fake_event(struct fake *f, struct homa_stream_event event)
{
	must(f->tail - __atomic_load_n(&f->area->event.head, __ATOMIC_ACQUIRE) <
	     f->area->ring_entries);
	f->event[f->tail & (f->area->ring_entries - 1)] = event;
	__atomic_store_n(&f->area->event.tail, ++f->tail, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&f->area->armed, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&f->area->armed, 0, __ATOMIC_SEQ_CST);
		must(write(f->wake_fd, "", 1) == 1);
	}
}

void fake_changed(struct fake *f, u32 slot)
{
	if (__atomic_exchange_n(&f->slot[slot].told, 1, __ATOMIC_SEQ_CST))
		return;
	fake_event(f, (struct homa_stream_event){
			      .kind = HOMA_STREAM_CHANGED,
			      .slot = slot,
			      .generation = f->slot[slot].generation });
}

static u32 new_slot(struct fake *f, u32 peer)
{
	u32 i, shift = f->tx_shift ? f->tx_shift : HOMA_STREAM_MIN_SHIFT;
	struct homa_stream_slot *slot;

	for (i = 0; i < f->area->num_slots && f->end[i].used; i++)
		;
	must(i < f->area->num_slots);
	slot = &f->slot[i];
	memset(slot, 0, sizeof(*slot));
	f->end[i] = (struct fake_end){ .used = true, .peer = peer };
	f->end[i].rx_shift = f->rx_shift ? f->rx_shift : HOMA_STREAM_MIN_SHIFT;
	slot->generation = ++f->generations;
	slot->tx_shift = shift;
	slot->rx_map = homa_stream_map(f->end[i].rx_shift, 0);
	slot->mss = 1448;
	slot->local = (struct homa_stream_end){
		.ip = { [10] = 0xff, 0xff, 10, 0, 0, 1 }, .port = 80
	};
	slot->remote =
		(struct homa_stream_end){ .ip = { [15] = 1 }, .port = 4711 };
	slot->state = HOMA_STREAM_IS_OPEN;
	return i;
}

u32 fake_incoming(struct fake *f, u32 listener)
{
	u32 slot = new_slot(f, ~0u);

	fake_event(f, (struct homa_stream_event){
			      .kind = HOMA_STREAM_ACCEPTED,
			      .slot = slot,
			      .generation = f->slot[slot].generation,
			      .token = listener });
	return slot;
}

static void connect_to(struct fake *f, const struct homa_stream_command *c)
{
	struct homa_stream_event event = { .kind = HOMA_STREAM_FAILED,
					   .error = ECONNREFUSED,
					   .token = c->token };
	u32 i, a, b;

	for (i = 0; i < FAKE_LISTENERS && f->port[i] != c->remote.port; i++)
		;
	if (i == FAKE_LISTENERS) {
		fake_event(f, event);
		return;
	}
	a = new_slot(f, 0);
	b = fake_incoming(f, i + 1);
	f->end[a].peer = b;
	f->end[b].peer = a;
	event.kind = HOMA_STREAM_OPENED;
	event.error = 0;
	event.slot = a;
	event.generation = f->slot[a].generation;
	fake_event(f, event);
}

/* Where byte @position of the buffer with @map is; @to_send: of that for bytes to send. */
static u8 *byte_at(struct fake *f, u32 slot, bool to_send, u64 map, u32 position)
{
	u8 *begin =
		homa_stream_is_first(map) ?
			f->firsts + ((u64)slot * 2 + to_send) * HOMA_STREAM_FIRST :
			f->spans + ((u64)slot * 2 + to_send) * HOMA_STREAM_SPAN;

	return begin + homa_stream_at(map, position);
}

static u32 rx_room(struct fake *f, u32 slot)
{
	u32 used = f->end[slot].rx_end - f->end[slot].rx_read;

	must(used <= 1u << f->end[slot].rx_shift);
	return (1u << f->end[slot].rx_shift) - used;
}

static void put(struct fake *f, u32 slot, const u8 *bytes, u32 n)
{
	struct fake_end *end = &f->end[slot];
	u32 i;

	for (i = 0; i < n;) {
		u32 some = homa_min_u32(n - i,
					homa_stream_to_end(f->slot[slot].rx_map,
							   end->rx_end + i));

		memcpy(byte_at(f, slot, false, f->slot[slot].rx_map,
			       end->rx_end + i),
		       bytes + i, some);
		i += some;
	}
	end->rx_end += n;
	__atomic_store_n(&f->slot[slot].rx_end, end->rx_end, __ATOMIC_RELEASE);
}

void fake_arrive(struct fake *f, u32 slot, const void *bytes, u32 n)
{
	must(n <= rx_room(f, slot));
	put(f, slot, bytes, n);
	fake_changed(f, slot);
}

void fake_end(struct fake *f, u32 slot, u32 error)
{
	if (error)
		__atomic_store_n(&f->slot[slot].error, error, __ATOMIC_RELAXED);
	__atomic_fetch_or(&f->slot[slot].state,
			  error ? HOMA_STREAM_HAS_ERROR : HOMA_STREAM_HAS_END,
			  __ATOMIC_RELEASE);
	fake_changed(f, slot);
}

/* Bytes from one stream to its peer, as many as there is room for. */
static void pump(struct fake *f, u32 from)
{
	struct fake_end *end = &f->end[from];
	u32 to = end->peer, tx_end, n;
	u64 map;

	if (!end->used || to == ~0u || !f->end[to].used || f->still)
		return;
	tx_end = __atomic_load_n(&f->slot[from].tx_end, __ATOMIC_ACQUIRE);
	map = __atomic_load_n(&f->slot[from].tx_map, __ATOMIC_RELAXED);
	if (tx_end == end->tx_free)
		return;
	must(map >> 32 <= f->slot[from].tx_shift &&
	     tx_end - end->tx_free <= 1u << (map >> 32));
	n = homa_min_u32(tx_end - end->tx_free, rx_room(f, to));
	if (!n)
		return;
	while (n) {
		u32 some = homa_min_u32(n, homa_stream_to_end(map, end->tx_free));
		const u8 *bytes = byte_at(f, from, true, map, end->tx_free);

		put(f, to, bytes, some);
		end->tx_free += some;
		n -= some;
	}
	__atomic_store_n(&f->slot[from].tx_free, end->tx_free, __ATOMIC_RELEASE);
	fake_changed(f, to);
	if (!end->closed)
		fake_changed(f, from);
}

/* What has been said of @slot is passed on when its bytes are. */
static void settle(struct fake *f, u32 slot)
{
	struct fake_end *end = &f->end[slot];
	bool alone = end->peer == ~0u || !f->end[end->peer].used;

	pump(f, slot);
	if (!alone && end->tx_free != __atomic_load_n(&f->slot[slot].tx_end,
						      __ATOMIC_ACQUIRE))
		return;
	if (end->shut && !end->ended) {
		end->ended = true;
		if (!alone)
			fake_end(f, end->peer, 0);
	}
	if (!end->closed)
		return;
	if (!alone)
		f->end[end->peer].peer = ~0u;
	end->used = false;
}

static void abort_stream(struct fake *f, u32 slot)
{
	u32 peer = f->end[slot].peer;

	if (peer != ~0u && f->end[peer].used) {
		f->end[peer].peer = ~0u;
		fake_end(f, peer, ECONNRESET);
	}
	f->end[slot].used = false;
}

static void of_stream(struct fake *f, const struct homa_stream_command *c)
{
	u32 peer;

	must(c->slot < f->area->num_slots && f->end[c->slot].used &&
	     f->slot[c->slot].generation == c->generation);
	peer = f->end[c->slot].peer;
	switch (c->op) {
	case HOMA_STREAM_RING:
		must(__atomic_exchange_n(&f->slot[c->slot].rung, 0,
					 __ATOMIC_SEQ_CST) == 1);
		f->end[c->slot].rx_read =
			__atomic_load_n(&f->slot[c->slot].rx_read,
					__ATOMIC_ACQUIRE);
		break;
	case HOMA_STREAM_SHUT:
		f->end[c->slot].shut = true;
		break;
	case HOMA_STREAM_CLOSE:
		f->end[c->slot].shut = f->end[c->slot].closed = true;
		break;
	case HOMA_STREAM_ABORT:
		abort_stream(f, c->slot);
		return;
	case HOMA_STREAM_OPTIONS:
		f->options = c->value;
		return;
	case HOMA_STREAM_PATIENCE:
		if (homa_stream_may_wait(c->token, c->value))
			f->patience[c->token] = c->value;
		return;
	default:
		must(!"a command that there is not");
	}
	settle(f, c->slot);
	if (peer != ~0u && f->end[peer].used)
		settle(f, peer);
}

static void command(struct fake *f, const struct homa_stream_command *c)
{
	must(c->op < 16);
	__atomic_fetch_add(&f->commands[c->op], 1, __ATOMIC_RELAXED);
	if (c->op == HOMA_STREAM_CONNECT) {
		connect_to(f, c);
	} else if (c->op == HOMA_STREAM_BACKLOG) {
		must(c->slot && c->slot <= FAKE_LISTENERS && f->port[c->slot - 1]);
		f->backlog = c->value;
	} else if (c->op == HOMA_STREAM_UNLISTEN) {
		must(c->slot && c->slot <= FAKE_LISTENERS && f->port[c->slot - 1]);
		f->port[c->slot - 1] = 0;
		fake_event(f, (struct homa_stream_event){
				      .kind = HOMA_STREAM_UNLISTENED,
				      .token = c->slot });
	} else {
		of_stream(f, c);
	}
}

/* As homad does it: what is answered waits for room for its answers, with those behind it. */
static bool has_to_wait(struct fake *f, const struct homa_stream_command *c)
{
	u32 events = c->op == HOMA_STREAM_OPTIONS  ? 0 :
		     c->op == HOMA_STREAM_UNLISTEN ? 1 :
						     2;

	return f->tail - __atomic_load_n(&f->area->event.head, __ATOMIC_ACQUIRE) +
		       events >
	       f->area->ring_entries;
}

u32 fake_step(struct fake *f)
{
	u32 tail, n = 0;

	pthread_mutex_lock(&f->memory_lock);
	tail = f->area ?
		       __atomic_load_n(&f->area->command.tail, __ATOMIC_SEQ_CST) :
		       f->head;
	for (; f->head != tail; n++) {
		struct homa_stream_command c =
			f->command[f->head & (f->area->ring_entries - 1)];

		if (has_to_wait(f, &c))
			break;
		command(f, &c);
		__atomic_store_n(&f->area->command.head, ++f->head,
				 __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&f->memory_lock);
	return n;
}

static void rest(struct fake *f)
{
	struct pollfd p = { .fd = f->kick_fd, .events = POLLIN };
	u64 value;

	__atomic_store_n(&f->q->h.need_kick, HOMA_SHM_KICK_SUBMIT,
			 __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&f->area->command.tail, __ATOMIC_SEQ_CST) == f->head)
		poll(&p, 1, 1000);
	__atomic_store_n(&f->q->h.need_kick, 0, __ATOMIC_SEQ_CST);
	if (read(f->kick_fd, &value, sizeof(value)) > 0)
		f->kicks++;
}

static void *run(void *arg)
{
	struct fake *f = arg;

	while (!__atomic_load_n(&f->stop, __ATOMIC_SEQ_CST))
		if (!fake_step(f))
			rest(f);
	return NULL;
}

void fake_run(struct fake *f)
{
	f->running = true;
	must(!pthread_create(&f->runner, NULL, run, f));
}

void fake_stop(struct fake *f)
{
	u64 value = 1;

	if (!f->running)
		return;
	__atomic_store_n(&f->stop, 1, __ATOMIC_SEQ_CST);
	must(write(f->kick_fd, &value, sizeof(value)) > 0);
	must(!pthread_join(f->runner, NULL));
	f->running = false;
	f->stop = 0;
}
