/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP connections and listeners that homad carries, for tools. Each piece is one bounded
 * job on the thread whose engine has them; what belongs to nobody any more is shown, too.
 *
 * Written by: the thread whose engine has the connections, while the caller waits for it.
 */
#ifndef HOMAD_FLOWS_H
#define HOMAD_FLOWS_H

#include <cjson/cJSON.h>
#include "homad.h"
#include "tas_look.h"

/**
 * struct homad_flow - a connection or a listener, and the attachment that it belongs to
 * @look: What the engine said of the flow; its pointers must not be followed any more.
 * @app: The number of the attachment that the flow belongs to, or 0 if none has it.
 * @name: The attachment's name.
 * @pid: The process of the attachment.
 * @uid: The user of the attachment.
 * @closed: The application has closed the connection, which may still send what was written.
 * @unread: The number of bytes that have arrived and that the application has not taken.
 * @acked: The number of bytes that the peer has acknowledged since the connection began.
 * @received: The number of bytes that have arrived in order since the connection began.
 * @tx_size: The number of bytes for which the send buffer has memory.
 * @rule: The number of the [[tcp_rule]] that decides about the connection, from 1 on; 0 if none
 *	does, and before accept().
 * @dscp: The DSCP of its packets.
 * @send_limit: The bytes that may be sent in a second under that rule, which other connections may
 *	share; 0 if there is no limit.
 * @receive_limit: The same for bytes received.
 * @send_waits: Bytes that the application has written wait for @send_limit.
 * @receive_waits: The window stays closed for bytes that the application has taken, because of
 *	@receive_limit.
 * @ready: The number of connections of a listener that wait for accept().
 * @backlog: The most connections of a listener that may wait for accept().
 * @half: The number of connections of a listener that are not open yet.
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
	u8 rule, dscp;
	bool send_waits, receive_waits;
	u64 send_limit, receive_limit;
	u32 ready, backlog, half;
};

/**
 * struct homad_flow_cursor - where homad_flows_some() goes on; it begins with all zeros
 * @engine: Where it goes on in an engine of that instance. The caller may set @engine.ended.
 * @local: It goes on among connections between applications of this host.
 * @instance: The index of the instance of TCP at which it goes on.
 * @end: All flows have been seen.
 */
struct homad_flow_cursor {
	struct tas_look_cursor engine;
	bool local;
	u32 instance;
	bool end;
};

/** homad_flows_some() - write the next flows to @out, at most @max; returns how many, which
 *  may be none before the end. */
u32 homad_flows_some(struct homad *d, struct homad_flow_cursor *at,
		     struct homad_flow *out, u32 max);
/** homad_flow_json() - make the JSON object of a flow. */
cJSON *homad_flow_json(const struct homad_flow *flow);

#endif
