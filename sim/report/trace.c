// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Traces of a run: opens the files that are asked for, listens as one tap,
 * passes on to both formats what they want to know, and finds itself among the
 * taps to be closed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_impl.h"

/**
 * struct trace - the traces of a run
 * @tap: The functions that the network calls for each packet.
 * @json: The trace as JSON.
 * @pcap: The trace as a capture.
 * @json_path: The path of the JSON file, or NULL if it is not written.
 * @pcap_path: The path of the capture, or NULL if it is not written.
 */
struct trace {
	struct sim_tap tap;
	struct trace_json json;
	struct trace_pcap pcap;
	char *json_path, *pcap_path;
};

static void trace_sent(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	struct trace *t = arg;

	if (t->json_path)
		trace_json_sent(&t->json, sim, pkt);
	if (t->pcap_path)
		trace_pcap_packet(&t->pcap, sim, pkt, TRACE_SENT, NULL);
}

static void trace_received(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	struct trace *t = arg;

	if (t->json_path)
		trace_json_received(&t->json, sim, pkt);
	if (t->pcap_path)
		trace_pcap_packet(&t->pcap, sim, pkt, TRACE_RECEIVED, NULL);
}

static void trace_dropped(void *arg, struct sim *sim, const struct sim_port *port,
			  const struct sim_pkt *pkt)
{
	struct trace *t = arg;

	if (t->json_path)
		trace_json_dropped(&t->json, sim, port, pkt);
	if (t->pcap_path)
		trace_pcap_packet(&t->pcap, sim, pkt, TRACE_DROPPED, port);
}

static void trace_queued(void *arg, struct sim *sim, const struct sim_port *port)
{
	trace_json_queued(&((struct trace *)arg)->json, sim, port);
}

static void trace_started(void *arg, struct sim *sim, const struct sim_msg *msg)
{
	trace_json_started(&((struct trace *)arg)->json, sim, msg);
}

static void trace_delivered(void *arg, struct sim *sim, const struct sim_msg *msg)
{
	trace_json_delivered(&((struct trace *)arg)->json, sim, msg);
}

/* ---- opening and closing ---- */

static void trace_free(struct trace *t)
{
	free(t->json_path);
	free(t->pcap_path);
	free(t);
}

/* Copies @path, unless it is NULL, because the file is not wanted then. */
static int trace_path(char **copy, const char *path, char *err, size_t errlen)
{
	*copy = path ? strdup(path) : NULL;
	if (!path || *copy)
		return 0;
	snprintf(err, errlen, "out of memory");
	return -ENOMEM;
}

static int trace_begin(struct trace *t, struct sim *sim,
		       const struct sim_trace_options *o, char *err, size_t errlen)
{
	char ignored[256];
	int res;

	if (o->until <= o->from) {
		snprintf(err, errlen, "--trace-until must be later than --trace-from");
		return -EINVAL;
	}
	res = trace_path(&t->json_path, o->json, err, errlen);
	if (!res)
		res = trace_path(&t->pcap_path, o->pcap, err, errlen);
	if (!res && o->json)
		res = trace_json_open(&t->json, sim, o, err, errlen);
	if (res || !o->pcap)
		return res;
	res = trace_pcap_open(&t->pcap, sim, o, err, errlen);
	if (res && o->json)
		trace_json_close(&t->json, sim, o->json, ignored, sizeof(ignored));
	return res;
}

int sim_trace_open(struct sim *sim, const struct sim_trace_options *o, char *err,
		   size_t errlen)
{
	struct sim_trace_options options = *o;
	struct trace *t;
	int res;

	if (!o->json && !o->pcap)
		return 0;
	if (!options.until)
		options.until = SIM_NEVER;
	if (!options.max_bytes)
		options.max_bytes = SIM_TRACE_MAX_BYTES;
	t = calloc(1, sizeof(*t));
	if (!t) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	res = trace_begin(t, sim, &options, err, errlen);
	if (res) {
		trace_free(t);
		return res;
	}
	t->tap.arg = t;
	t->tap.sent = trace_sent;
	t->tap.received = trace_received;
	t->tap.dropped = trace_dropped;
	if (o->json) {
		t->tap.queued = trace_queued;
		t->tap.started = trace_started;
		t->tap.delivered = trace_delivered;
	}
	t->tap.next = sim->taps;
	sim->taps = &t->tap;
	return 0;
}

int sim_trace_close(struct sim *sim, char *err, size_t errlen)
{
	struct sim_tap **link = &sim->taps;
	struct trace *t;
	int res = 0, res2 = 0;

	while (*link && (*link)->sent != trace_sent)
		link = &(*link)->next;
	if (!*link)
		return 0;
	t = (*link)->arg;
	*link = t->tap.next;
	if (t->json_path)
		res = trace_json_close(&t->json, sim, t->json_path, err, errlen);
	if (t->pcap_path)
		res2 = trace_pcap_close(&t->pcap, t->pcap_path, err, res ? 0 : errlen);
	trace_free(t);
	return res ? res : res2;
}
