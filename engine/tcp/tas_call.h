/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a host tells the engine most often: its application has written, or has taken what was
 * there. On a connection in the short form (tas_short.c) both are a few instructions, and are
 * done where they are called; the rest is tas_state.c's and tas_data.c's.
 *
 * Written by: nobody; it defines no struct.
 */
#ifndef HOMA_TAS_CALL_H
#define HOMA_TAS_CALL_H

#include "tas_engine.h"

/* tas_written() and tas_taken(), whatever the connection is like. */
int tas_written_other(struct tas_engine *engine, struct tas_conn *conn,
		      u32 bytes);
void tas_taken_other(struct tas_engine *engine, struct tas_conn *conn, u32 bytes);

/** tas_written() - the application has put @bytes more into its send buffer; returns 0,
 *  TAS_EPIPE if it has shut down or the connection has ended, or TAS_EINVAL if more than
 *  1 GiB would wait */
static inline int tas_written(struct tas_engine *engine, struct tas_conn *conn,
			      u32 bytes)
{
	struct tas_flow *f = &conn->f;
	u32 end = f->snd_end;

	/* In the short form it is open, and has not been shut down. */
	if (unlikely(!(f->flags & TAS_F_SHORT) ||
		     bytes - 1 >= f->snd_una + TAS_WRITTEN_MOST - end))
		return tas_written_other(engine, conn, bytes);
	f->snd_end = end + bytes;
	if (likely(!homa_list_linked(&f->tx)))
		homa_list_add_tail(&engine->tx, &f->tx);
	return 0;
}

/** tas_taken() - the application has taken @bytes out of its receive buffer */
static inline void tas_taken(struct tas_engine *engine, struct tas_conn *conn,
			     u32 bytes)
{
	struct tas_flow *f = &conn->f;
	u32 read = f->rcv_read;

	if (unlikely((f->flags & TAS_F_TAKES) != TAS_F_SHORT ||
		     bytes > f->rcv_nxt - read ||
		     !tas_before(f->rcv_nxt, conn->rcv_low)))
		tas_taken_other(engine, conn, bytes);
	else
		f->rcv_read = read + bytes;
}

#endif
