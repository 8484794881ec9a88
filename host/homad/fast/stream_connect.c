// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Connections that applications open: whether rules allow them, by which device they go, and from
 * which of the ports that homad keeps.
 */
#include <errno.h>
#include "fast.h"
#include "frame.h"
#include "homad_tcp.h"
#include "stream_connect.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_stream.h"

/* The number of ports in use after which the slow path is asked for more. */
#define MANY_TRIES 8u

/*
 * Chooses the next of homad's ports with which the pair is free. -EAGAIN: not in this
 * round, in which enough were tried, or more are on their way. -EADDRNOTAVAIL: all that
 * homad can have are in use to this peer's port.
 */
static int connect_from_some_port(struct homad_thread *t,
				  struct homad_streams *s, struct tas_pair *pair,
				  bool local, struct tas_conn **conn)
{
	struct homad_tcp *tcp = t->tcp;
	struct tas_engine *engine = local ? &tcp->local : &tcp->engine;
	u32 rx_max = 1u << s->rx_most;
	u32 i;
	int rc;

	homad_tcp_refill(tcp, engine);
	for (i = 0; i < HOMAD_PORT_TRIES && s->ports_tried < tcp->num_ports; i++) {
		pair->local_port = tcp->ports[tcp->next_port++ % tcp->num_ports];
		s->ports_looked++;
		rc = tas_connect(engine, pair, HOMAD_STREAM_SHIFT, rx_max, conn);
		if (likely(rc != TAS_EADDRINUSE)) {
			s->ports_tried = 0;
			return rc;
		}
		/* More ports are asked for before none is left. */
		if (unlikely(++s->ports_tried == MANY_TRIES))
			homad_tcp_want_ports(t);
	}
	if (s->ports_tried < tcp->num_ports || homad_tcp_want_ports(t))
		return -EAGAIN;
	s->ports_tried = 0;
	return -EADDRNOTAVAIL;
}

/* Returns the port of the same device that this thread serves; NULL: it is no device for TCP. */
static struct homad_port *own_port(const struct homad_thread *t,
				   const struct homad_port *port)
{
	u32 i;

	for (i = 0; homad_port_tcp(port) && i < t->num_ports; i++)
		if (homad_port_tcp(t->ports[i]) &&
		    t->ports[i]->ifindex == port->ifindex)
			return t->ports[i];
	return NULL;
}

/* Chooses the local address: the one that the application wants, if the device has it. */
static int choose_source(struct nic *nic, const struct homa_stream_end *wanted,
			 const struct homa_addr *to, u8 local[16])
{
	struct homa_addr from = { 0 };

	memcpy(from.ip, wanted->ip, sizeof(from.ip));
	if (wanted->port)
		return -EOPNOTSUPP;
	if (homa_addr_is_any(&from))
		return nic_source(nic, to, local);
	if (homa_addr_is_v4(&from) != homa_addr_is_v4(to) ||
	    !nic_has_address(nic, from.ip))
		return -EADDRNOTAVAIL;
	memcpy(local, from.ip, sizeof(from.ip));
	return 0;
}

/* Asks the rules, and counts the connection. Returns 0 and the part of the policy that takes the
 * connection, -EOPNOTSUPP if no rule is for it, -EACCES if one denies it, or -ENOBUFS if a limit is
 * reached. */
static int ask_rules(struct homad_thread *t, const struct homad_policy *policy,
		     const struct homa_stream_end *remote, int *part)
{
	*part = remote->port ?
			homad_policy_connect(policy, remote->ip, remote->port) :
			-1;
	if (*part < 0)
		return -EOPNOTSUPP;
	if (policy->part[*part].rule.deny) {
		t->counters.tcp_denied++;
		return -EACCES;
	}
	return homad_limit_full(t, policy->part[*part].limit) ? -ENOBUFS : 0;
}

/* Finds the ends of a connection and its device; @local: it goes by none, to this host.
 * Returns 0, -EAGAIN: not in this round, or an error. */
static int find_way(struct homad_thread *t, const struct homad_streams *s,
		    const struct homa_stream_command *c, struct tas_pair *pair,
		    bool *local)
{
	struct homa_addr to = { 0 };
	struct homad_port *port;
	int rc;

	memcpy(to.ip, c->remote.ip, sizeof(to.ip));
	/* The address means this host, of whose addresses the kernel chooses one. */
	if (homa_addr_is_any(&to))
		return -EOPNOTSUPP;
	if (nic_addr_no_host(&to))
		return -ENETUNREACH;
	rc = homad_dest(t, s->app->uid, &to, 1, &port);
	/* Without UDP homad has no way where no device of its own leads, but the kernel has one. */
	if (rc)
		return rc == -EPROTONOSUPPORT ? -EOPNOTSUPP : rc;
	memset(pair, 0, sizeof(*pair));
	memcpy(pair->remote, c->remote.ip, sizeof(pair->remote));
	pair->remote_port = c->remote.port;
	*local = port == t->d->local;
	if (*local)
		return homad_tcp_local_way(t, s, &c->local, pair);
	port = own_port(t, port);
	/* No device of homad leads there, so the connection is left to the kernel. */
	if (!port)
		return -EOPNOTSUPP;
	return choose_source(port->nic, &c->local, &to, pair->local);
}

const char *homad_stream_connect(struct homad_thread *t, struct homad_streams *s,
				 const struct homa_stream_command *c)
{
	struct homad_tcp *tcp = t->tcp;
	struct homad_stream *stream;
	struct tas_conn *conn = NULL;
	struct tas_pair pair;
	int rc, part = -1;
	bool local = false;

	if (s->app->phase != HOMAD_APP_OPEN)
		return NULL;
	if (!homa_stream_may_wait(HOMA_STREAM_PATIENCE_USER, c->slot))
		return homad_wrong_patience;
	if (unlikely(!homad_streams_answerable(t, s, false)))
		return homad_next_round;
	/* The slow path may be about to give it slots. */
	homad_streams_want(t, s);
	if (!s->num_free && __atomic_load_n(&s->asked, __ATOMIC_ACQUIRE))
		return homad_next_round;
	rc = s->num_free ? ask_rules(t, s->policy, &c->remote, &part) : -ENOBUFS;
	if (!rc) {
		rc = find_way(t, s, c, &pair, &local);
		if (!rc)
			rc = connect_from_some_port(t, s, &pair, local, &conn);
		if (rc)
			homad_limit_dismiss(s->policy->part[part].limit);
	}
	if (rc == -EAGAIN)
		return homad_next_round;
	if (rc) {
		tcp->counters.connects_refused++;
		homad_streams_tell(t, s, HOMA_STREAM_FAILED, c->token, rc);
		return NULL;
	}
	stream = homad_stream_adopt(t, s, conn, part, local);
	tcp->counters.local_opened += local;
	stream->token = c->token;
	stream->opening = true;
	stream->conn.user_timeout = c->slot * TAS_MSEC;
	homad_stream_set_options(t, stream, c->value);
	if (c->value & HOMA_STREAM_OPT_BEGUN)
		homad_streams_tell_begun(stream);
	return NULL;
}
