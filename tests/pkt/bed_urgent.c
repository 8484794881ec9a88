// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Urgent bytes at the bed's sockets, as Linux hands them to programs. */
#include <errno.h>
#include <poll.h>
#include "bed_impl.h"

/* Is there an urgent byte before which reads stop? @away: how far it is from the next byte. */
static bool ahead(const struct bed_socket *s, u32 *away)
{
	u32 at;

	if (!s->conn || !tas_urgent_at(s->conn, &at))
		return false;
	*away = at - s->read;
	return true;
}

u32 bed_urgent_stops(const struct bed_socket *s, u32 length, u32 *skip)
{
	u32 away;

	*skip = 0;
	if (!ahead(s, &away) || away >= tas_readable(s->conn))
		return length;
	if (away)
		return homa_min_u32(length, away);
	*skip = !s->oob_inline;
	return length;
}

int bed_urgent_read(struct bed_socket *s, bool peek)
{
	u32 away, at;

	if (s->oob_inline || !ahead(s, &away))
		return -EINVAL;
	at = s->read + away;
	if (s->urgent_read && s->urgent_read_at == at)
		return -EINVAL;
	if (away >= tas_readable(s->conn))
		return -EAGAIN;
	if (!peek) {
		s->urgent_read = true;
		s->urgent_read_at = at;
	}
	return bed_byte(s, at) == (u8)(at % BED_PATTERN) ? 1 : -EBADMSG;
}

int bed_urgent_poll(const struct bed_socket *s)
{
	u32 away, least = 1;
	int events = 0;

	if (ahead(s, &away) && !away && !s->oob_inline)
		least++;
	if (tas_readable(s->conn) >= least)
		events |= POLLIN | POLLRDNORM;
	if (ahead(s, &away) && away < tas_readable(s->conn) &&
	    !(s->urgent_read && s->urgent_read_at == s->read + away))
		events |= POLLPRI;
	return events;
}

bool bed_urgent_mark(const struct bed_socket *s)
{
	u32 away;

	return ahead(s, &away) && !away;
}
