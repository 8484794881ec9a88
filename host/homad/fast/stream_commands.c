// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What applications ask of their streams. As with messages, an entry is copied once and
 * only the copy is looked at, positions are read once and checked against homad's own,
 * and what a correct library cannot produce ends the attachment.
 */
#include <errno.h>
#include "fast.h"
#include "frame.h"
#include "homad_tcp.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "stream_share.h"
#include "streams.h"
#include "tcp_listener.h"
#include "tcp_stream.h"

/* The most local ports that a CONNECT tries in one round. */
#define PORT_TRIES 256u
/* The number of ports in use after which the slow path is asked for more. */
#define MANY_TRIES 8u
/* The most commands of an attachment that are still done when it ends. */
#define LAST_COMMANDS 4096u

static const char wrong_slot[] =
	"a command for a stream that the attachment does not have";
static const char wrong_patience[] =
	"a time to wait for a silent peer that cannot be";

static const char wrong_urgent[] =
	"an urgent byte far behind those that the buffer holds";

static struct homad_stream *named(struct homad_streams *s,
				  const struct homa_stream_command *c)
{
	struct homad_stream *stream =
		c->slot < s->num_slots ? s->stream[c->slot] : NULL;

	return stream && stream->generation == c->generation && !stream->closed &&
			       !stream->left && !stream->parked ?
		       stream :
		       NULL;
}

/* Returns the alias that the command names, of a stream that is another attachment's. */
static struct homad_alias *named_alias(struct homad_streams *s,
				       const struct homa_stream_command *c)
{
	struct homad_alias *alias =
		c->slot < s->num_slots ? &s->alias[c->slot] : NULL;

	return alias && alias->stream && alias->generation == c->generation ?
		       alias :
		       NULL;
}

/* ---- positions ---- */

static const char *take_written(struct homad_thread *t,
				struct homad_stream *stream,
				const struct homa_stream_slot *slot)
{
	u32 end = stream->shutting ?
			  stream->tx_last :
			  __atomic_load_n(&slot->tx_end, __ATOMIC_ACQUIRE);
	u64 map = __atomic_load_n(&slot->tx_map, __ATOMIC_ACQUIRE);
	u32 shift = (u32)(map >> 32), written = end - stream->tx_end;

	if (!written)
		return NULL;
	if (shift < HOMA_STREAM_MIN_SHIFT || shift > stream->tx_shift)
		return "a send buffer that has no memory";
	if (written > (1u << shift) ||
	    tas_unacked(&stream->conn) > (1u << shift) - written)
		return "more bytes to send than the buffer holds";
	stream->tx_last = end;
	if (unlikely(stream->limit)) {
		written = homad_limit_send(t, stream, written);
		if (!written) {
			homad_stream_fills(t, stream);
			return NULL;
		}
	}
	stream->tx_map = map;
	stream->tx_end += written;
	stream->tx_bytes += written;
	HOMA_WRITE_ONCE(stream->home->tx_bytes, stream->home->tx_bytes + written);
	/* After its end the connection needs no bytes, and the application is told of the
	 * end. */
	tas_written(homad_engine_of(t->tcp, stream), &stream->conn, written);
	if (shift < stream->home->tx_most)
		homad_stream_fills(t, stream);
	return NULL;
}

static const char *take_read(struct homad_thread *t, struct homad_stream *stream,
			     const struct homa_stream_slot *slot)
{
	u32 read = __atomic_load_n(&slot->rx_read, __ATOMIC_ACQUIRE);
	u32 taken = read - stream->rx_read;

	if (!taken)
		return NULL;
	if (taken > tas_readable(&stream->conn))
		return "more bytes taken than have arrived";
	if (unlikely(stream->limit)) {
		u32 some = homad_limit_open(t, stream, taken);

		stream->rx_held = some < taken;
		taken = some;
	}
	stream->rx_read += taken;
	tas_taken(homad_engine_of(t->tcp, stream), &stream->conn, taken);
	if (stream->conn.f.rx_shift < stream->home->rx_most)
		homad_stream_keeps_up(t, stream, taken);
	if (unlikely(stream->rx_due))
		homad_stream_widen(t, stream);
	return NULL;
}

/* Handles a RING; @own: the slot of the attachment that rings. */
static const char *ring(struct homad_thread *t, struct homad_stream *stream,
			struct homa_stream_slot *own)
{
	const struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	const char *why;

	__atomic_exchange_n(&own->rung, 0, __ATOMIC_SEQ_CST);
	/* Bytes taken come first, because a reply carries the window with it. */
	why = take_read(t, stream, slot);
	return why ? why : take_written(t, stream, slot);
}

