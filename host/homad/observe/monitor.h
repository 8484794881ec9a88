/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitoring socket from the inside: one *viewer* for each connection. A
 * request is a line of JSON, an answer is one line or many. Long answers are
 * made piece by piece as the viewer reads them, so that a viewer that does not
 * read costs a bounded piece of memory and no time.
 */
#ifndef HOMAD_MONITOR_H
#define HOMAD_MONITOR_H

#include <cjson/cJSON.h>
#include "slowpath.h"
#include "homad_stats.h"

#define HOMAD_VIEWERS 32u
#define HOMAD_VIEWER_LINE 4096u	     /* longest request */
#define HOMAD_VIEWER_OUT (16u << 20) /* most bytes waiting for one viewer */

struct homad_viewer;

/**
 * struct homad_task - an answer in pieces
 * @more: adds a piece with homad_viewer_send(); false: that was all. Called when
 *	everything before has gone.
 * @request: the viewer says something meanwhile, e.g. "stop"; NULL: it waits.
 * @free: the task is over, or its viewer has gone.
 */
struct homad_task {
	bool (*more)(struct homad_viewer *v, struct homad_task *task);
	void (*request)(struct homad_viewer *v, struct homad_task *task,
			const cJSON *request);
	void (*free)(struct homad_viewer *v, struct homad_task *task);
};

/**
 * struct homad_viewer - a connection to the monitoring socket
 * @in: an incomplete line. @out: bytes from @out_sent to @out_len have to go.
 * @task: what is being answered, or NULL.
 * @idle: @task has nothing to say at the moment and calls homad_viewer_push().
 * @ending: close when everything has gone. @broken: close at once.
 */
struct homad_viewer {
	struct homa_list list;
	struct homad_source conn;
	struct homad *d;
	pid_t pid;
	u32 in_len;
	char in[HOMAD_VIEWER_LINE];
	u8 *out;
	size_t out_size, out_len, out_sent;
	struct homad_task *task;
	bool idle, ending, broken;
};

/** homad_viewer_send() - @len bytes to the viewer; too many: it is @broken. */
void homad_viewer_send(struct homad_viewer *v, const void *data, size_t len);
/** homad_viewer_json() - a line; frees @json. */
void homad_viewer_json(struct homad_viewer *v, cJSON *json);
/** homad_viewer_error() - {"error": sentence}. */
void homad_viewer_error(struct homad_viewer *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/** homad_viewer_push() - send what there is; may free @v: return after it. */
void homad_viewer_push(struct homad_viewer *v);

/* ---- json.c ---- */

/** homad_json_u64() - all digits of @value, which a double does not have. */
void homad_json_u64(cJSON *object, const char *name, u64 value);
void homad_json_addr(cJSON *object, const char *name,
		     const struct homa_addr *addr);

/* ---- snapshot_json.c: answers ---- */

cJSON *homad_snapshot_json(struct homad *d);
cJSON *homad_rpc_json(struct homad *d, const struct homa_rpc_look *look,
		      const struct homad_rpc_owner *owner);
cJSON *homad_peer_json(struct homad *d, const struct homa_peer_look *look);

/* ---- snapshot_metrics.c ---- */

/** homad_metrics_text() - Prometheus' text format; to be freed; NULL: no memory. */
char *homad_metrics_text(struct homad *d, size_t *length);

/* ---- trace_stream.c ---- */

/** homad_trace_begin() - work off {"op": "trace", ...}. */
void homad_trace_begin(struct homad_viewer *v, const cJSON *request);

#endif
