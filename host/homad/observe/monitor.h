/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitoring socket from the inside: one *viewer* for each connection. A
 * request is a line of JSON, an answer is one line or many. Long answers are
 * made piece by piece as the viewer reads them, so that a viewer that does not
 * read costs a bounded piece of memory and no time.
 *
 * Written by: the admin thread, which alone has viewers.
 */
#ifndef HOMAD_MONITOR_H
#define HOMAD_MONITOR_H

#include <cjson/cJSON.h>
#include "slowpath.h"
#include "homad_stats.h"

#define HOMAD_VIEWERS 32u
#define HOMAD_VIEWER_LINE 4096u	     /* longest request */
#define HOMAD_VIEWER_OUT (16u << 20) /* most bytes that wait for one viewer */

struct homad_viewer;

/**
 * struct homad_task - an answer in pieces
 * @more: Called when all bytes of the answer so far have been written to the socket; adds a
 *	piece with homad_viewer_send(), and returns false when there are no more pieces.
 * @request: Called with a request that comes before the answer has ended, e.g. "stop". If it
 *	is NULL, such a request waits until the answer has ended.
 * @free: Called when the answer has ended or its viewer has gone.
 */
struct homad_task {
	bool (*more)(struct homad_viewer *v, struct homad_task *task);
	void (*request)(struct homad_viewer *v, struct homad_task *task,
			const cJSON *request);
	void (*free)(struct homad_viewer *v, struct homad_task *task);
};

/**
 * struct homad_viewer - a connection to the monitoring socket
 * @list: links the viewer into the monitor's list.
 * @conn: the connection.
 * @d: the daemon.
 * @pid: The process at the other end of the connection.
 * @in: Bytes of requests that were read from the socket and not worked off yet.
 * @in_len: The number of bytes in @in.
 * @out: Bytes of answers, allocated; those from @out_sent to @out_len are not written yet.
 * @out_size: The number of bytes that were allocated for @out.
 * @out_len: The offset in @out behind the last byte.
 * @out_sent: The offset in @out of the first byte that has not been written to the socket.
 * @task: The answer that is being made in pieces, or NULL.
 * @idle: @task has no piece at the moment, and calls homad_viewer_push() when it has one.
 * @ending: The connection is closed when all of @out has been written.
 * @broken: The connection is closed at once.
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

/** homad_viewer_send() - append bytes to the answer; if too many wait then, the viewer
 *  becomes @broken. */
void homad_viewer_send(struct homad_viewer *v, const void *data, size_t len);
/** homad_viewer_json() - append @json as a line to the answer, and free it. */
void homad_viewer_json(struct homad_viewer *v, cJSON *json);
/** homad_viewer_error() - append the line {"error": sentence} to the answer. */
void homad_viewer_error(struct homad_viewer *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/** homad_viewer_push() - write what the socket takes. It may free @v, which the caller must
 *  not use afterwards. */
void homad_viewer_push(struct homad_viewer *v);

/* ---- json.c ---- */

/** homad_json_u64() - add @value with all its digits, for which a double has no room. */
void homad_json_u64(cJSON *object, const char *name, u64 value);
void homad_json_addr(cJSON *object, const char *name,
		     const struct homa_addr *addr);

/* ---- snapshot_json.c: answers ---- */

cJSON *homad_snapshot_json(struct homad *d);
cJSON *homad_rpc_json(struct homad *d, const struct homa_rpc_look *look,
		      const struct homad_rpc_owner *owner);
cJSON *homad_peer_json(struct homad *d, const struct homa_peer_look *look);

/* ---- snapshot_metrics.c ---- */

/** homad_metrics_text() - make the metrics in Prometheus' text format; the caller frees it.
 *  Returns NULL if there is no memory. */
char *homad_metrics_text(struct homad *d, size_t *length);

/* ---- trace_stream.c ---- */

/** homad_trace_begin() - answer the request {"op": "trace", ...}. */
void homad_trace_begin(struct homad_viewer *v, const cJSON *request);

#endif
