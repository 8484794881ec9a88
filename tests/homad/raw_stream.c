// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Streams by the raw ABI; see raw_stream.h. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "raw_stream.h"

static void find_parts(struct raw_streams *s)
{
	uint8_t *base = (uint8_t *)s->area;

	if (s->area->magic != HOMA_STREAM_MAGIC || s->area->bytes != s->bytes)
		raw_die("the memory for streams has magic %x and %llu bytes",
			s->area->magic, (unsigned long long)s->area->bytes);
	s->entries = s->area->ring_entries;
	s->num_slots = s->area->num_slots;
	s->commands = (struct homa_stream_command *)(base + s->area->commands);
	s->events = (struct homa_stream_event *)(base + s->area->events);
	s->slots = (struct homa_stream_slot *)(base + s->area->slots);
	s->firsts = base + s->area->firsts;
	s->spans = base + s->area->spans;
}

int raw_streams_attach(struct raw_streams *s, uint32_t features)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_ATTACH);
	int fds[HOMA_STREAM_FDS], rc;
	struct homa_ctl_answer answer;
	void *base;

	memset(s, 0, sizeof(*s));
	s->memory = s->event = -1;
	request.bytes = 2 << 20;
	request.features = features | HOMA_SHM_CAN_PLACES;
	rc = raw_attach_as(&s->r, &request);
	if (rc)
		return rc;
	request = raw_request(HOMA_CTL_STREAMS);
	rc = raw_ask(s->r.sock, &request, &answer, fds, HOMA_STREAM_FDS);
	if (rc)
		return rc;
	s->memory = fds[HOMA_STREAM_FD_MEMORY];
	s->event = fds[HOMA_STREAM_FD_EVENT];
	s->bytes = answer.queues_bytes;
	base = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE, s->memory, 0);
	if (base == MAP_FAILED)
		return -errno;
	s->area = base;
	find_parts(s);
	return 0;
}

void raw_streams_close(struct raw_streams *s)
{
	if (s->area)
		munmap(s->area, s->bytes);
	if (s->memory >= 0)
		close(s->memory);
	if (s->event >= 0)
		close(s->event);
	s->area = NULL;
	s->memory = s->event = -1;
	raw_close(&s->r);
}

/* ---- the rings ---- */

bool raw_streams_give(struct raw_streams *s,
		      const struct homa_stream_command *command)
{
	struct homa_shm_ring *ring = &s->area->command;
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	if (s->tail - head >= s->entries)
		return false;
	s->commands[s->tail & (s->entries - 1)] = *command;
	__atomic_store_n(&ring->tail, ++s->tail, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->r.q->h.need_kick, __ATOMIC_SEQ_CST) &
	    HOMA_SHM_KICK_SUBMIT)
		raw_kick(&s->r);
	return true;
}

static void remember(struct raw_streams *s, const struct homa_stream_event *e)
{
	struct raw_stream *stream = &s->mine[s->num];
	uint32_t slot = e->slot;
	struct raw_streams *home = s;

	if (e->kind == HOMA_STREAM_JOINED) {
		home = s->mate ? s->mate : s;
		slot = (uint32_t)e->token;
	}
	/* The application's own lies come back to it. */
	if (s->num == RAW_STREAMS || e->slot >= s->num_slots ||
	    slot >= home->num_slots || !home->area)
		return;
	*stream = (struct raw_stream){ .slot = e->slot,
				       .generation = e->generation,
				       .home = home,
				       .home_slot = slot };
	stream->end = home->slots[slot].tx_end;
	stream->read = home->slots[slot].rx_read;
	stream->map = home->slots[slot].tx_map;
	s->num++;
}

bool raw_streams_hear(struct raw_streams *s, struct homa_stream_event *event)
{
	struct homa_shm_ring *ring = &s->area->event;

	if (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == s->head)
		return false;
	*event = s->events[s->head & (s->entries - 1)];
	__atomic_store_n(&ring->head, ++s->head, __ATOMIC_SEQ_CST);
	if (event->slot < s->num_slots)
		__atomic_store_n(&s->slots[event->slot].told, 0,
				 __ATOMIC_SEQ_CST);
	switch (event->kind) {
	case HOMA_STREAM_OPENED:
	case HOMA_STREAM_ACCEPTED:
	case HOMA_STREAM_JOINED:
		remember(s, event);
		break;
	case HOMA_STREAM_LISTENING:
		s->listener = event->slot;
		break;
	}
	return true;
}

