// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A trace on its way to the disk. Records go to a buffer and leave it whole,
 * with the tail that completes the file behind them; the next write begins
 * where the tail does. So a reader, or what is left after a crash, always
 * finds a complete document. Into a pipe, which cannot go back, the tail goes
 * at the very end.
 *
 * A disk that is full must not end a run of hours: the first error stops the
 * trace, the file is cut back to the last record that fits, and the error is
 * told when the trace is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace_impl.h"

int trace_file_open(struct trace_file *f, const char *path, const char *tail, u64 max,
		    char *err, size_t errlen)
{
	int error;

	f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (f->fd < 0) {
		error = errno;
		snprintf(err, errlen, "cannot write the trace %s: %s", path,
			 strerror(error));
		return -error;
	}
	f->seekable = lseek(f->fd, 0, SEEK_SET) == 0;
	f->tail = tail;
	f->max = max;
	f->buf = malloc(TRACE_BUFFER + TRACE_TAIL);
	if (!f->buf) {
		close(f->fd);
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	return 0;
}

/* Writes all of @data at offset @at; returns 0 or an errno. */
static int write_all(const struct trace_file *f, const char *data, size_t len, u64 at)
{
	while (len) {
		ssize_t n = f->seekable ? pwrite(f->fd, data, len, (off_t)at) :
					  write(f->fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : EIO;
		data += n;
		len -= (size_t)n;
		at += (u64)n;
	}
	return 0;
}

/*
 * The tail comes along in one write. What an earlier tail took up on the disk
 * is still there, so there is room for it again if the records do not fit.
 */
static void trace_file_flush(struct trace_file *f, bool last)
{
	size_t tail = f->seekable || last ? strlen(f->tail) : 0;

	if (f->error)
		return;
	memcpy(f->buf + f->len, f->tail, tail);
	f->error = write_all(f, f->buf, f->len + tail, f->size);
	if (!f->error) {
		f->size += f->len;
	} else if (f->seekable && ftruncate(f->fd, (off_t)f->size) == 0) {
		(void)!write_all(f, f->tail, tail, f->size);
	}
	f->len = 0;
}

void trace_file_add(struct trace_file *f, const void *data, size_t len)
{
	if (f->error || len > TRACE_BUFFER)
		return;
	if (f->len + len > TRACE_BUFFER)
		trace_file_flush(f, false);
	memcpy(f->buf + f->len, data, len);
	f->len += len;
}

int trace_file_close(struct trace_file *f, const char *path, char *err, size_t errlen)
{
	int res = 0;

	trace_file_flush(f, true);
	if (close(f->fd) && !f->error)
		f->error = errno;
	free(f->buf);
	if (f->error) {
		snprintf(err, errlen, "the trace %s ends early: %s", path,
			 strerror(f->error));
		res = -f->error;
	} else if (f->cut) {
		snprintf(err, errlen,
			 "the trace %s was cut at %llu MB; choose a shorter time with --trace-from, --trace-until",
			 path, (unsigned long long)(f->max >> 20));
		res = -EFBIG;
	}
	return res;
}
