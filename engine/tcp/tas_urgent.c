// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Urgent data as Linux has it (RFC 6093, 3): the urgent pointer names the byte behind the
 * urgent one. There is one urgent byte at a time in each direction, and a newer one takes
 * the place of an older one. The byte itself goes and comes in its turn, like all others;
 * what a host makes of it is the host's.
 */
#include "tas_impl.h"

/* The longest way that an urgent pointer can show. */
#define FAR 65535u

void tas_urgent_in(struct tas_engine *engine, struct tas_conn *conn,
		   const struct tas_segment *seg)
{
	u32 up = seg->seq + (seg->urgent ? seg->urgent - 1u : 0);

	/* Behind the peer's end there is no byte. */
	if ((conn->f.flags & TAS_F_FIN_IN) || tas_before(up, conn->f.rcv_nxt))
		return;
	/* Segments overtake each other, and are sent again. */
	if ((conn->f.flags & TAS_F_URGENT_IN) && !tas_after(up, conn->rcv_up))
		return;
	conn->rcv_up = up;
	conn->f.flags |= TAS_F_URGENT_IN;
	tas_tell(engine, conn, TAS_EV_URGENT);
}

void tas_urgent_taken(struct tas_conn *conn, u32 upto)
{
	if ((conn->f.flags & TAS_F_URGENT_IN) && tas_after(upto, conn->rcv_up))
		conn->f.flags &= ~(u32)TAS_F_URGENT_IN;
}

bool tas_urgent_at(const struct tas_conn *conn, u32 *position)
{
	*position = conn->rcv_up - conn->irs - 1;
	return conn->f.flags & TAS_F_URGENT_IN;
}

void tas_urgent_out(const struct tas_conn *conn, struct tas_segment *seg)
{
	if (!tas_before(seg->seq, conn->snd_up))
		return;
	/* Who is farther away hears of it first, and where it is later, as in Linux. */
	seg->flags |= TAS_URG;
	seg->urgent = (u16)homa_min_u32(conn->snd_up - seg->seq, FAR);
}

int tas_urge(struct tas_engine *engine, struct tas_conn *conn, u32 end)
{
	s32 ahead = (s32)(conn->iss + 1 + end - conn->f.snd_una);

	if ((conn->f.flags & (TAS_F_FIN | TAS_F_CLOSED)) ||
	    conn->f.state == TAS_CLOSED)
		return TAS_EPIPE;
	if (ahead > (s32)TAS_WRITTEN_MOST)
		return TAS_EINVAL;
	tas_unfold(engine, conn);
	conn->snd_up = conn->f.snd_una + (u32)ahead;
	if (ahead <= 0) {
		conn->f.flags &= ~(u32)TAS_F_URGENT;
		return 0;
	}
	conn->f.flags |= TAS_F_URGENT;
	/* A peer whose window is closed is to hear of it, too (RFC 9293, 3.8.5). */
	if (tas_open(conn) && !tas_after(conn->f.snd_edge, conn->f.snd_nxt))
		tas_owe_ack(engine, conn, true);
	return 0;
}
