// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Bytes that have arrived. They lie where homad put them until they are taken.
 *
 * homad learns that there is room again from a doorbell. Each costs a command, so there is
 * one when an eighth of the buffer has been taken since the last (a doorbell for bytes
 * written counts, too: homad looks at both positions then). So what homad does not know
 * of is less than an eighth, and a peer whose window is closed by it cannot be: 7/8 of the
 * buffer are open to it when the reader has taken all. Only where the buffer was nearly
 * full, the window may have been closed, and the peer waits for one segment's room.
 */
#include <errno.h>
#include <string.h>
#include "stream_fork.h"
#include "stream_impl.h"

static inline u32 size_of(u64 map)
{
	return 1u << (map >> 32);
}

void homa_stream_see_rx(struct homa_stream *stream, struct homa_stream_view *view)
{
	struct homa_stream_slot *slot = stream->slot;
	u32 read =
		__atomic_load_n(unlikely(stream->shared_rx) ? &slot->rx_read :
							      &stream->rx_read,
				__ATOMIC_RELAXED);
	u64 shift;

	/* The state is read first: if it says that the stream has ended, @rx_end is the end. */
	view->state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
	view->bytes = __atomic_load_n(&slot->rx_end, __ATOMIC_ACQUIRE) - read;
	view->map = 0;
	if (!view->bytes)
		return;
	/* The acquire makes the bytes visible that homad copied before it stored the map. */
	view->map = __atomic_load_n(&slot->rx_map, __ATOMIC_ACQUIRE);
	shift = view->map >> 32;
	if (likely(shift >= HOMA_STREAM_MIN_SHIFT &&
		   shift <= HOMA_STREAM_MAX_SHIFT &&
		   view->bytes <= size_of(view->map)))
		return;
	/* The reader, another thread than ours, has gone on since we looked at it: homad could
	 * not have had room before. */
	if (read != __atomic_load_n(&stream->rx_read, __ATOMIC_RELAXED)) {
		homa_stream_see_rx(stream, view);
		return;
	}
	homa_streams_lose(stream->ctx);
	view->bytes = 0;
}

int homa_stream_failure(struct homa_stream *stream)
{
	struct homa_stream_slot *slot;
	u32 error;

	if (homa_streams_usable(stream->ctx))
		return -ECONNRESET;
	error = __atomic_load_n(&stream->error, __ATOMIC_ACQUIRE);
	slot = homa_stream_slot(stream);
	if (!error && slot &&
	    (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) &
	     HOMA_STREAM_HAS_ERROR)) {
		error = __atomic_load_n(&slot->error, __ATOMIC_RELAXED);
		if (!error)
			error = ECONNRESET;
	}
	return -(int)(error & 0xfff);
}

/* Write the bytes that @view shows as pieces of memory. Only the reader calls it. */
static size_t pieces(const struct homa_stream *stream,
		     const struct homa_stream_view *view, struct iovec piece[2])
{
	u8 *buffer =
		homa_stream_is_first(view->map) ? stream->rx_first : stream->rx;
	u32 at, first;

	piece[0] = piece[1] = (struct iovec){ 0 };
	if (!view->bytes)
		return 0;
	at = homa_stream_at(view->map, stream->rx_read);
	first = homa_min_u32(view->bytes,
			     homa_stream_to_end(view->map, stream->rx_read));
	piece[0] = (struct iovec){ buffer + at, first };
	piece[1] = (struct iovec){ buffer, view->bytes - first };
	return view->bytes;
}

static void took(struct homa_stream *stream,
		 const struct homa_stream_view *view, u32 bytes)
{
	struct homa_stream_slot *slot = stream->slot;
	u32 need = size_of(view->map) / 8, read = stream->rx_read + bytes, mss;

	__atomic_store_n(&stream->rx_read, read, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->rx_read, read, __ATOMIC_RELEASE);
	/* A peer that sends no more needs no window. */
	if (view->state & (HOMA_STREAM_HAS_END | HOMA_STREAM_HAS_ERROR))
		return;
	if (view->bytes > size_of(view->map) - need) {
		mss = __atomic_load_n(&slot->mss, __ATOMIC_RELAXED);
		need = homa_min_u32(need, mss ? mss : 1);
	}
	if (read - __atomic_load_n(&stream->rx_rung, __ATOMIC_RELAXED) >= need)
		homa_stream_ring(stream);
}

int homa_stream_nothing(struct homa_stream *stream,
			const struct homa_stream_view *view)
{
	int rc;

	if (view->state & HOMA_STREAM_HAS_END)
		return 0;
	rc = homa_stream_failure(stream);
	return rc ? rc : -EAGAIN;
}

