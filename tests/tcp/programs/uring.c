// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What io_uring_setup() gives, by the C library's syscall() and, with "raw", by an instruction
 * of the program's own: "ring", or the name of an error. Before that, that syscall() passes all of
 * its arguments on and tells errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls with no argument, with six, and one that fails. */
static int is_transparent(void)
{
	char *page;

	if (syscall(SYS_getpid) != getpid())
		return 0;
	page = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 0;
	page[4095] = 1;
	errno = 0;
	return !munmap(page, 4096) && syscall(SYS_close, -1) == -1 &&
	       errno == EBADF;
}

static long raw(long number, long first, void *second)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second)
			 : "rcx", "r11", "memory");
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
#else
	return syscall(number, first, second);
#endif
}

int main(int argc, char **argv)
{
	/* struct io_uring_params has 120 bytes. */
	char params[120] = "";
	long fd;

	if (!is_transparent()) {
		printf("syscall() is not what it was\n");
		return 1;
	}
	fd = argc > 1 && !strcmp(argv[1], "raw") ?
		     raw(SYS_io_uring_setup, 4, params) :
		     syscall(SYS_io_uring_setup, 4, params);
	printf("%s\n", fd >= 0 ? "ring" : strerrorname_np(errno));
	return 0;
}
