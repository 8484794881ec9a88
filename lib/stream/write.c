// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Bytes to send. They are written where homad takes them from, and stay there until the
 * peer has them.
 *
 * The buffer grows when homad has put more memory behind it (@tx_shift). The bytes in the
 * first buffer are copied then. Those in a larger one keep their places, which they can when
 * all of them lie between its begin and the next byte to write, so that it goes on behind
 * them where it would have begun again. A writer that may grow soon stops at the end of
 * the old buffer, because only there this is certain to happen.
 */
#include <errno.h>
#include <string.h>
#include "stream_fork.h"
#include "stream_impl.h"

/* A write to a stream with few unsent bytes may take so many. */
#define LEAST_WRITE 4096u

static inline u32 size_of(u64 map)
{
	return map >> 32 ? 1u << (map >> 32) : 0;
}

/* The log2 of the bytes of the send buffer that have memory; 0 if none have. */
static u32 memory_of(struct homa_stream *stream)
{
	u32 shift = __atomic_load_n(&stream->slot->tx_shift, __ATOMIC_RELAXED);

	if (likely(shift >= HOMA_STREAM_MIN_SHIFT &&
		   shift <= HOMA_STREAM_MAX_SHIFT))
		return shift;
	if (shift)
		homa_streams_lose(stream->ctx);
	return 0;
}

/* The bytes from the begin of the buffer to the next byte to write, if it holds @used bytes. */
static u32 filled(u64 map, u32 end, u32 used)
{
	u32 at = size_of(map) ? homa_stream_at(map, end) : 0;

	return !at && used ? size_of(map) : at;
}

/* The most bytes that a write may take of a stream that may have @most unsent ones, if @end is
 * where the next byte goes. As with the kernel a write that may begin takes more than very few. */
static u32 unsent_room(const struct homa_stream *stream, u32 end, u32 most)
{
	const struct homa_stream_slot *slot = stream->slot;
	u32 acked = end - __atomic_load_n(&slot->tx_free, __ATOMIC_ACQUIRE);
	u32 unsent = end - __atomic_load_n(&slot->tx_sent, __ATOMIC_RELAXED);

	if (!(stream->ctx->att->queues->features & HOMA_SHM_CAN_SENT))
		return ~0u;
	/* What the peer has was sent, whatever homad has told of that. */
	unsent = homa_min_u32(unsent, acked);
	if (unsent >= most)
		return 0;
	return homa_max_u32(most - unsent, LEAST_WRITE);
}

void homa_stream_see_tx(struct homa_stream *stream,
			struct homa_stream_view *view, u32 *used)
{
	struct homa_stream_slot *slot = stream->slot;
	bool shared = unlikely(stream->shared_tx);
	u32 end = __atomic_load_n(shared ? &slot->tx_end : &stream->tx_end,
				  __ATOMIC_ACQUIRE);
	u32 shift = memory_of(stream), size, most;

	view->state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
	view->map = __atomic_load_n(shared ? &slot->tx_map : &stream->tx_map,
				    __ATOMIC_RELAXED);
	*used = end - __atomic_load_n(&slot->tx_free, __ATOMIC_ACQUIRE);
	size = size_of(view->map);
	view->bytes = 0;
	if (unlikely(*used > size)) {
		/* The writer, another thread than ours, has gone on since we looked at it: what
		 * homad sent was not written before. */
		if (end != __atomic_load_n(&stream->tx_end, __ATOMIC_RELAXED))
			homa_stream_see_tx(stream, view, used);
		else
			homa_streams_lose(stream->ctx);
		return;
	}
	if (shift > view->map >> 32 && homa_stream_is_first(view->map)) {
		view->map = homa_stream_map(shift, end - *used);
		size = size_of(view->map);
	} else if (shift > view->map >> 32) {
		u32 at = filled(view->map, end, *used);

		if (*used <= at) {
			view->map = homa_stream_map(shift, end - at);
			size = size_of(view->map);
		}
	}
	view->bytes = size - *used;
	most = __atomic_load_n(&stream->tx_most, __ATOMIC_RELAXED);
	if (unlikely(most) && size > most)
		view->bytes = most > *used ? most - *used : 0;
	most = __atomic_load_n(&stream->unsent_most, __ATOMIC_RELAXED);
	if (unlikely(most))
		view->bytes = homa_min_u32(view->bytes,
					   unsent_room(stream, end, most));
}

