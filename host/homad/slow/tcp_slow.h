/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the slow path does for TCP: memory, ports, and who may do what. Written by: control, except
 * for what @more is about while the memory thread has it. */
#ifndef HOMAD_TCP_SLOW_H
#define HOMAD_TCP_SLOW_H

#include "attach.h"
#include "homad_tcp.h"
#include "port_choice.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_listener.h"

/* The most ports at which a user listens, those included whose connections are not over. */
#define HOMAD_USER_LISTENERS 256u
/* The most ports that are added at once. */
#define HOMAD_PORT_STEP 1024u
#define HOMAD_HELD_BUCKETS 256u

/**
 * struct homad_tcp_ports - homad_slow.tcp
 * @fds: sockets that hold the ports that homad keeps for connections.
 * @num_fds: the number of these sockets.
 * @users: for each port, the number of reasons to have it.
 * @more: the work that asks the kernel for ports.
 * @growing: @more is under way.
 * @taker: the instance of TCP for which @more is.
 * @got: the ports that @more has got.
 * @got_fds: the sockets of these ports.
 * @num_got: the number of these ports.
 * @wanted: the number of ports that @more is to get.
 * @choice: where @more gets them from.
 * @rc: the error because of which @num_got is less than @wanted.
 * @calls: an eventfd by which the fast path tells that it wants something.
 * @grown: attachments with larger buffers than at first.
 * @tick: a timer that runs while there are any.
 * @held: listeners, by port.
 * @listens_refused: the number of requests to listen that have failed.
 * @taken: the number of streams and listeners that processes have passed to others.
 * @takes_refused: the number of those that whoever showed them did not get.
 * @takes_elsewhere: the number of these that were refused as the two processes are at different
 *	instances.
 * @tickets: tickets that are neither redeemed nor void.
 * @limits: the limits that rules set to users.
 * @generation: the number of times that the rules have changed.
 */
struct homad_tcp_ports {
	int fds[HOMAD_TCP_PORTS];
	u32 num_fds;
	struct homad_work more;
	bool growing;
	struct homad_tcp *taker;
	u16 got[HOMAD_PORT_STEP];
	int got_fds[HOMAD_PORT_STEP];
	u32 num_got, wanted;
	struct homad_port_choice choice;
	int rc;
	u16 users[65536];
	struct homad_source calls, tick;
	struct homa_list grown;
	struct homa_list held[HOMAD_HELD_BUCKETS];
	u64 listens_refused, taken, takes_refused, takes_elsewhere;
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
/** homad_tcp_keep_ports() - take some ports from the kernel and keep them for connections. Returns
 *  0, or a negative errno with a sentence in @err. */
int homad_tcp_keep_ports(struct homad *d, char *err, size_t errlen);
/** homad_tcp_more_ports() - take more, up to the setting tcp.ports, if the fast path wants some. */
void homad_tcp_more_ports(struct homad *d);
/**
 * homad_tcp_take_port(), homad_tcp_leave_port() - count one reason more, or one less, to
 * have @port.
 */
void homad_tcp_take_port(struct homad *d, u16 port);
void homad_tcp_leave_port(struct homad *d, u16 port);

/**
 * homad_policy_new() - make the policy that the rules give @client's attachment. Returns
 * NULL if there is no memory.
 */
struct homad_policy *homad_policy_new(struct homad *d,
				      const struct homad_client *client);
void homad_policy_put(struct homad_policy *policy);
/** homad_policies_change() - give all attachments new policies, because the rules have
 *  changed. */
void homad_policies_change(struct homad *d);

/** homad_of_our_network() - true if the socket @fd is of homad's network namespace. A connection
 *  that homad has accepted is of the namespace of its peer. */
bool homad_of_our_network(int fd);

/** homad_tcp_show_port() - let the fast path know which instances have listeners at @port, as one
 *  has begun or ended. */
void homad_tcp_show_port(struct homad *d, u16 port);
/** homad_tcp_end_listener() - free @listener, which the fast path does not know any more. */
void homad_tcp_end_listener(struct homad *d, struct homad_tcp_listener *listener);

/** homad_op_streams(), homad_op_stream_listen() - do HOMA_CTL_STREAMS, HOMA_CTL_STREAM_LISTEN. */
void homad_op_streams(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r);
void homad_op_stream_listen(struct homad *d, struct homad_client *client,
			    const struct homa_ctl_request *r);
/** homad_op_stream_share(), homad_op_stream_join() - do HOMA_CTL_STREAM_SHARE and
 *  HOMA_CTL_STREAM_JOIN; see tcp_share.c. */
void homad_op_stream_share(struct homad *d, struct homad_client *client,
			   const struct homa_ctl_request *r);
void homad_op_stream_join(struct homad *d, struct homad_client *client,
			  const struct homa_ctl_request *r);
/** homad_op_stream_take() - do HOMA_CTL_STREAM_TAKE. */
void homad_op_stream_take(struct homad *d, struct homad_client *client,
			  const struct homa_ctl_request *r);
/** homad_share_goes_on() - go on with what @app has joined, because it has got more slots, or
 *  none. */
void homad_share_goes_on(const struct homad_app *app);
/** homad_shares_stop() - end all tickets that nobody has redeemed, because homad ends. */
void homad_shares_stop(struct homad *d);
/** homad_streams_growing() - make larger buffers for streams of @tcp that want them. */
void homad_streams_growing(struct homad *d, struct homad_tcp *tcp);
/**
 * homad_streams_tick() - take back larger buffers that nobody uses; the timer's function.
 */
void homad_streams_tick(struct homad *d, struct homad_source *source, u32 events);
/** homad_streams_end() - forget the larger buffers of @s, because its attachment ends. */
void homad_streams_end(struct homad *d, struct homad_streams *s);
/** homad_streams_wanted() - do what the fast path has asked for: memory, and the end of
 *  listeners. */
void homad_streams_wanted(struct homad *d);

#endif
