/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the traces share: trace.c opens and closes and listens,
 * trace_file.c writes, trace_json.c and trace_pcap.c say what, trace_lanes.c
 * gives each message under way a line of its own in the picture.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_TRACE_IMPL_H
#define SIM_TRACE_IMPL_H

#include "sim_trace.h"
#include "sim_transport.h"

#define TRACE_BUFFER (1u << 16)
#define TRACE_TAIL 16u

/**
 * struct trace_file - a file that grows at its end and is readable all the time
 * @fd: descriptor of the file.
 * @seekable: the file is not a pipe, so that @tail can be written over.
 * @cut: the file has reached @max and does not grow any more.
 * @error: errno of the write that failed, after which nothing is written; 0: none did.
 * @tail: text that completes the file behind its last byte, at most TRACE_TAIL bytes; the
 *	next record overwrites it.
 * @size: number of bytes in the file, without the tail.
 * @max: most bytes of the file.
 * @len: number of bytes in @buf, which are not written yet.
 * @buf: memory for bytes to write.
 */
struct trace_file {
	int fd;
	bool seekable;
	bool cut;
	int error;
	const char *tail;
	u64 size, max;
	size_t len;
	char *buf;
};

/** trace_file_open() - open the file; 0 or a negative errno with a sentence in @err */
int trace_file_open(struct trace_file *f, const char *path, const char *tail, u64 max,
		    char *err, size_t errlen);
/**
 * trace_file_add() - append all of @data or, after an error or at the greatest size,
 * nothing
 */
void trace_file_add(struct trace_file *f, const void *data, size_t len);
/**
 * trace_file_room() - will more be written? False after an error or at the greatest size
 */
static inline bool trace_file_room(struct trace_file *f)
{
	if (f->size + f->len >= f->max)
		f->cut = true;
	return !f->error && !f->cut;
}
/**
 * trace_file_close() - write the rest; 0, -EFBIG or another negative errno with a sentence
 * in @err
 */
int trace_file_close(struct trace_file *f, const char *path, char *err, size_t errlen);

/* ---- lanes ---- */

#define TRACE_MAX_LANES 400u /* most lanes of a host in each direction */
#define TRACE_NO_LANE UINT32_MAX

enum trace_side { TRACE_OUT, TRACE_IN, TRACE_SIDES };

/**
 * struct trace_place - an entry of the table: the lane of a message, or another name of a
 * message
 * @key: serial and side of a message, or another name; 0: the entry is free.
 * @other: in the entry of a message, the key of its other name, or 0; in the entry of a
 *	name, the serial of the message.
 * @host: host of the lane.
 * @lane: number of the lane.
 */
struct trace_place {
	u64 key, other;
	u32 host, lane;
};

#define TRACE_LANE_WORDS ((TRACE_MAX_LANES + 63) / 64)

/**
 * struct trace_lanes - lanes of all hosts
 * @busy: a bit for each lane, 1 while a message has it; TRACE_LANE_WORDS words for each
 *	host and side.
 * @used: number of lanes that were ever used, for each host and side.
 * @table: hash table of lanes by message and side, and of other names.
 * @mask: number of entries of @table, less 1.
 * @count: number of entries of @table that are used.
 */
struct trace_lanes {
	u64 *busy;
	u32 *used;
	struct trace_place *table;
	u32 mask, count;
};

int trace_lanes_init(struct trace_lanes *lanes, u32 hosts);
void trace_lanes_free(struct trace_lanes *lanes);
/**
 * trace_lane_take() - give a message the lowest free lane, or TRACE_NO_LANE if there is
 * none; @fresh: set if the lane was never used before
 */
u32 trace_lane_take(struct trace_lanes *lanes, u64 serial, enum trace_side side, u32 host,
		    bool *fresh);
/** trace_lane_find() - return the message's lane and set *@host, or return TRACE_NO_LANE */
u32 trace_lane_find(const struct trace_lanes *lanes, u64 serial, enum trace_side side,
		    u32 *host);
/**
 * trace_lane_release() - free the lane of a message that is over; returns the lane and sets
 * *@host
 */
u32 trace_lane_release(struct trace_lanes *lanes, u64 serial, enum trace_side side,
		       u32 *host);
/** trace_lane_alias() - give another name to a message that has a lane at its sender */
void trace_lane_alias(struct trace_lanes *lanes, u64 serial, u64 alias);
/** trace_lane_serial() - return the serial of the message with that other name; 0: none */
u64 trace_lane_serial(const struct trace_lanes *lanes, u64 alias);
/** trace_lane_busy() - does a message have the lane? */
static inline bool trace_lane_busy(const struct trace_lanes *lanes, u32 host,
				   enum trace_side side, u32 lane)
{
	const u64 *words = &lanes->busy[(host * TRACE_SIDES + side) * TRACE_LANE_WORDS];

	return words[lane / 64] >> (lane % 64) & 1;
}

/* ---- the two formats ---- */

/**
 * struct trace_json - the trace for Perfetto
 * @file: the file.
 * @lanes: which message has which line of the picture.
 * @from: time at which the trace begins, ps.
 * @until: time at which it ends, ps.
 * @begun: something was written.
 * @done: the time @until has passed.
 */
struct trace_json {
	struct trace_file file;
	struct trace_lanes lanes;
	u64 from, until;
	u64 beyond; /* messages that had no lane */
	bool begun, done;
};

int trace_json_open(struct trace_json *j, struct sim *sim,
		    const struct sim_trace_options *o, char *err, size_t errlen);
void trace_json_sent(struct trace_json *j, struct sim *sim, const struct sim_pkt *pkt);
void trace_json_received(struct trace_json *j, struct sim *sim, const struct sim_pkt *pkt);
void trace_json_dropped(struct trace_json *j, struct sim *sim,
			const struct sim_port *port, const struct sim_pkt *pkt);
void trace_json_queued(struct trace_json *j, struct sim *sim, const struct sim_port *port);
void trace_json_started(struct trace_json *j, struct sim *sim, const struct sim_msg *msg);
void trace_json_delivered(struct trace_json *j, struct sim *sim, const struct sim_msg *msg);
int trace_json_close(struct trace_json *j, struct sim *sim, const char *path, char *err,
		     size_t errlen);

/**
 * struct trace_pcap - the capture for Wireshark
 * @file: the file.
 * @from: time at which the capture begins, ps.
 * @until: time at which it ends, ps.
 */
struct trace_pcap {
	struct trace_file file;
	u64 from, until;
};

/** What happened to a captured packet; the first two are numbered as pcapng's directions. */
enum trace_fate { TRACE_RECEIVED = 1, TRACE_SENT = 2, TRACE_DROPPED = 3 };

int trace_pcap_open(struct trace_pcap *p, struct sim *sim,
		    const struct sim_trace_options *o, char *err, size_t errlen);
void trace_pcap_packet(struct trace_pcap *p, struct sim *sim, const struct sim_pkt *pkt,
		       enum trace_fate fate, const struct sim_port *port);
int trace_pcap_close(struct trace_pcap *p, const char *path, char *err, size_t errlen);

/* ---- names ---- */

/** trace_type_name() - return the name of a packet's type: "DATA", "GRANT", "PULL" ... */
const char *trace_type_name(const struct sim *sim, const struct sim_pkt *pkt);
/** trace_node_name() - write the name of a node: "host 3", "switch 145" */
void trace_node_name(const struct sim *sim, u32 node, char *name, size_t size);

#endif
