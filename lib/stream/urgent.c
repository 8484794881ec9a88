// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Urgent bytes. homad says where the peer's last one is, maybe before it comes (@rx_urgent). What
 * is made of that lies in the slot, too, so that all processes which have the stream agree. The
 * reader alone changes it, as it does the position.
 */
#include <errno.h>
#include <string.h>
#include "stream_fork.h"
#include "stream_impl.h"
#include "stream_urgent.h"

static inline u32 count_of(u64 urgent)
{
	return (u32)(urgent >> 32);
}

static u32 position(const struct homa_stream *stream)
{
	return __atomic_load_n(unlikely(stream->shared_rx) ?
				       &stream->slot->rx_read :
				       &stream->rx_read,
			       __ATOMIC_RELAXED);
}

bool homa_stream_marks(struct homa_stream *stream)
{
	const struct homa_stream_slot *slot = homa_stream_slot(stream);

	return slot && stream->ctx->fork_generation == homa_fork_generation &&
	       unlikely(__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) &
			HOMA_STREAM_HAS_URGENT);
}

/* Is there a mark at or behind @read? */
static bool mark_from(const struct homa_stream *stream, u32 read, u64 *urgent)
{
	const struct homa_stream_slot *slot = stream->slot;

	*urgent = __atomic_load_n(&slot->rx_urgent, __ATOMIC_ACQUIRE);
	return count_of(*urgent) !=
		       __atomic_load_n(&slot->urgent_past, __ATOMIC_ACQUIRE) &&
	       (s32)((u32)*urgent - read) >= 0;
}

bool homa_stream_mark(struct homa_stream *stream, struct homa_stream_mark *mark)
{
	struct homa_stream_view view;
	u32 read;
	u64 urgent;

	if (!homa_stream_marks(stream))
		return false;
	read = position(stream);
	if (!mark_from(stream, read, &urgent))
		return false;
	homa_stream_see_rx(stream, &view);
	mark->ahead = (u32)urgent - read;
	mark->here = mark->ahead < view.bytes;
	mark->given = __atomic_load_n(&stream->slot->urgent_given,
				      __ATOMIC_RELAXED) == count_of(urgent);
	return true;
}

/* ---- reading ---- */

/* Note that bytes up to before @read have been taken. */
static void went_to(struct homa_stream *stream, u32 read)
{
	u64 urgent =
		__atomic_load_n(&stream->slot->urgent_seen, __ATOMIC_RELAXED);

	if ((s32)(read - (u32)urgent) > 0)
		__atomic_store_n(&stream->slot->urgent_past, count_of(urgent),
				 __ATOMIC_RELEASE);
}

static void skip(struct homa_stream *stream)
{
	homa_stream_taken(stream, 1);
	went_to(stream, position(stream));
}

/* Look at the mark. When a newer urgent byte has come while reads had stopped at an older one, that
 * is left out, as it would have been; an older one before which no read has stopped yet becomes a
 * byte like all others. */
static bool look(struct homa_stream *stream, bool inlined, u32 bytes, u64 *urgent)
{
	u32 read = stream->rx_read;
	u64 seen = __atomic_load_n(&stream->slot->urgent_seen, __ATOMIC_RELAXED);
	bool marked = mark_from(stream, read, urgent);

	if (*urgent == seen)
		return marked;
	if (seen && !inlined && bytes && (u32)seen == read &&
	    count_of(seen) != stream->slot->urgent_past)
		skip(stream);
	__atomic_store_n(&stream->slot->urgent_seen, *urgent, __ATOMIC_RELAXED);
	/* All has been read before it was looked at. */
	went_to(stream, stream->rx_read);
	return mark_from(stream, stream->rx_read, urgent);
}

/* The number of bytes that a read may give, of @bytes that are there. An urgent byte at which it
 * stopped before is left out; @left: 1 if that is still to be done. */
static u32 up_to_mark(struct homa_stream *stream, bool inlined, bool peek,
		      u32 bytes, u32 *left)
{
	u64 urgent;
	u32 ahead;

	*left = 0;
	if (!look(stream, inlined, bytes, &urgent))
		return bytes;
	ahead = (u32)urgent - stream->rx_read;
	if (ahead >= bytes || (!ahead && inlined))
		return bytes;
	if (ahead)
		return ahead;
	if (peek)
		*left = 1;
	else
		skip(stream);
	return bytes - 1;
}

