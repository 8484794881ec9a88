// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The receive window, as peers hear of it. */
#include "tas_impl.h"

u8 tas_scale_for(u32 bytes)
{
	u8 shift = 0;

	while (shift < TAS_WSCALE_MAX && 65535u << shift < bytes)
		shift++;
	return shift;
}

u32 tas_window(const struct tas_conn *conn)
{
	u32 size = tas_rx_size(conn);
	u32 used = conn->f.rcv_nxt - conn->f.rcv_read -
		   !!(conn->f.flags & TAS_F_FIN_IN);
	u32 old = conn->f.rcv_edge - conn->f.rcv_nxt;
	u32 slack = tas_scale_slack(conn);
	/* A segment tells the window rounded up by at most @slack, and the rounded window
	 * must fit into the buffer. */
	u32 room = size > used + slack ? size - used - slack : 0;

	if (tas_before(conn->f.rcv_edge, conn->f.rcv_nxt))
		old = 0;
	room &= ~slack;
	room = homa_min_u32(room, 65535u << conn->f.rcv_wscale);
	/* The window is not opened a little at a time (RFC 9293, 3.8.6.2.2), and never
	 * taken back. */
	if (room < old + homa_min_u32(conn->rcv_mss, size / 2))
		return old;
	return room;
}
