// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Writes down who sends how much to whom when, in the form that arrivals_file.c
 * reads and other simulators can: the same arrivals for all of them. Responses
 * are not written: they follow from their requests. Times are whole ns, rounded
 * down. A file that could not be written to its end is told when it is closed;
 * the run goes on without it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traffic.h"

/**
 * struct sim_recorder - a recording; @error is the first error that happened, a positive
 * errno
 */
struct sim_recorder {
	/* by which it hears of messages. */
	struct sim_tap tap;
	/* the file. */
	FILE *file;
	int error;
};

static void message_started(void *arg, struct sim *sim, const struct sim_msg *msg)
{
	struct sim_recorder *rec = arg;

	if (msg->request || rec->error)
		return;
	if (fprintf(rec->file, "%" PRIu64 ",%u,%u,%u\n", (uint64_t)sim_ns(sim->now),
		    msg->src, msg->dst, msg->length) < 0)
		rec->error = errno ? errno : EIO;
}

int sim_recorder_open(struct sim *sim, struct sim_recorder **out, const char *path,
		      char *err, size_t errlen)
{
	struct sim_recorder *rec = calloc(1, sizeof(*rec));
	int res;

	*out = NULL;
	if (!rec) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	rec->file = fopen(path, "we");
	if (!rec->file || fprintf(rec->file, "time_ns,src,dst,bytes\n") < 0) {
		res = -errno;
		snprintf(err, errlen, "%s: cannot be written: %s", path, strerror(errno));
		if (rec->file)
			fclose(rec->file);
		free(rec);
		return res;
	}
	rec->tap.arg = rec;
	rec->tap.started = message_started;
	rec->tap.next = sim->taps;
	sim->taps = &rec->tap;
	*out = rec;
	return 0;
}

int sim_recorder_close(struct sim *sim, struct sim_recorder *rec, char *err, size_t errlen)
{
	struct sim_tap **link;
	int error;

	if (!rec)
		return 0;
	for (link = &sim->taps; *link != &rec->tap; link = &(*link)->next)
		;
	*link = rec->tap.next;
	error = rec->error;
	if (fclose(rec->file) && !error)
		error = errno;
	free(rec);
	if (error)
		snprintf(err, errlen, "the arrivals are not complete: %s", strerror(error));
	return -error;
}
