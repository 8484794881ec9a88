// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams that other processes have, too. Who reads or writes one takes a lock in its slot
 * and goes on where the last one stopped. homad opens the locks of a process that ends, so
 * nobody waits for the dead. Positions are stored when the bytes are copied, in one store
 * each, so what a killed process leaves is whole. When homad says that nobody else has the
 * stream any more, its next use is the last that takes the lock.
 */
#include "stream_fork.h"
#include "stream_impl.h"

void homa_stream_share(struct homa_stream *stream)
{
	stream->shared_rx = stream->shared_tx = true;
}

bool homa_stream_is_shared(const struct homa_stream *stream)
{
	const struct homa_stream_slot *slot = homa_stream_slot(stream);

	return slot && __atomic_load_n(&slot->holders, __ATOMIC_SEQ_CST) > 1;
}

void *homa_stream_common(const struct homa_stream *stream)
{
	struct homa_stream_slot *slot = homa_stream_slot(stream);

	if (stream->ctx->fork_generation != homa_fork_generation)
		return NULL;
	return slot ? slot->common : NULL;
}

/* Take the lock @word of the slot; false if homad is gone, when all calls fail anyway. */
static bool lock(struct homa_stream *stream, u32 *word)
{
	struct homa_streams *ctx = stream->ctx;
	u32 turns = 0, nobody = 0;

	while (!__atomic_compare_exchange_n(word, &nobody, ctx->id, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		nobody = 0;
		if (homa_streams_gone(ctx))
			return false;
		homa_streams_pause(ctx, &turns);
	}
	return true;
}

bool homa_stream_lock_rx(struct homa_stream *stream)
{
	return lock(stream, &stream->slot->rx_lock);
}

bool homa_stream_lock_tx(struct homa_stream *stream)
{
	return lock(stream, &stream->slot->tx_lock);
}

void homa_stream_unlock(struct homa_stream *stream, u32 *word)
{
	u32 ours = stream->ctx->id;

	/* homad may have opened the lock, if it has ended this attachment. */
	__atomic_compare_exchange_n(word, &ours, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

/* Does only this process have the stream? If so, all that others did to it is visible here. */
static bool is_alone(const struct homa_stream *stream)
{
	return __atomic_load_n(&stream->slot->holders, __ATOMIC_SEQ_CST) == 1;
}

bool homa_stream_reload_rx(struct homa_stream *stream)
{
	const struct homa_stream_slot *slot = stream->slot;
	bool alone;

	if (!homa_stream_lock_rx(stream))
		return false;
	alone = is_alone(stream);
	__atomic_store_n(&stream->rx_read,
			 __atomic_load_n(&slot->rx_read, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&stream->rx_rung,
			 __atomic_load_n(&slot->rx_rung, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	if (alone)
		stream->shared_rx = false;
	return true;
}

bool homa_stream_reload_tx(struct homa_stream *stream)
{
	const struct homa_stream_slot *slot = stream->slot;
	bool alone;

	if (!homa_stream_lock_tx(stream))
		return false;
	alone = is_alone(stream);
	__atomic_store_n(&stream->tx_end,
			 __atomic_load_n(&slot->tx_end, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&stream->tx_map,
			 __atomic_load_n(&slot->tx_map, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	if (alone)
		stream->shared_tx = false;
	return true;
}

bool homa_stream_is_shut(const struct homa_stream *stream)
{
	if (__atomic_load_n(&stream->shut, __ATOMIC_RELAXED))
		return true;
	return unlikely(stream->shared_tx) &&
	       __atomic_load_n(&stream->slot->shut, __ATOMIC_RELAXED);
}
