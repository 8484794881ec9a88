// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What can be done with a received message besides giving it back: its bytes in one
 * piece, and a name for a request that outlives the message. A name holds what hosts
 * need of a message to answer it, and a sum over that, so that bytes that were never a
 * name are noticed. It is no protection against somebody who makes names: he is in our
 * process.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "libhoma_impl.h"

size_t homa_copy(const struct homa_message *msg, void *buf, size_t size)
{
	size_t done = 0;
	int i;

	for (i = 0; i < msg->iovcnt && done < size; i++) {
		size_t n = msg->iov[i].iov_len;

		if (n > size - done)
			n = size - done;
		memcpy((char *)buf + done, msg->iov[i].iov_base, n);
		done += n;
	}
	return done;
}

const void *homa_view(const struct homa_message *msg, void *buf, size_t size)
{
	int i;

	if (msg->iovcnt == 0)
		return buf ? buf : "";
	for (i = 1; i < msg->iovcnt; i++)
		if ((char *)msg->iov[i - 1].iov_base + msg->iov[i - 1].iov_len !=
		    msg->iov[i].iov_base)
			break;
	if (i == msg->iovcnt)
		return msg->iov[0].iov_base;
	if (!buf || size < msg->length)
		return NULL;
	homa_copy(msg, buf, size);
	return buf;
}

/* ---- names of requests ---- */

_Static_assert(sizeof(((struct homa_ticket *)0)->peer) >=
		       sizeof(struct sockaddr_in6),
	       "any address fits");
_Static_assert(sizeof(struct homa_ticket) == 64, "public ABI");

/* The FNV-1a hash of all fields before the sum. */
static uint32_t sum(const struct homa_ticket *ticket)
{
	const unsigned char *bytes = (const unsigned char *)ticket;
	uint32_t value = 2166136261u;
	size_t i;

	for (i = 0; i < offsetof(struct homa_ticket, check); i++)
		value = (value ^ bytes[i]) * 16777619u;
	return value;
}

int homa_ticket_get(const struct homa_message *request, struct homa_ticket *ticket)
{
	if (!request || !ticket || request->kind != HOMA_REQUEST)
		return homa_fail(
			NULL, -EINVAL,
			"homa_ticket_get: this is not a request, or there is no place for its name");
	memset(ticket, 0, sizeof(*ticket));
	ticket->handle = request->priv[HOMA_PRIV_HANDLE];
	ticket->id = request->id;
	ticket->host[0] = request->priv[HOMA_PRIV_HOST];
	ticket->host[1] = request->priv[HOMA_PRIV_HOST + 1];
	memcpy(ticket->peer, &request->peer, sizeof(ticket->peer));
	ticket->check = sum(ticket);
	return 0;
}

/*
 * Fill in as much of the message as an answer needs. @h may be NULL. Returns 0, or -EINVAL,
 * which is remembered as an error of @h.
 */
static int resolve(const struct homa *h, const char *op,
		   const struct homa_ticket *ticket, struct homa_message *msg)
{
	if (!ticket || ticket->check != sum(ticket))
		return homa_fail(h, -EINVAL,
				 "%s: this is not the name of a request", op);
	msg->kind = HOMA_REQUEST;
	msg->iovcnt = 0;
	msg->length = 0;
	msg->id = ticket->id;
	memset(&msg->peer, 0, sizeof(msg->peer));
	memcpy(&msg->peer, ticket->peer, sizeof(ticket->peer));
	msg->priv[HOMA_PRIV_HOST] = ticket->host[0];
	msg->priv[HOMA_PRIV_HOST + 1] = ticket->host[1];
	msg->priv[HOMA_PRIV_HANDLE] = ticket->handle;
	msg->priv[HOMA_PRIV_HELD] = 0;
	return 0;
}

int homa_ticket_reply(struct homa *h, const struct homa_ticket *ticket,
		      const void *buf, size_t length)
{
	struct homa_message msg;
	int rc = resolve(h, "homa_ticket_reply", ticket, &msg);

	return rc ? rc : homa_reply(h, &msg, buf, length);
}

int homa_ticket_reject(struct homa *h, const struct homa_ticket *ticket, int error)
{
	struct homa_message msg;
	int rc = resolve(h, "homa_ticket_reject", ticket, &msg);

	return rc ? rc : homa_reject(h, &msg, error);
}

int homa_ticket_alive(struct homa *h, const struct homa_ticket *ticket)
{
	struct homa_message msg;
	int rc = resolve(h, "homa_ticket_alive", ticket, &msg);

	return rc ? rc : homa_alive(h, &msg);
}
