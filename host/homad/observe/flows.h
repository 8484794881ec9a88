/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP connections and listeners that homad carries, for tools. Each piece is one bounded
 * job on the thread whose engine has them; what belongs to nobody any more is shown, too.
 */
#ifndef HOMAD_FLOWS_H
#define HOMAD_FLOWS_H

#include <cjson/cJSON.h>
#include "homad.h"
#include "tas_look.h"

/**
 * struct homad_flow - a connection or a listener, and whose
 * @look: as the engine sees it; its pointers have no meaning any more.
 * @app: attachment's number, 0: nobody's; @name, @pid, @uid: its.
 * @closed: its application has let go of it. @unread: bytes that it has not taken.
 * @acked, @received: bytes that the peer has, and that have come in order, since the
 *	begin; a listener's 0.
 * @tx_size: of the send buffer, bytes. @ready, @backlog: of a listener: connections that
 *	wait for accept(), and how many may. @half: those that are not open yet.
 */
struct homad_flow {
	struct tas_look look;
	u64 app;
	char name[32];
	pid_t pid;
	uid_t uid;
	bool closed;
	u32 unread;
	u64 acked, received;
	u32 tx_size;
	u32 ready, backlog, half;
};

/** struct homad_flow_cursor - all zeros: begin, but for @engine.ended */
struct homad_flow_cursor {
	struct tas_look_cursor engine;
	bool local; /* connections between applications of this host */
	u32 thread;
	bool end;
};

/** homad_flows_some() - the next flows, @max at most; 0 is not the end. */
u32 homad_flows_some(struct homad *d, struct homad_flow_cursor *at,
		     struct homad_flow *out, u32 max);
/** homad_flow_json() - one of them. */
cJSON *homad_flow_json(const struct homad_flow *flow);

#endif
