// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A question to homad over the attach socket: one packet there, one back, one
 * question at a time. No answer within seconds counts as homad's end: an answer that
 * comes later would be taken for that of another question. Whoever asks decides what
 * that end means for the handle.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "client.h"
#include "svc_att.h"

static void keep_fds(struct msghdr *msg, int *fds, u32 num_fds)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		u32 i, n;

		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		n = (u32)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int),
			       sizeof(fd));
			if (i < num_fds && fds[i] < 0)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

int homa_svc_tell_fd(struct homa_svc_att *att, struct homa_ctl_request *request,
		     int fd)
{
	union {
		/* It aligns @bytes. */
		struct cmsghdr align;
		/* Room for one descriptor. */
		char bytes[CMSG_SPACE(sizeof(fd))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { request, sizeof(*request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;
	ssize_t n;

	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	request->magic = HOMA_SHM_MAGIC;
	request->version = HOMA_SHM_VERSION;
	do {
		n = sendmsg(att->sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	/* The kernel has no room for a descriptor on its way; homad is well. */
	if (fd >= 0 &&
	    (errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM))
		return -errno;
	return -ECONNRESET;
}

int homa_svc_tell(struct homa_svc_att *att, struct homa_ctl_request *request)
{
	return homa_svc_tell_fd(att, request, -1);
}

int homa_svc_hear(struct homa_svc_att *att, u16 op,
		  struct homa_ctl_answer *answer, int *fds, u32 num_fds)
{
	union {
		/* It aligns @bytes. */
		struct cmsghdr align;
		/* Room for the descriptors of any answer. */
		char bytes[CMSG_SPACE(HOMA_CTL_IMPORT_FDS * sizeof(int))];
	} control;
	struct iovec iov = { answer, sizeof(*answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;
	u32 i;

	for (i = 0; i < num_fds; i++)
		fds[i] = -1;
	do {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control);
		n = recvmsg(att->sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		keep_fds(&msg, fds, num_fds);
	/* A homad of another version may refuse with an answer of another length. */
	if (n < (ssize_t)offsetof(struct homa_ctl_answer, port))
		goto bad;
	memset((char *)answer + n, 0, sizeof(*answer) - (size_t)n);
	answer->text[sizeof(answer->text) - 1] = '\0';
	if (homa_svc_same_major(answer->version) && answer->op != op)
		goto bad;
	return 0;
bad:
	for (i = 0; i < num_fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return -ECONNRESET;
}

int homa_svc_ask(struct homa_svc_att *att, struct homa_ctl_request *request,
		 struct homa_ctl_answer *answer, int *fds, u32 num_fds)
{
	int rc = homa_svc_tell(att, request);

	return rc ? rc : homa_svc_hear(att, request->op, answer, fds, num_fds);
}