void homa_stream_look_tx(struct homa_stream *stream,
			 struct homa_stream_view *view, u32 *used)
{
	bool locked = unlikely(stream->shared_tx) && homa_stream_lock_tx(stream);

	homa_stream_see_tx(stream, view, used);
	if (unlikely(locked))
		homa_stream_unlock(stream, &stream->slot->tx_lock);
}

/* The last @used bytes move from the first buffer to the begin of the span. */
static void move(struct homa_stream *stream, u32 used)
{
	u64 map = stream->tx_map;
	u32 from = stream->tx_end - used;
	u32 first = homa_min_u32(used, homa_stream_to_end(map, from));

	memcpy(stream->tx, stream->tx_first + homa_stream_at(map, from), first);
	memcpy(stream->tx + first, stream->tx_first, used - first);
}

/* Tell where the next bytes go. The buffer may grow here, so only the writer calls it. */
static size_t room(struct homa_stream *stream, struct iovec piece[2])
{
	struct homa_stream_view view;
	u32 used, first, at;
	u8 *buffer;

	piece[0] = piece[1] = (struct iovec){ 0 };
	homa_stream_see_tx(stream, &view, &used);
	if (!view.bytes)
		return 0;
	if (unlikely(view.map != stream->tx_map)) {
		if (homa_stream_is_first(stream->tx_map) &&
		    !homa_stream_is_first(view.map))
			move(stream, used);
		__atomic_store_n(&stream->tx_map, view.map, __ATOMIC_RELAXED);
		/* homad sees it at the latest with the position that is stored next, and with it
		 * the bytes that have moved. */
		__atomic_store_n(&stream->slot->tx_map, view.map,
				 __ATOMIC_RELEASE);
	}
	buffer = homa_stream_is_first(view.map) ? stream->tx_first : stream->tx;
	at = homa_stream_at(view.map, stream->tx_end);
	first = homa_min_u32(view.bytes,
			     homa_stream_to_end(view.map, stream->tx_end));
	piece[0] = (struct iovec){ buffer + at, first };
	if (memory_of(stream) > view.map >> 32)
		return first;
	piece[1] = (struct iovec){ buffer, view.bytes - first };
	return view.bytes;
}

static void wrote(struct homa_stream *stream, u32 bytes)
{
	u32 end = stream->tx_end + bytes;

	/* This is stored after the map, so whoever sees this position sees a map for it. */
	__atomic_store_n(&stream->tx_end, end, __ATOMIC_RELEASE);
	__atomic_store_n(&stream->slot->tx_end, end, __ATOMIC_RELEASE);
}

/* Return 0 if bytes may be written to the stream, or the negative errno that forbids it. */
static int may_write(struct homa_stream *stream)
{
	int rc;

	if (stream->kind != HOMA_STREAM_KIND_CONNECTION)
		return -EINVAL;
	rc = homa_stream_failure(stream);
	if (rc)
		return rc;
	if (homa_stream_is_shut(stream))
		return -EPIPE;
	if (!homa_stream_slot(stream)) {
		homa_streams_look(stream->ctx);
		rc = homa_stream_failure(stream);
		if (rc || !homa_stream_slot(stream))
			return rc ? rc : -EAGAIN;
	}
	return 0;
}

/** struct caller_bytes - the bytes of the caller that have not been copied yet */
struct caller_bytes {
	/* The pieces that are left. */
	const struct iovec *iov;
	/* The number of pieces. */
	int n;
	/* The bytes of iov[0] that have been copied. */
	size_t at;
};

