/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of traffic share. Written by: the one thread that runs the simulation. */
#ifndef SIM_TRAFFIC_IMPL_H
#define SIM_TRAFFIC_IMPL_H

#include "traffic.h"

/**
 * struct traffic_open - a measured message; invalid once the message is not measured any
 * more, or its slot has another serial
 * @msg: the message.
 * @serial: serial number that the message had.
 */
struct traffic_open {
	struct sim_msg *msg;
	u64 serial;
};

static inline bool sim_traffic_is_open(const struct traffic_open *open)
{
	return open->msg->serial == open->serial && open->msg->measured;
}

/** sim_response_bytes() - return the length of the response to a request of @request bytes */
static inline u32 sim_response_bytes(const struct sim_config *cfg, u32 request)
{
	return cfg->response ? cfg->response : request;
}

/** sim_traffic_ends_early() - tell after a sample whether the run may end with it */
bool sim_traffic_ends_early(const struct sim *sim);
/** sim_traffic_message() - create a message (RPC) now */
void sim_traffic_message(struct sim *sim, u32 src, u32 dst, u32 length, float quantile,
			 bool incast);

/* ---- closed_loop.c ---- */

/** sim_closed_loop_start() - have each client send its first RPCs, if there are clients: by a call
 *  of @asks for each; -ENOMEM, or -EINVAL with a sentence in @err */
int sim_closed_loop_start(struct sim *sim, void (*asks)(struct sim *sim, u32 host),
			  char *err, size_t errlen);
/** sim_closed_loop_next() - draw the next RPC of client @host */
void sim_closed_loop_next(struct sim *sim, u32 host, struct homa_arrival *next);
/** sim_closed_loop_end() - client @host sends nothing more */
void sim_closed_loop_end(struct sim *sim, u32 host);
/** sim_closed_loop_over() - the RPC of request @msg is over: its client may send another one */
void sim_closed_loop_over(struct sim *sim, const struct sim_msg *msg);
/** sim_closed_loop_stop() - cancel all events, free all memory */
void sim_closed_loop_stop(struct sim *sim);

#endif
