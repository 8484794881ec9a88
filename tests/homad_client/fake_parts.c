// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* See fake_parts.h. */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fake_parts.h"

int fake_memory(void *mapping, u64 bytes)
{
	int fd = memfd_create("fake", MFD_CLOEXEC);
	void *mem;

	must(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(mem != MAP_FAILED);
	memcpy(mapping, &mem, sizeof(mem));
	return fd;
}

void fake_answer(int conn, const struct homa_ctl_answer *a, const int *fds,
		 u32 num)
{
	fake_answer_of(conn, a, sizeof(*a), fds, num);
}

void fake_answer_of(int conn, const struct homa_ctl_answer *a, size_t bytes,
		    const int *fds, u32 num)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(HOMA_CTL_ATTACH_FDS * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)a, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;
	u32 i;

	if (num) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(num * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(num * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, num * sizeof(int));
	}
	must(sendmsg(conn, &msg, MSG_NOSIGNAL) > 0 || errno == EPIPE);
	for (i = 0; i < num; i++)
		close(fds[i]);
}