static size_t fill(struct caller_bytes *from, const struct iovec *to)
{
	size_t done = 0;

	while (from->n && done < to->iov_len) {
		size_t some = from->iov[0].iov_len - from->at;

		if (some > to->iov_len - done)
			some = to->iov_len - done;
		if (some)
			memcpy((u8 *)to->iov_base + done,
			       (const u8 *)from->iov[0].iov_base + from->at,
			       some);
		from->at += some;
		done += some;
		while (from->n && from->at == from->iov[0].iov_len) {
			from->iov++;
			from->n--;
			from->at = 0;
		}
	}
	return done;
}

ssize_t homa_stream_write(struct homa_stream *stream, const struct iovec *iov,
			  int n)
{
	struct caller_bytes from = { .iov = iov, .n = n };
	struct iovec piece[2];
	size_t done = 0, some;
	bool locked;
	int rc;

	if (n < 0)
		return -EINVAL;
	rc = may_write(stream);
	if (rc)
		return rc;
	while (from.n && from.at == from.iov[0].iov_len) {
		from.iov++;
		from.n--;
	}
	if (!from.n)
		return 0;
	locked = unlikely(stream->shared_tx) && homa_stream_reload_tx(stream);
	while (from.n && room(stream, piece)) {
		some = fill(&from, &piece[0]);
		some += fill(&from, &piece[1]);
		wrote(stream, (u32)some);
		done += some;
	}
	if (unlikely(locked))
		homa_stream_unlock(stream, &stream->slot->tx_lock);
	if (!done)
		return -EAGAIN;
	homa_stream_ring(stream);
	return (ssize_t)done;
}

size_t homa_stream_room(struct homa_stream *stream, struct iovec piece[2])
{
	piece[0] = piece[1] = (struct iovec){ 0 };
	return may_write(stream) ? 0 : room(stream, piece);
}

int homa_stream_written(struct homa_stream *stream, size_t bytes)
{
	u32 used;
	int rc = may_write(stream);

	if (rc || !bytes)
		return rc;
	/* The buffer stays as it was when homa_stream_room() said where the bytes belong. */
	used = stream->tx_end -
	       __atomic_load_n(&stream->slot->tx_free, __ATOMIC_ACQUIRE);
	if (used > size_of(stream->tx_map) ||
	    bytes > size_of(stream->tx_map) - used)
		return -EINVAL;
	wrote(stream, (u32)bytes);
	return homa_stream_ring(stream);
}

/* ---- how many bytes may wait ---- */

void homa_stream_limit_send(struct homa_stream *stream, uint32_t most)
{
	__atomic_store_n(&stream->tx_most, most, __ATOMIC_RELAXED);
}

void homa_stream_limit_unsent(struct homa_stream *stream, uint32_t most)
{
	__atomic_store_n(&stream->unsent_most, most, __ATOMIC_RELAXED);
}

bool homa_stream_send_is_first(const struct homa_stream *stream)
{
	const struct homa_stream_slot *slot = homa_stream_slot(stream);
	u64 map = __atomic_load_n(unlikely(stream->shared_tx) && slot ?
					  &slot->tx_map :
					  &stream->tx_map,
				  __ATOMIC_RELAXED);

	/* Nothing was written yet if it is 0. */
	return map >> 32 <= HOMA_STREAM_MIN_SHIFT;
}

bool homa_stream_send_grows(const struct homa_stream *stream)
{
	const struct homa_stream_slot *slot = homa_stream_slot(stream);
	u32 most = __atomic_load_n(&stream->tx_most, __ATOMIC_RELAXED);
	u32 unsent = __atomic_load_n(&stream->unsent_most, __ATOMIC_RELAXED);

	if (!slot || stream->ctx->fork_generation != homa_fork_generation)
		return false;
	return homa_stream_send_is_first(stream) &&
	       !__atomic_load_n(&slot->tx_stays, __ATOMIC_ACQUIRE) &&
	       (!most || most > HOMA_STREAM_FIRST) &&
	       (!unsent || unsent > HOMA_STREAM_FIRST);
}
