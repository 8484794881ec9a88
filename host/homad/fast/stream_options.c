// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Options that applications set for their streams, and how long they wait for a silent peer. */
#include "fast.h"
#include "homad_tcp.h"
#include "stream_connect.h"
#include "tcp_stream.h"

const char homad_wrong_patience[] =
	"a time to wait for a silent peer that cannot be";

void homad_stream_set_options(struct homad_thread *t,
			      struct homad_stream *stream, u32 options)
{
	struct tas_conn *conn = &stream->conn;
	u32 flags = 0;

	flags |= options & HOMA_STREAM_OPT_NODELAY ? TAS_F_NODELAY : 0;
	flags |= options & HOMA_STREAM_OPT_CORK ? TAS_F_CORK : 0;
	flags |= options & HOMA_STREAM_OPT_KEEPALIVE ? TAS_F_KEEPALIVE : 0;
	conn->f.flags &= ~(u32)(TAS_F_NODELAY | TAS_F_CORK | TAS_F_KEEPALIVE);
	conn->f.flags |= flags;
	stream->resets = options & HOMA_STREAM_OPT_RESET;
	tas_options(homad_engine_of(t->tcp, stream), conn);
	if (unlikely(options & (HOMA_STREAM_OPT_QUICK | HOMA_STREAM_OPT_SLOW)))
		tas_quick_acks(homad_engine_of(t->tcp, stream), conn,
			       options & HOMA_STREAM_OPT_QUICK);
}

const char *homad_stream_set_patience(struct homad_thread *t,
				      struct homad_stream *stream, u64 which,
				      u32 value)
{
	struct tas_conn *conn = &stream->conn;

	if (!homa_stream_may_wait(which, value))
		return homad_wrong_patience;
	if (which == HOMA_STREAM_PATIENCE_USER)
		conn->user_timeout = value * TAS_MSEC;
	else if (which == HOMA_STREAM_PATIENCE_IDLE)
		conn->keep_idle_ms = value * 1000;
	else if (which == HOMA_STREAM_PATIENCE_INTERVAL)
		conn->keep_interval_ms = value * 1000;
	else
		conn->keep_most = (u8)value;
	tas_options(homad_engine_of(t->tcp, stream), conn);
	return NULL;
}