/* Copy @bytes from behind @from of the two pieces. */
static size_t copy(const struct iovec *iov, int n, const struct iovec piece[2],
		   size_t from, size_t bytes)
{
	size_t done = 0;
	int i;

	for (i = 0; i < n; i++) {
		size_t at = 0;

		while (at < iov[i].iov_len && done < bytes) {
			size_t place = from + done;
			bool second = place >= piece[0].iov_len;
			size_t in = second ? place - piece[0].iov_len : place;
			size_t some = piece[second].iov_len - in;

			if (some > iov[i].iov_len - at)
				some = iov[i].iov_len - at;
			if (some > bytes - done)
				some = bytes - done;
			memcpy((u8 *)iov[i].iov_base + at,
			       (const u8 *)piece[second].iov_base + in, some);
			at += some;
			done += some;
		}
	}
	return done;
}

static ssize_t read_marked(struct homa_stream *stream, const struct iovec *iov,
			   int n, int peek, bool inlined)
{
	struct homa_stream_view view;
	struct iovec piece[2];
	size_t done = 0;
	bool locked;
	u32 most, left;

	locked = unlikely(stream->shared_rx) && homa_stream_reload_rx(stream);
	homa_stream_see_rx(stream, &view);
	most = up_to_mark(stream, inlined, peek, view.bytes, &left);
	if (most && homa_stream_arrived(stream, piece)) {
		done = copy(iov, n, piece, left, most);
		if (done && !peek) {
			homa_stream_taken(stream, done);
			went_to(stream, stream->rx_read);
		}
	}
	if (unlikely(locked))
		homa_stream_unlock(stream, &stream->slot->rx_lock);
	return most ? (ssize_t)done : homa_stream_nothing(stream, &view);
}

ssize_t homa_stream_read_stopping(struct homa_stream *stream,
				  const struct iovec *iov, int n, int peek,
				  bool inlined)
{
	ssize_t rc = homa_stream_read_unmarked(stream, iov, n, peek);

	return likely(rc != -ESTALE) ?
		       rc :
		       read_marked(stream, iov, n, peek, inlined);
}

int homa_stream_give_urgent(struct homa_stream *stream, char *byte, bool peek)
{
	struct homa_stream_view view;
	struct iovec piece[2], one = { byte, 1 };
	u64 urgent = 0;
	bool locked;
	int rc = -EINVAL;

	if (!homa_stream_marks(stream))
		return -EINVAL;
	locked = unlikely(stream->shared_rx) && homa_stream_reload_rx(stream);
	homa_stream_see_rx(stream, &view);
	if (look(stream, false, view.bytes, &urgent) &&
	    stream->slot->urgent_given != count_of(urgent)) {
		u32 ahead = (u32)urgent - stream->rx_read;

		if (homa_stream_arrived(stream, piece) > ahead) {
			rc = (int)copy(&one, 1, piece, ahead, 1);
			if (!peek)
				__atomic_store_n(&stream->slot->urgent_given,
						 count_of(urgent),
						 __ATOMIC_RELAXED);
		} else {
			rc = homa_stream_nothing(stream, &view);
		}
	}
	if (unlikely(locked))
		homa_stream_unlock(stream, &stream->slot->rx_lock);
	return rc;
}

/* ---- writing ---- */

/* Write to @some as many pieces of @iov as hold its first @bytes bytes. */
static int first(const struct iovec *iov, int n, size_t bytes,
		 struct iovec *some, int most)
{
	int i;

	for (i = 0; i < n && i < most && bytes; i++) {
		some[i] = iov[i];
		if (some[i].iov_len > bytes)
			some[i].iov_len = bytes;
		bytes -= some[i].iov_len;
	}
	return i;
}

static u32 written(const struct homa_stream *stream)
{
	return __atomic_load_n(unlikely(stream->shared_tx) ?
				       &stream->slot->tx_end :
				       &stream->tx_end,
			       __ATOMIC_RELAXED);
}

ssize_t homa_stream_write_urgent(struct homa_stream *stream,
				 const struct iovec *iov, int n)
{
	struct iovec some[8];
	size_t bytes = 0, room;
	u32 from;
	ssize_t rc;
	int i, pieces;

	/* It finds out what forbids to write. */
	rc = homa_stream_write(stream, iov, 0);
	if (rc)
		return rc;
	if (!(stream->ctx->att->queues->features & HOMA_SHM_CAN_URGENT))
		return -EOPNOTSUPP;
	room = homa_stream_writable(stream);
	pieces = first(iov, n, room, some, 8);
	for (i = 0; i < pieces; i++)
		bytes += some[i].iov_len;
	if (!bytes)
		return room ? 0 : -EAGAIN;
	/* It is said before the bytes are there: they may leave at once. */
	from = written(stream);
	rc = homa_stream_tell(stream, HOMA_STREAM_URGENT, from + (u32)bytes);
	if (rc)
		return rc;
	rc = homa_stream_write(stream, some, pieces);
	if (rc > 0 && (size_t)rc < bytes)
		homa_stream_tell(stream, HOMA_STREAM_URGENT, from + (u32)rc);
	return rc;
}
