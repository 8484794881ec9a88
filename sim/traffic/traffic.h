/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who sends what to whom when, and how long a run goes on.
 *
 *	0 .. warmup             messages are sent and not measured
 *	warmup .. + measure     the window: what is created in it is measured
 *	then                    the load stays, so that what was measured does not
 *				finish in a network that falls silent, for at
 *				most half a window; then only the rest drains
 *
 * The run ends when all that is measured is delivered, or when the time to
 * drain is over: what is not delivered by then counts with its age.
 */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "arrivals.h"
#include "sim.h"

/** Message bytes that the SIGCOMM'18 study sent unscheduled; see load.c. */
#define SIM_UNSCHEDULED_BYTES 9328u

/* ---- load.c ---- */

/**
 * struct sim_load - what a message of the workload costs on average, and the
 * rate that follows
 * @payload, @packets: bytes and DATA packets of a message.
 * @wire: bytes of its DATA packets and of one GRANT per scheduled packet.
 * @gap_ns: mean time between two messages (RPCs) of a host, 0: none.
 * @payload_load, @wire_load: of a host link in each direction, 0..1.
 */
struct sim_load {
	double payload, packets, wire;
	double gap_ns;
	double payload_load, wire_load;
};

/** sim_load_compute() - of cfg->load, cfg->load_kind, the header model */
void sim_load_compute(const struct sim_config *cfg, const struct homa_workload *workload,
		      struct sim_load *load);
/** sim_load_wire() - wire bytes of one message, counted as above */
u64 sim_load_wire(const struct sim_config *cfg, u32 length);

/* ---- arrivals_file.c ---- */

/** struct sim_recorded - a message of a recorded trace */
struct sim_recorded {
	u64 at_ns;
	u32 length;
	u16 src, dst;
	float quantile;
	u32 line;
};

struct sim_recording {
	struct sim_recorded *list;
	size_t count;
};

/**
 * sim_recording_load() - read "time_ns,src,dst,bytes" lines
 * A header line, blank lines and lines that begin with '#' are skipped; lines
 * may be in any order. Return: 0 or a negative errno, @err has file, line and
 * reason.
 */
int sim_recording_load(struct sim_recording *rec, const char *path, u32 hosts, char *err,
		       size_t errlen);
void sim_recording_free(struct sim_recording *rec);

/* ---- arrivals_record.c ---- */

struct sim_recorder;

/**
 * sim_recorder_open() - write the messages of @sim, which has not run yet, to @path
 * Return: 0 with @out, or a negative errno with a sentence in @err.
 */
int sim_recorder_open(struct sim *sim, struct sim_recorder **out, const char *path,
		      char *err, size_t errlen);
/** sim_recorder_close() - before sim_free(); @rec may be NULL; -errno: not complete */
int sim_recorder_close(struct sim *sim, struct sim_recorder *rec, char *err, size_t errlen);

/* ---- traffic.c ---- */

struct traffic_source;
struct traffic_open;

/** struct sim_rest - what a run left unfinished: sizes are what is missing */
struct sim_rest {
	struct sim_recorded *list;
	size_t count;
};

/** struct sim_bytes - messages and their bytes */
struct sim_bytes {
	u64 msgs, payload, wire;
};

/**
 * struct sim_traffic - the run's traffic
 * @load: what was asked for.
 * @sources: hosts that still create messages; one for a recording.
 * @rest: messages to begin with, or NULL.
 * @created: messages (RPCs) so far, incast included.
 * @open: measured ones that are not over: @num_open of the first @used.
 * @pending: messages (RPCs) not over, measured or not.
 * @tap: counts what arrives.
 * @backlog: payload bytes created that have not reached their receiver.
 * @offered: created in the window, responses included.
 * @opened, @closed, @calm: the window, and that no more is created.
 * @late: the time to drain is over.
 * @error: positive errno that ended the run.
 */
struct sim_traffic {
	struct sim_load load;
	struct traffic_source *source;
	u32 sources;
	struct sim_recording recording;
	size_t next_recorded;
	const struct sim_rest *rest;
	struct sim_event rest_ev;
	struct sim_event arrival, open_ev, close_ev, calm_ev, late_ev, sample_ev, incast_ev;
	u64 created, pending;
	struct traffic_open *open;
	size_t num_open, used, room;
	struct sim_tap tap;
	u64 backlog;
	struct sim_bytes offered;
	struct homa_prng incast_rng;
	u16 *incast_hosts;
	u64 opened_at, closed_at, end_at;
	bool opened, closed, calm, late;
	bool abort_unstable, aborted;
	int error;
};

/** sim_traffic_start() - plan the run of a fresh @sim; also makes sim->stats */
int sim_traffic_start(struct sim *sim, char *err, size_t errlen);
/** sim_traffic_begin_with() - create these messages at time 0, not measured; one-way */
void sim_traffic_begin_with(struct sim *sim, const struct sim_rest *rest);
/** sim_traffic_rest() - what is measured and not over; -ENOMEM. Free rest->list. */
int sim_traffic_rest(const struct sim *sim, struct sim_rest *rest);
/** sim_traffic_finish() - SIGINT, or the run is over: close the window, judge the rest */
void sim_traffic_finish(struct sim *sim);
void sim_traffic_free(struct sim *sim);

#endif