static void shut(struct homad_thread *t, struct homad_stream *stream)
{
	if (stream->tx_end != stream->tx_last && stream->limit)
		stream->shutting = true;
	else
		tas_shut_send(homad_engine_of(t->tcp, stream), &stream->conn);
}

const char *homad_stream_goes_on(struct homad_thread *t,
				 struct homad_stream *stream, bool *waits)
{
	const struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	const char *why = NULL;

	stream->rx_held = *waits = false;
	/* Bytes that were written for a connection that has ended are dropped. */
	if (stream->conn.f.state == TAS_CLOSED)
		stream->tx_end = stream->tx_last;
	else if (!stream->closed)
		why = take_read(t, stream, slot);
	if (!why && stream->tx_end != stream->tx_last)
		why = take_written(t, stream, slot);
	if (why && !stream->closed)
		return why;
	*waits = !why && (stream->tx_end != stream->tx_last || stream->rx_held);
	if (why || (stream->tx_end == stream->tx_last && stream->shutting &&
		    stream->closed)) {
		homad_stream_all_written(t, stream, why);
	} else if (stream->tx_end == stream->tx_last && stream->shutting) {
		stream->shutting = false;
		tas_shut_send(homad_engine_of(t->tcp, stream), &stream->conn);
	}
	return NULL;
}

/* ---- options ---- */

static void set_options(struct homad_thread *t, struct homad_stream *stream,
			u32 options)
{
	struct tas_conn *conn = &stream->conn;
	u32 flags = 0;

	flags |= options & HOMA_STREAM_OPT_NODELAY ? TAS_F_NODELAY : 0;
	flags |= options & HOMA_STREAM_OPT_CORK ? TAS_F_CORK : 0;
	flags |= options & HOMA_STREAM_OPT_KEEPALIVE ? TAS_F_KEEPALIVE : 0;
	conn->f.flags &= ~(u32)(TAS_F_NODELAY | TAS_F_CORK | TAS_F_KEEPALIVE);
	conn->f.flags |= flags;
	stream->resets = options & HOMA_STREAM_OPT_RESET;
	tas_options(homad_engine_of(t->tcp, stream), conn);
}

/* Sets @which, an enum homa_stream_patience, to @value. */
static const char *set_patience(struct homad_thread *t,
				struct homad_stream *stream, u64 which, u32 value)
{
	struct tas_conn *conn = &stream->conn;

	if (!homa_stream_may_wait(which, value))
		return wrong_patience;
	if (which == HOMA_STREAM_PATIENCE_USER)
		conn->user_timeout = value * TAS_MSEC;
	else if (which == HOMA_STREAM_PATIENCE_IDLE)
		conn->keep_idle_ms = value * 1000;
	else if (which == HOMA_STREAM_PATIENCE_INTERVAL)
		conn->keep_interval_ms = value * 1000;
	else
		conn->keep_most = (u8)value;
	tas_options(homad_engine_of(t->tcp, stream), conn);
	return NULL;
}

