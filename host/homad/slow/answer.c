// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Answers to clients, which may read them late or never. Sends never block; an
 * answer that does not fit into the socket waits in the client's outbox, and
 * until it has gone no further request of this client is read. So a client that
 * does not read holds one answer's memory, which is on its user's account, and
 * nobody waits for it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attach.h"

void homad_answer(struct homad_client *client,
		  const struct homa_ctl_answer *answer, const int *fds,
		  u32 num_fds, void *records, size_t count, size_t record)
{
	struct homad_outbox *out = &client->out;

	out->pending = true;
	out->first_sent = false;
	out->answer = *answer;
	out->answer.version = client->version;
	out->num_fds = num_fds;
	if (num_fds)
		memcpy(out->fds, fds, num_fds * sizeof(*fds));
	out->records = records;
	out->record = record;
	out->bytes = count * record;
	out->sent = 0;
	homad_account(client->user, out->bytes);
}

void homad_answer_error(struct homad_client *client, u16 op, int error,
			const char *format, ...)
{
	struct homa_ctl_answer answer = { .error = error, .op = op };
	va_list args;

	va_start(args, format);
	vsnprintf(answer.text, sizeof(answer.text), format, args);
	va_end(args);
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

static void close_fds(struct homad_outbox *out)
{
	u32 i;

	for (i = 0; i < out->num_fds; i++)
		close(out->fds[i]);
	out->num_fds = 0;
}

void homad_answer_drop(struct homad_client *client)
{
	struct homad_outbox *out = &client->out;

	if (!out->pending)
		return;
	close_fds(out);
	free(out->records);
	out->records = NULL;
	homad_settle(client->user, out->bytes);
	out->bytes = 0;
	out->pending = false;
}

static int send_first(struct homad_client *client)
{
	struct homad_outbox *out = &client->out;
	union {
		/* It aligns @bytes. */
		struct cmsghdr align;
		/* Room for the descriptors. */
		char bytes[CMSG_SPACE(sizeof(out->fds))];
	} control;
	struct iovec iov = { &out->answer, sizeof(out->answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (out->num_fds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(out->num_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(out->num_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), out->fds, out->num_fds * sizeof(int));
	}
	if (sendmsg(client->conn.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	close_fds(out);
	out->first_sent = true;
	return 0;
}

static int send_records(struct homad_client *client)
{
	struct homad_outbox *out = &client->out;
	size_t length;

	while (out->sent < out->bytes) {
		length = out->bytes - out->sent;
		if (length > HOMA_CTL_BATCH * out->record)
			length = HOMA_CTL_BATCH * out->record;
		if (send(client->conn.fd, out->records + out->sent, length,
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return -errno;
		out->sent += length;
	}
	return 0;
}

int homad_answer_flush(struct homad_client *client)
{
	struct homad_outbox *out = &client->out;
	int rc;

	if (!out->pending)
		return 0;
	rc = out->first_sent ? 0 : send_first(client);
	if (!rc)
		rc = send_records(client);
	/* ETOOMANYREFS: too many descriptors are in flight, ours or those of the client's
	 * user. */
	if (rc == -EAGAIN || rc == -EINTR || rc == -ENOBUFS)
		return 1;
	homad_answer_drop(client);
	return rc;
}
