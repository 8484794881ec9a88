// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hooks of stdio. The C library reads and writes the descriptor of a FILE by calls of its own,
 * which cannot be replaced. So fdopen() of a TCP socket makes a FILE that reads, writes and
 * closes by functions of ours. A program that is run with such sockets as its standard streams,
 * or puts them there by dup2(), gets FILEs of this kind for them. fileno() tells the descriptor
 * as always.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>
#include "hook.h"
#include "tcp.h"

static int fd_of(void *cookie)
{
	return (int)(intptr_t)cookie;
}

static ssize_t read_socket(void *cookie, char *to, size_t size)
{
	return read(fd_of(cookie), to, size);
}

/* Write all; returns how much was written before an error. */
static size_t write_all(int fd, const char *from, size_t size)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = write(fd, from + done, size - done);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static ssize_t write_socket(void *cookie, const char *from, size_t size)
{
	return (ssize_t)write_all(fd_of(cookie), from, size);
}

static int close_socket(void *cookie)
{
	return close(fd_of(cookie));
}

static bool is_tcp(int fd)
{
	struct homa_pl_sock *s = fd < 0 ? NULL : homa_pl_find(fd);
	bool is = s && s->tcp;

	if (s)
		homa_pl_put(s);
	return is;
}

static FILE *open_socket(int fd, const char *mode)
{
	static const cookie_io_functions_t calls = {
		.read = read_socket,
		.write = write_socket,
		.close = close_socket,
	};
	FILE *file = fopencookie((void *)(intptr_t)fd, mode, calls);

	/* Nothing but fileno() looks at it in such a FILE. */
	if (file)
		file->_fileno = fd;
	return file;
}

HOMA_PL_HOOK FILE *fdopen(int fd, const char *mode)
{
	if (HOMA_PL_LIKELY(!homa_pl_live) || !is_tcp(fd))
		return HOMA_PL_REAL(fdopen)(fd, mode);
	return open_socket(fd, mode);
}

/* Give @to what the program has written to @from and the C library has not. */
static void carry_over(FILE *from, FILE *to)
{
	size_t left = __fpending(from);

	if (__flbf(from))
		setvbuf(to, NULL, _IOLBF, 0);
	if (left)
		fwrite(from->_IO_write_base, 1, left, to);
	__fpurge(from);
}

void homa_pl_stdio_replaced(int fd)
{
	static FILE *ours[3];
	FILE **of[] = { &stdin, &stdout, &stderr }, *file;

	if (fd < 0 || fd > STDERR_FILENO || !is_tcp(fd) || !*of[fd] ||
	    *of[fd] == ours[fd] || fileno(*of[fd]) != fd)
		return;
	/* What has been read ahead is of the file that was there before. */
	if (fd == STDIN_FILENO &&
	    (*of[fd])->_IO_read_ptr != (*of[fd])->_IO_read_end)
		return;
	file = open_socket(fd, fd == STDIN_FILENO ? "r" : "w");
	if (!file)
		return;
	if (fd == STDERR_FILENO)
		setvbuf(file, NULL, _IONBF, 0);
	else if (fd == STDOUT_FILENO)
		carry_over(*of[fd], file);
	*of[fd] = ours[fd] = file;
}

void homa_pl_stdio_begin(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		homa_pl_stdio_replaced(fd);
}

/* ---- descriptors ---- */

HOMA_PL_HOOK int vdprintf(int fd, const char *format, va_list args)
{
	char *text;
	int size;

	if (HOMA_PL_LIKELY(!homa_pl_live) || !is_tcp(fd))
		return HOMA_PL_REAL(vdprintf)(fd, format, args);
	size = vasprintf(&text, format, args);
	if (size < 0)
		return -1;
	if (write_all(fd, text, (size_t)size) < (size_t)size)
		size = -1;
	free(text);
	return size;
}

HOMA_PL_HOOK int dprintf(int fd, const char *format, ...)
{
	va_list args;
	int rc;

	va_start(args, format);
	rc = vdprintf(fd, format, args);
	va_end(args);
	return rc;
}

/* With -D_FORTIFY_SOURCE programs call these instead. What @flag asks for is checked by the C
 * library alone. */

HOMA_PL_HOOK int __vdprintf_chk(int fd, int flag, const char *format, va_list args)
{
	if (HOMA_PL_LIKELY(!homa_pl_live) || !is_tcp(fd))
		return HOMA_PL_REAL(__vdprintf_chk)(fd, flag, format, args);
	return vdprintf(fd, format, args);
}

HOMA_PL_HOOK int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list args;
	int rc;

	va_start(args, format);
	rc = __vdprintf_chk(fd, flag, format, args);
	va_end(args);
	return rc;
}