/* ---- connect ---- */

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
	for (i = 0; i < PORT_TRIES && s->ports_tried < tcp->num_ports; i++) {
		pair->local_port = tcp->ports[tcp->next_port++ % tcp->num_ports];
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

/* Asks the rules. Returns 0 and the part of the policy that takes the connection, -EOPNOTSUPP
 * if no rule is for it, -EACCES if one denies it, or -ENOBUFS if a limit is reached. */
static int ask_rules(struct homad_thread *t, const struct homad_policy *policy,
		     const struct homa_stream_end *remote, int *part)
{
	*part = homad_policy_connect(policy, remote->ip, remote->port);
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
		    int *part, bool *local)
{
	struct homa_addr to = { 0 };
	struct homad_port *port;
	int rc;

	if (!c->remote.port)
		return -EOPNOTSUPP;
	rc = ask_rules(t, s->policy, &c->remote, part);
	if (rc)
		return rc;
	memcpy(to.ip, c->remote.ip, sizeof(to.ip));
	/* The address means this host, of whose addresses the kernel chooses one. */
	if (homa_addr_is_any(&to))
		return -EOPNOTSUPP;
	if (nic_addr_no_host(&to))
		return -ENETUNREACH;
	rc = homad_dest(t, s->app->uid, &to, 1, &port);
	if (rc)
		return rc;
	memset(pair, 0, sizeof(*pair));
	memcpy(pair->remote, c->remote.ip, sizeof(pair->remote));
	pair->remote_port = c->remote.port;
	*local = port == t->d->local;
	if (*local)
		return homad_tcp_local_way(t, s, &c->local, pair);
	/* No device of homad leads there, so the connection is left to the kernel. */
	if (!port->nic || port->encap)
		return -EOPNOTSUPP;
	return choose_source(port->nic, &c->local, &to, pair->local);
}

static const char *open_one(struct homad_thread *t, struct homad_streams *s,
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
		return wrong_patience;
	if (unlikely(!homad_streams_answerable(t, s, false)))
		return homad_next_round;
	/* The slow path may be about to give it slots. */
	homad_streams_want(t, s);
	if (!s->num_free && __atomic_load_n(&s->asked, __ATOMIC_ACQUIRE))
		return homad_next_round;
	rc = s->num_free ? find_way(t, s, c, &pair, &part, &local) : -ENOBUFS;
	if (rc == -EAGAIN)
		return homad_next_round;
	if (!rc)
		rc = connect_from_some_port(t, s, &pair, local, &conn);
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
	set_options(t, stream, c->value);
	return NULL;
}

/* ---- the rest ---- */

static const char *of_listener(struct homad_thread *t, struct homad_streams *s,
			       u16 op, u32 number)
{
	struct homad_hold *hold = homad_hold_find(s, number);
	int rc;

	if (!hold)
		return "a command for a listener that the attachment does not have";
	/* The last event of a listener comes after that of each connection that came to
	 * it. */
	if (unlikely(!homad_streams_answerable(t, s, op == HOMA_STREAM_UNLISTEN)))
		return homad_next_round;
	if (op == HOMA_STREAM_UNLISTEN) {
		homad_hold_leave(t, hold);
		homad_streams_tell(t, s, HOMA_STREAM_UNLISTENED, number, 0);
		return NULL;
	}
	/* An attachment that has ended meanwhile takes no connection from the others. */
	rc = s->app->phase == HOMAD_APP_OPEN ? homad_hold_take(t, hold) : 0;
	if (rc == -EAGAIN)
		return homad_next_round;
	if (rc)
		homad_streams_tell(t, s, HOMA_STREAM_NOTHING, number, 0);
	return NULL;
}

/* Others may wait for what the command has ended or changed. */
static void tell_others(struct homad_thread *t, struct homad_stream *stream)
{
	if (unlikely(stream->holds))
		homad_stream_news(t, stream, HOMAD_NEWS_CHANGED);
}

static const char *of_stream(struct homad_thread *t, struct homad_stream *stream,
			     struct homa_stream_slot *own,
			     const struct homa_stream_command *c)
{
	const char *why = NULL;

	switch (c->op) {
	case HOMA_STREAM_RING:
		return ring(t, stream, own);
	case HOMA_STREAM_SHUT:
		why = ring(t, stream, own);
		if (!why)
			shut(t, stream);
		tell_others(t, stream);
		return why;
	case HOMA_STREAM_CLOSE:
		return ring(t, stream, own);
	case HOMA_STREAM_ABORT:
		return NULL;
	case HOMA_STREAM_OPTIONS:
		set_options(t, stream, c->value);
		tell_others(t, stream);
		return NULL;
	case HOMA_STREAM_PATIENCE:
		return set_patience(t, stream, c->token, c->value);
	case HOMA_STREAM_URGENT:
		return tas_urge(homad_engine_of(t->tcp, stream), &stream->conn,
				c->value) == TAS_EINVAL ?
			       wrong_urgent :
			       NULL;
	}
	return "a command that does not exist";
}

static const char *command(struct homad_thread *t, struct homad_streams *s,
			   const struct homa_stream_command *c)
{
	bool ends = c->op == HOMA_STREAM_CLOSE || c->op == HOMA_STREAM_ABORT;
	bool reset = c->op == HOMA_STREAM_ABORT;
	struct homad_stream *stream;
	struct homad_alias *alias;
	const char *why;

	if (c->op == HOMA_STREAM_CONNECT)
		return open_one(t, s, c);
	if (c->op == HOMA_STREAM_UNLISTEN || c->op == HOMA_STREAM_ACCEPT)
		return of_listener(t, s, c->op, c->slot);
	stream = named(s, c);
	if (likely(stream)) {
		if (c->op == HOMA_STREAM_RETURN)
			return homad_stream_return(t, stream);
		why = of_stream(t, stream, &s->slots[c->slot], c);
		if (!why && ends) {
			homad_stream_leave(t, stream, reset);
			/* If the attachment releases many connections of this host, all
			 * their peers hear of that. */
			homad_tcp_local_reset(t);
		}
		return why;
	}
	alias = named_alias(s, c);
	if (!alias)
		return wrong_slot;
	why = of_stream(t, alias->stream, &s->slots[c->slot], c);
	if (!why && ends) {
		homad_alias_leave(t, alias, reset);
		homad_tcp_local_reset(t);
	}
	return why;
}

bool homad_stream_commands_waiting(const struct homad_streams *s)
{
	if (!s->stuck &&
	    __atomic_load_n(&s->area->command.tail, __ATOMIC_ACQUIRE) != s->head)
		return true;
	return homad_streams_untold(s);
}

const char *homad_stream_commands(struct homad_thread *t,
				  struct homad_streams *s, u32 budget, u32 *done)
{
	u32 tail = __atomic_load_n(&s->area->command.tail, __ATOMIC_ACQUIRE);
	u32 n = tail - s->head;
	const char *why = NULL;

	*done = 0;
	if (unlikely(!homa_list_empty(&s->news) ||
		     !homa_list_empty(&s->alias_news) ||
		     !homa_list_empty(&s->hold_news) ||
		     !homa_list_empty(&s->emptied)))
		homad_streams_touch(t, s);
	if (!n)
		return NULL;
	if (n > s->entries)
		return "command ring of streams: impossible tail";
	s->stuck = false;
	while (*done < n && *done < budget && !why) {
		const struct homa_stream_command *entry =
			&s->commands[s->head++ & (s->entries - 1)];
		struct homa_stream_command c;

		memcpy(&c, entry, sizeof(c));
		/* From here on only the copy counts. */
		__asm__ volatile("" ::: "memory");
		why = command(t, s, &c);
		++*done;
	}
	if (unlikely(why == homad_next_round)) {
		s->head--;
		--*done;
	}
	__atomic_store_n(&s->area->command.head, s->head, __ATOMIC_RELEASE);
	return why;
}

/* Does what was asked for before the end, such as sending bytes that were written. homad
 * may also not have been told of bytes that were read. */
static void take_last(struct homad_thread *t, struct homad_streams *s)
{
	struct homa_list *node;
	u32 done;

	homad_stream_commands(t, s, LAST_COMMANDS, &done);
	homa_list_for_each(node, &s->open) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, of);

		if (!stream->closed && !stream->left && !stream->parked &&
		    !stream->opening)
			ring(t, stream, &s->slots[stream->slot]);
	}
	homa_list_for_each(node, &s->aliases) {
		struct homad_alias *alias =
			homa_container_of(node, struct homad_alias, of_holder);

		ring(t, alias->stream, &s->slots[alias->slot]);
	}
}