static size_t copy(const struct iovec *iov, int n, const struct iovec *piece)
{
	size_t done = 0, in = 0;
	int i, p = 0;

	for (i = 0; i < n; i++) {
		size_t at = 0;

		while (at < iov[i].iov_len && p < 2) {
			size_t some = iov[i].iov_len - at;

			if (some > piece[p].iov_len - in)
				some = piece[p].iov_len - in;
			if (some)
				memcpy((u8 *)iov[i].iov_base + at,
				       (const u8 *)piece[p].iov_base + in, some);
			at += some;
			in += some;
			done += some;
			if (in == piece[p].iov_len) {
				in = 0;
				p++;
			}
		}
	}
	return done;
}

/* Take the first @bytes, which are there, off the pieces. */
static void skip(struct iovec piece[2], size_t bytes)
{
	size_t some = bytes < piece[0].iov_len ? bytes : piece[0].iov_len;

	piece[0].iov_base = (u8 *)piece[0].iov_base + some;
	piece[0].iov_len -= some;
	piece[1].iov_base = (u8 *)piece[1].iov_base + (bytes - some);
	piece[1].iov_len -= bytes - some;
}

/* @stops: do not read from a stream to which the peer has ever sent urgent bytes (-ESTALE).
 * @offset: peek from there on. */
static inline ssize_t read_from(struct homa_stream *stream,
				const struct iovec *iov, int n, int peek,
				bool stops, size_t offset)
{
	struct homa_stream_view view = { .state = 0 };
	struct iovec piece[2];
	size_t done;
	bool locked;

	if (stream->kind != HOMA_STREAM_KIND_CONNECTION || n < 0)
		return -EINVAL;
	if (stream->ctx->fork_generation != homa_fork_generation)
		return -ECONNRESET;
	if (!homa_stream_slot(stream)) {
		homa_streams_look(stream->ctx);
		if (!homa_stream_slot(stream))
			return homa_stream_nothing(stream, &view);
	}
	locked = unlikely(stream->shared_rx) && homa_stream_reload_rx(stream);
	homa_stream_see_rx(stream, &view);
	/* homad says that a byte is urgent before it shows the byte. */
	if (stops &&
	    unlikely(__atomic_load_n(&stream->slot->state, __ATOMIC_ACQUIRE) &
		     HOMA_STREAM_HAS_URGENT)) {
		if (locked)
			homa_stream_unlock(stream, &stream->slot->rx_lock);
		return -ESTALE;
	}
	done = pieces(stream, &view, piece);
	if (unlikely(offset) && done > offset)
		skip(piece, offset);
	done = done > offset ? copy(iov, n, piece) : 0;
	if (done && !peek)
		took(stream, &view, (u32)done);
	if (unlikely(locked))
		homa_stream_unlock(stream, &stream->slot->rx_lock);
	return view.bytes > offset ? (ssize_t)done :
				     homa_stream_nothing(stream, &view);
}

ssize_t homa_stream_read(struct homa_stream *stream, const struct iovec *iov,
			 int n, int peek)
{
	return read_from(stream, iov, n, peek, false, 0);
}

ssize_t homa_stream_read_unmarked(struct homa_stream *stream,
				  const struct iovec *iov, int n, int peek)
{
	return read_from(stream, iov, n, peek, true, 0);
}

ssize_t homa_stream_peek_at(struct homa_stream *stream, const struct iovec *iov,
			    int n, size_t offset)
{
	return read_from(stream, iov, n, 1, false, offset);
}

size_t homa_stream_arrived(struct homa_stream *stream, struct iovec piece[2])
{
	struct homa_stream_view view;

	piece[0] = piece[1] = (struct iovec){ 0 };
	if (stream->ctx->fork_generation != homa_fork_generation ||
	    !homa_stream_slot(stream))
		return 0;
	homa_stream_see_rx(stream, &view);
	return pieces(stream, &view, piece);
}

bool homa_stream_is_full(struct homa_stream *stream)
{
	struct homa_stream_slot *slot = homa_stream_slot(stream);
	struct homa_stream_view view;
	u32 size, used, mss;

	if (stream->ctx->fork_generation != homa_fork_generation || !slot)
		return false;
	homa_stream_see_rx(stream, &view);
	if (!view.bytes)
		return false;
	size = size_of(view.map);
	/* homad does not know of what was taken since the last doorbell. */
	used = view.bytes + __atomic_load_n(&stream->rx_read, __ATOMIC_RELAXED) -
	       __atomic_load_n(&stream->rx_rung, __ATOMIC_RELAXED);
	mss = __atomic_load_n(&slot->mss, __ATOMIC_RELAXED);
	return used > size - homa_min_u32(mss ? mss : 1, size / 4);
}

void homa_stream_taken(struct homa_stream *stream, size_t bytes)
{
	struct homa_stream_view view;

	if (!bytes || stream->ctx->fork_generation != homa_fork_generation ||
	    !homa_stream_slot(stream))
		return;
	homa_stream_see_rx(stream, &view);
	if (bytes > view.bytes)
		bytes = view.bytes;
	if (bytes)
		took(stream, &view, (u32)bytes);
}
