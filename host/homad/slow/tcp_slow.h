/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the slow path does for TCP: memory, ports, and who may do what. */
#ifndef HOMAD_TCP_SLOW_H
#define HOMAD_TCP_SLOW_H

#include "attach.h"
#include "streams.h"

/* with those whose connections are not over */
#define HOMAD_USER_LISTENERS 256u
#define HOMAD_PORT_STEP 1024u /* ports that are added at once, at most */
#define HOMAD_HELD_BUCKETS 256u

/** struct homad_tcp_ports - homad_slow.tcp
 * @fds: sockets that hold the ports kept for connections, @num_fds.
 * @users: for each port, how many reasons there are to have it.
 * @more: the work that asks the kernel for ports; @growing: it is under way. It writes the
 *	ports into @got, their sockets into @got_fds, their number into @num_got, and into
 *	@rc why there are fewer than @wanted.
 * @calls: an eventfd by which the fast path tells that it wants something.
 * @grown: attachments with larger buffers than at first; @tick: a timer while there are any.
 * @held: listeners, by port. @listens_refused: requests to listen that failed.
 * @tickets: that are neither redeemed nor void.
 * @limits: what rules limit users by; @generation: how often the rules have changed. */
struct homad_tcp_ports {
	int fds[HOMAD_TCP_PORTS];
	u32 num_fds;
	struct homad_work more;
	bool growing;
	u16 got[HOMAD_PORT_STEP];
	int got_fds[HOMAD_PORT_STEP];
	u32 num_got, wanted;
	int rc;
	u16 users[65536];
	struct homad_source calls, tick;
	struct homa_list grown;
	struct homa_list held[HOMAD_HELD_BUCKETS];
	u64 listens_refused;
	struct homa_list tickets;
	struct homa_list limits;
	u32 generation;
};

static inline struct homa_list *homad_tcp_held(struct homad_tcp_ports *ports,
					       u16 port)
{
	return &ports->held[port % HOMAD_HELD_BUCKETS];
}

/** homad_tcp_start() - keep ports for connections, if there are rules for TCP. */
int homad_tcp_start(struct homad *d, char *err, size_t errlen);
void homad_tcp_stop(struct homad *d);
/** homad_tcp_keep_ports() - some for connections; homad_tcp_more_ports(): if the fast path
 *  wants more, up to tcp.ports. */
int homad_tcp_keep_ports(struct homad *d, char *err, size_t errlen);
void homad_tcp_more_ports(struct homad *d);
/** homad_tcp_take_port(), homad_tcp_leave_port() - one more or one less reason for it. */
void homad_tcp_take_port(struct homad *d, u16 port);
void homad_tcp_leave_port(struct homad *d, u16 port);

/** homad_policy_new() - what rules say about @client's attachment; NULL: no memory. */
struct homad_policy *homad_policy_new(struct homad *d,
				      const struct homad_client *client);
void homad_policy_put(struct homad_policy *policy);
/** homad_policies_change() - there are other rules: for all attachments. */
void homad_policies_change(struct homad *d);

/** homad_of_our_network() - is the socket @fd of homad's network namespace? A connection's
 *  that was accepted is of its peer's. */
bool homad_of_our_network(int fd);

/** homad_tcp_end_listener() - the fast path does not know it any more. */
void homad_tcp_end_listener(struct homad *d, struct homad_tcp_listener *listener);

/** homad_op_streams(), homad_op_stream_listen() - the requests of these names. */
void homad_op_streams(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r);
void homad_op_stream_listen(struct homad *d, struct homad_client *client,
			    const struct homa_ctl_request *r);
/** homad_op_stream_share(), homad_op_stream_join() - the same, tcp_share.c. */
void homad_op_stream_share(struct homad *d, struct homad_client *client,
			   const struct homa_ctl_request *r);
void homad_op_stream_join(struct homad *d, struct homad_client *client,
			  const struct homa_ctl_request *r);
/** homad_share_goes_on() - it has more slots for what it has joined, or none. */
void homad_share_goes_on(const struct homad_app *app);
/** homad_shares_stop() - tickets that nobody has redeemed. */
void homad_shares_stop(struct homad *d);
/** homad_streams_growing() - streams that want larger buffers. homad_streams_tick(): those
 *  that nobody uses are given back. homad_streams_end(): the attachment ends. */
void homad_streams_growing(struct homad *d, struct homad_tcp *tcp);
void homad_streams_tick(struct homad *d, struct homad_source *source, u32 events);
void homad_streams_end(struct homad *d, struct homad_streams *s);
/** homad_streams_wanted() - what the fast path asks for: memory, and the end of listeners. */
void homad_streams_wanted(struct homad *d);

#endif
