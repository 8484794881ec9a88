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
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "arrivals.h"
#include "sim.h"

/** Message bytes that the SIGCOMM'18 study sent unscheduled; see load.c. */
#define SIM_UNSCHEDULED_BYTES 9328u

/* ---- load.c ---- */

/**
 * struct sim_load - mean cost of a message of the workload, and the rate that follows from
 * it
 * @payload: bytes of a message.
 * @packets: number of its DATA packets.
 * @wire: bytes on the wire of these packets and of one GRANT per scheduled packet.
 * @gap_ns: mean time between two messages (RPCs) of a host, ns; 0: there are none.
 * @payload_load: share of a host link that payload takes in each direction, 0..1.
 * @wire_load: share of a host link that is taken in each direction, 0..1.
 */
struct sim_load {
	double payload, packets, wire;
	double gap_ns;
	double payload_load, wire_load;
};

/** sim_load_compute() - compute @load from cfg->load, cfg->load_kind and sizes of headers */
void sim_load_compute(const struct sim_config *cfg, const struct homa_workload *workload,
		      struct sim_load *load);
/** sim_load_wire() - bytes on the wire of one message, counted as sim_load.wire */
u64 sim_load_wire(const struct sim_config *cfg, u32 length);

/** sim_alone_ps() - return the time of a message that meets no other, ps; with Homa's software at
 *  both ends if cores are modelled */
u64 sim_alone_ps(const struct sim *sim, u32 src, u32 dst, u32 length);
/** sim_alone_rpc_ps() - return the same of all of @first's RPC, or of @first in a one-way run */
u64 sim_alone_rpc_ps(const struct sim *sim, const struct sim_msg *first);

/* ---- arrivals_file.c ---- */

/**
 * struct sim_recorded - a message of a recorded trace
 * @at_ns: time at which it is sent, ns.
 * @length: bytes of the message.
 * @src: index of the sending host.
 * @dst: index of the receiving host.
 * @quantile: its place among the sizes of the trace, 0..1.
 * @line: line of the file.
 */
struct sim_recorded {
	u64 at_ns;
	u32 length;
	u16 src, dst;
	float quantile;
	u32 line;
};

/**
 * struct sim_recording - arrivals that were read from a file
 * @list: the arrivals, in order of time.
 * @count: number of entries of @list.
 */
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
struct traffic_client;
struct traffic_open;

/**
 * struct sim_rest - messages that a run left unfinished
 * @list: the messages, with the bytes that are missing as their length.
 * @count: number of messages.
 */
struct sim_rest {
	struct sim_recorded *list;
	size_t count;
};

/**
 * struct sim_bytes - sums over some messages
 * @msgs: number of messages.
 * @payload: bytes of the messages.
 * @wire: bytes on the wire, as sim_load.wire.
 */
struct sim_bytes {
	u64 msgs, payload, wire;
};

/**
 * struct sim_traffic - the run's traffic
 * @load: load that was asked for.
 * @source: state of each host that creates messages by itself.
 * @client: state of each host, if clients wait for answers (--closed); NULL: they do not.
 * @sources: number of hosts that still create messages; 1 for a recording.
 * @recording: recorded trace, if there is one.
 * @next_recorded: index of its next message.
 * @rest: messages to begin with; NULL: none.
 * @rest_ev: event that creates the messages of @rest.
 * @arrival: event of the next message of the recording.
 * @open_ev: event at which the window opens.
 * @close_ev: event at which the window closes.
 * @calm_ev: event after which nothing more is created.
 * @late_ev: event at which the time to drain is over.
 * @sample_ev: event of the next sample of the backlog.
 * @incast_ev: event of the next incast burst.
 * @created: number of messages (RPCs) created so far, incast included.
 * @pending: number of messages (RPCs) that are not over, measured or not.
 * @open: measured messages, of which some are over.
 * @num_open: number of measured messages that are not over.
 * @used: number of entries of @open that are used.
 * @room: number of entries of @open for which there is memory.
 * @tap: counts bytes that arrive.
 * @backlog: payload bytes that were created and have not reached their receiver.
 * @offered: messages created in the window, responses included.
 * @incast_rng: random numbers of incast bursts.
 * @incast_hosts: indices of hosts, from which a burst draws.
 * @opened_at: time at which the window opened, ps.
 * @closed_at: time at which the window closed, ps.
 * @end_at: time at which the window is to close, ps.
 * @opened: the window has opened.
 * @closed: the window has closed.
 * @calm: nothing more is created.
 * @late: the time to drain is over.
 * @abort_unstable: the run ends when the backlog grows too fast; the caller sets it.
 * @stop_growth: the run ends after the first third of the window if the backlog has grown
 *	by more than this share of what is offered, and so has what it is more than the
 *	oracle's; 0: it goes on. The caller sets it.
 * @aborted: the run ended for one of these reasons.
 * @error: positive errno that ended the run; 0: none did.
 */
struct sim_traffic {
	struct sim_load load;
	struct traffic_source *source;
	struct traffic_client *client;
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
	bool abort_unstable;
	double stop_growth;
	bool aborted;
	int error;
};

/** sim_traffic_start() - plan the run of a fresh @sim; also makes sim->stats */
int sim_traffic_start(struct sim *sim, char *err, size_t errlen);
/** sim_traffic_begin_with() - create the messages of @rest, one-way, at time 0; they are not
 *  measured */
void sim_traffic_begin_with(struct sim *sim, const struct sim_rest *rest);
/** sim_traffic_rest() - write the measured messages that are not over to @rest; -ENOMEM. The
 *  caller frees rest->list. */
int sim_traffic_rest(const struct sim *sim, struct sim_rest *rest);
/** sim_traffic_finish() - close the window, and count what is not over, after SIGINT or at the
 *  end of the run */
void sim_traffic_finish(struct sim *sim);
/** sim_traffic_offered() - return the payload created in the window that has closed, bytes a
 *  second; 0: none has */
double sim_traffic_offered(const struct sim *sim);
void sim_traffic_free(struct sim *sim);

#endif
