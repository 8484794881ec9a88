// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Whether as many bytes have arrived as a reader waits for (SO_RCVLOWAT, MSG_WAITALL). */
#include "stream_fork.h"
#include "tcp.h"

/* The number of bytes from which on a full buffer does not grow before some are read. */
#define USUAL_BYTES 32768

bool homa_pl_tcp_has(struct homa_stream *stream, size_t least)
{
	struct iovec piece[2];
	size_t bytes = homa_stream_arrived(stream, piece);

	return bytes >= least ||
	       (bytes >= USUAL_BYTES && homa_stream_is_full(stream));
}