/* ---- a stream ---- */

struct homa_stream_slot *raw_stream_words(const struct raw_stream *stream)
{
	return &stream->home->slots[stream->home_slot];
}

bool raw_stream_say(struct raw_streams *s, const struct raw_stream *stream,
		    uint16_t op, uint32_t value)
{
	struct homa_stream_command command = {
		.op = op,
		.slot = stream->slot,
		.generation = stream->generation,
		.value = value,
	};

	return raw_streams_give(s, &command);
}

void raw_stream_ring(struct raw_streams *s, const struct raw_stream *stream)
{
	uint32_t *rung = &s->slots[stream->slot].rung;

	if (!__atomic_exchange_n(rung, 1, __ATOMIC_SEQ_CST) &&
	    !raw_stream_say(s, stream, HOMA_STREAM_RING, 0))
		__atomic_store_n(rung, 0, __ATOMIC_SEQ_CST);
}

/* Returns its buffer for bytes to send that @map says, of at most a span. */
static uint8_t *send_buffer(const struct raw_stream *stream, uint64_t map)
{
	const struct raw_streams *home = stream->home;
	size_t index = 2 * (size_t)stream->home_slot + 1;

	return homa_stream_is_first(map) ?
		       home->firsts + index * HOMA_STREAM_FIRST :
		       home->spans + index * HOMA_STREAM_SPAN;
}

void raw_stream_jump(struct raw_stream *stream, uint32_t shift, uint32_t origin)
{
	const struct homa_stream_slot *words = raw_stream_words(stream);
	uint32_t most = __atomic_load_n(&words->tx_shift, __ATOMIC_ACQUIRE);

	if (stream->end != __atomic_load_n(&words->tx_free, __ATOMIC_ACQUIRE))
		return;
	if (most > HOMA_STREAM_MAX_SHIFT)
		most = HOMA_STREAM_MAX_SHIFT;
	if (shift < HOMA_STREAM_MIN_SHIFT || shift > most)
		return;
	stream->map = homa_stream_map(shift, origin);
}

void raw_stream_write(struct raw_streams *s, struct raw_stream *stream,
		      uint32_t n, uint8_t byte)
{
	struct homa_stream_slot *words = raw_stream_words(stream);
	uint32_t shift = (uint32_t)(stream->map >> 32), used, first;
	uint8_t *buffer = send_buffer(stream, stream->map);

	if (shift < HOMA_STREAM_MIN_SHIFT || shift > HOMA_STREAM_MAX_SHIFT)
		return;
	used = stream->end - __atomic_load_n(&words->tx_free, __ATOMIC_ACQUIRE);
	if (used >= 1u << shift)
		return;
	if (n > (1u << shift) - used)
		n = (1u << shift) - used;
	first = homa_stream_to_end(stream->map, stream->end);
	if (first > n)
		first = n;
	memset(buffer + homa_stream_at(stream->map, stream->end), byte, first);
	memset(buffer, byte, n - first);
	stream->end += n;
	__atomic_store_n(&words->tx_map, stream->map, __ATOMIC_RELEASE);
	__atomic_store_n(&words->tx_end, stream->end, __ATOMIC_RELEASE);
	raw_stream_ring(s, stream);
}

void raw_stream_read(struct raw_streams *s, struct raw_stream *stream)
{
	struct homa_stream_slot *words = raw_stream_words(stream);
	uint32_t end = __atomic_load_n(&words->rx_end, __ATOMIC_ACQUIRE);

	if (end == stream->read)
		return;
	stream->read = end;
	__atomic_store_n(&words->rx_read, end, __ATOMIC_RELEASE);
	raw_stream_ring(s, stream);
}

void raw_stream_forget(struct raw_streams *s, uint32_t i)
{
	if (i < s->num)
		s->mine[i] = s->mine[--s->num];
}
