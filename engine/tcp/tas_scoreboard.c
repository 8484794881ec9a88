// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Which of our bytes the peer has behind gaps, and how many are under way by that. */
#include "tas_impl.h"

u32 tas_sacked_bytes(const struct tas_conn *conn)
{
	u32 i, bytes = 0;

	for (i = 0; i < conn->f.sacks; i++)
		bytes += conn->sacked[i].end - conn->sacked[i].start;
	return bytes;
}

static void remove(struct tas_conn *conn, u32 at)
{
	conn->f.sacks--;
	memmove(&conn->sacked[at], &conn->sacked[at + 1],
		(conn->f.sacks - at) * sizeof(conn->sacked[0]));
}

void tas_sacked_trim(struct tas_conn *conn)
{
	while (conn->f.sacks && !tas_after(conn->sacked[0].end, conn->f.snd_una))
		remove(conn, 0);
	if (conn->f.sacks && tas_before(conn->sacked[0].start, conn->f.snd_una))
		conn->sacked[0].start = conn->f.snd_una;
}

/* Adds a block. If there are too many the highest is forgotten: at most its bytes are sent
 * again. */
static void insert(struct tas_conn *conn, struct tas_range block)
{
	u32 at = 0;

	while (at < conn->f.sacks && tas_before(conn->sacked[at].end, block.start))
		at++;
	while (at < conn->f.sacks &&
	       !tas_after(conn->sacked[at].start, block.end)) {
		if (tas_before(conn->sacked[at].start, block.start))
			block.start = conn->sacked[at].start;
		if (tas_after(conn->sacked[at].end, block.end))
			block.end = conn->sacked[at].end;
		remove(conn, at);
	}
	if (conn->f.sacks == TAS_INTERVALS) {
		if (at == TAS_INTERVALS)
			return;
		conn->f.sacks--;
	}
	memmove(&conn->sacked[at + 1], &conn->sacked[at],
		(conn->f.sacks - at) * sizeof(conn->sacked[0]));
	conn->sacked[at] = block;
	conn->f.sacks++;
}

bool tas_sacked(struct tas_conn *conn, const struct tas_segment *seg)
{
	u32 i, before = tas_sacked_bytes(conn);

	for (i = 0; i < seg->num_sacks; i++) {
		struct tas_range block = seg->sack[i];

		/* A duplicate (RFC 2883) or nonsense. Counted from snd_una: of numbers that
		 * lie 2^31 apart each may be behind the other. */
		if (block.start - conn->f.snd_una <= seg->ack - conn->f.snd_una ||
		    block.start - conn->f.snd_una >= block.end - conn->f.snd_una ||
		    block.end - conn->f.snd_una > tas_in_flight(conn))
			continue;
		insert(conn, block);
	}
	return tas_sacked_bytes(conn) > before;
}

/* Number of lost bytes that are still to be sent again. */
static u32 lost_unsent(const struct tas_conn *conn)
{
	u32 i, bytes = conn->rtx_end - conn->rtx_nxt;

	for (i = 0; i < conn->f.sacks; i++) {
		u32 start = conn->sacked[i].start, end = conn->sacked[i].end;

		if (tas_before(start, conn->rtx_nxt))
			start = conn->rtx_nxt;
		if (tas_after(end, conn->rtx_end))
			end = conn->rtx_end;
		if (tas_after(end, start))
			bytes -= end - start;
	}
	return bytes;
}

u32 tas_pipe(const struct tas_conn *conn)
{
	u32 out = tas_in_flight(conn), arrived = tas_sacked_bytes(conn);

	/* Without SACK each duplicate ACK is one segment that has arrived. */
	if (!(conn->f.flags & TAS_F_SACK))
		arrived = homa_min_u32((u32)conn->f.dupacks * conn->f.mss,
				       out > conn->f.mss ? out - conn->f.mss : 0);
	arrived += lost_unsent(conn);
	return out > arrived ? out - arrived : 0;
}