void homad_streams_close(struct homad_thread *t, struct homad_streams *s)
{
	struct homa_list *node;

	homad_tcp_round(t);
	if (!s->app->evicted)
		take_last(t, s);
	homad_shares_end(t, s);
	node = s->open.next;
	while (node != &s->open) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, of);

		node = node->next;
		if (!stream->closed && !stream->parked && !stream->left) {
			homad_stream_leave(t, stream,
					   s->app->evicted || stream->resets);
			homad_tcp_local_reset(t);
		}
	}
	homa_list_del(&s->touched);
}

int homad_listener_begin(struct homad_thread *t, void *arg)
{
	struct homad_tcp_listener *listener = arg;
	struct homad_streams *s = listener->home;
	int rc;

	if (s->app->phase != HOMAD_APP_OPEN || s->app->evicted)
		return -ESHUTDOWN;
	homad_now(t);
	homad_tcp_round(t);
	listener->l.rx_shift = HOMAD_STREAM_SHIFT;
	listener->l.rx_max = 1u << s->rx_most;
	listener->l.places = &s->num_free;
	listener->here = listener->l;
	/* Half-open connections from this host do not count against the limit for those of
	 * other hosts. */
	listener->here.shared_half = NULL;
	rc = tas_listen(&t->tcp->local, &listener->here);
	if (rc)
		return rc;
	rc = listener->loopback ? 0 : tas_listen(&t->tcp->engine, &listener->l);
	if (rc) {
		tas_unlisten(&t->tcp->local, &listener->here);
		return rc;
	}
	homa_list_init(&listener->holds);
	homa_list_init(&listener->parked);
	homad_hold_begin(&listener->first, s, listener);
	return 0;
}

int homad_ticket_fill(struct homad_thread *t, void *arg)
{
	const struct homad_sharing *sharing = arg;
	struct homad_streams *s = sharing->s;

	if (s->app->phase != HOMAD_APP_OPEN || s->app->evicted)
		return -ESHUTDOWN;
	homad_now(t);
	homad_tcp_round(t);
	/* The commands before that, such as closing streams or giving connections back,
	 * come first. */
	if ((s32)(sharing->tail - s->head) > 0)
		return -EAGAIN;
	return homad_ticket_add_all(t, sharing);
}
