// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Numbers that cannot be: more descriptors, pieces and bytes than there are.
 */
#include <limits.h>
#include <sys/mman.h>
#include <sys/select.h>
#include "tcp_calls.h"

static void numbers_too_large__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

static void numbers_too_large__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	struct pollfd entry = { .fd = fd, .events = POLLOUT };
	char byte = 0;
	struct iovec piece[2] = { { &byte, 1 }, { &byte, SIZE_MAX } };
	struct msghdr msg = { .msg_iov = piece,
			      .msg_iovlen = (size_t)1 << 32 | 1 };
	/* Times 8 bytes, and with two more, the first is a small number. */
	static volatile nfds_t many[] = { ((nfds_t)1 << 61) - 1,
					  (nfds_t)1 << 31, (nfds_t)-1 };
	static volatile int too_many = IOV_MAX + 1;

	for (int i = 0; i < 3; i++)
		FAILS(poll(&entry, many[i], 0), EINVAL);
	FAILS(select(-1, NULL, NULL, NULL, NULL), EINVAL);
	FAILS(writev(fd, piece, 2), EINVAL);
	FAILS(readv(fd, piece, 2), EINVAL);
	piece[1].iov_len = SSIZE_MAX;
	FAILS(writev(fd, piece, too_many), EINVAL);
	FAILS(sendmsg(fd, &msg, 0), EMSGSIZE);
	FAILS(recvmsg(fd, &msg, 0), EMSGSIZE);
	tcp_greet(fd);
	tcp_close(fd);
}

static void select_of_too_many__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

/* The descriptors that the kernel's table has room for. A process has it from its parent, which may
 * have many. */
static size_t table_size(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	size_t size = 0;

	EXPECT(status);
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "FDSize: %zu", &size) == 1)
			break;
	SAME(fclose(status), 0);
	EXPECT(size >= 64);
	return size;
}

/* The kernel reads no set beyond its table of descriptors, and no page is behind this set. */
static void select_of_too_many__client(struct tcp_end *end)
{
	size_t page = (size_t)MUST(sysconf(_SC_PAGESIZE));
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timeval time = { 0 };
	static volatile int many = INT_MAX;
	int fd = tcp_connect(end);
	fd_set *set;

	EXPECT(memory != MAP_FAILED);
	MUST(mprotect(memory + page, page, PROT_NONE));
	EXPECT(table_size() / 8 <= page);
	set = (fd_set *)(memory + page - table_size() / 8);
	FD_SET(fd, set);
	SAME(select(many, NULL, set, NULL, NULL), 1);
	EXPECT(FD_ISSET(fd, set));
	SAME(select(many, set, NULL, NULL, &time), 0);
	EXPECT(!FD_ISSET(fd, set));
	tcp_greet(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_number_cases[] = { TCP_CASE(numbers_too_large),
					     TCP_CASE(select_of_too_many),
					     { 0 } };
