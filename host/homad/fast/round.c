// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One round of a fast-path thread: packets in, commands in, the engine's
 * answers out, to the network and to the applications. A round is bounded in
 * every part, so nobody waits long for his turn.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_steer.h"

/* The time after which the engine is asked again for its next timer, in ns, because it does
 * not say that a send or a packet has set an earlier one. */
#define TIMER_LAG 500000u
#define TIMER_BUDGET 64u

/* Runs the timers of the thread's TCP instances; returns when there is more to do, ns. */
static u64 run_tcp_timers(struct homad_thread *t)
{
	const struct homad_tcp *first = t->tcp;
	u64 next = HOMA_NEVER;

	do {
		if (t->ctx.now >= t->tcp->retry_at)
			homad_streams_retry(t);
		next = homa_min_u64(next, homad_tcp_timers(t));
	} while (homad_tcp_another(t, first));
	return next;
}

/* Runs the timers of this thread's shards, which are shared out over the active threads. */
static u64 run_timers(struct homad_thread *t)
{
	u32 shards = homa_engine_shards(t->d->engine);
	u32 active = __atomic_load_n(&t->d->num_active, __ATOMIC_RELAXED);
	u64 next = HOMA_NEVER;
	u32 s;

	/* A thread that does not take part has no shard. */
	for (s = t->active ? t->index : shards; s < shards; s += active) {
		homad_refill(t);
		next = homa_min_u64(next, homa_timer(&t->ctx, s, TIMER_BUDGET));
	}
	homa_rx_flush(&t->ctx);
	if (unlikely(t->tcp))
		next = homa_min_u64(next, run_tcp_timers(t));
	t->deadline = next;
	/* No other thread tells this one that it has set a timer in one of these shards. */
	if (unlikely(active > 1))
		t->deadline = homa_min_u64(next, t->ctx.now + TIMER_LAG);
	return next;
}

/* The time without a packet after which a UDP socket is quiet, ns. To look into a UDP socket
 * is a system call, into AF_XDP's rings a load, so a quiet socket beside other ports is looked
 * into once in UDP_PAUSE_NS; if the kernel counts datagrams in memory, when the counter has
 * changed, and besides once in UDP_LONG_PAUSE_NS for errors, which it does not count. */
#define UDP_QUIET_NS 300000u
#define UDP_PAUSE_NS 50000u
#define UDP_LONG_PAUSE_NS 2000000u

static bool is_quiet(const struct homad_thread *t, const struct homad_port *port)
{
	return port->encap && t->num_ports > 1 &&
	       homa_since(t->ctx.now, port->heard_at) > UDP_QUIET_NS;
}

static void pause_port(const struct homad_thread *t, struct homad_port *port)
{
	port->rx_at =
		t->ctx.now + (port->news ? UDP_LONG_PAUSE_NS : UDP_PAUSE_NS);
}

void homad_rx_pause(struct homad_thread *t)
{
	u32 i;

	for (i = 0; i < t->num_ports; i++)
		if (is_quiet(t, t->ports[i]))
			pause_port(t, t->ports[i]);
}

/* Has the kernel counted a datagram since the port was last looked at? Then it may be a moment
 * until it is there, so the port is no longer quiet. */
static bool has_news(struct homad_thread *t, struct homad_port *port)
{
	u64 news = port->news ? HOMA_READ_ONCE(*port->news) : 0;

	if (likely(news == port->news_seen))
		return false;
	port->news_seen = news;
	port->heard_at = t->ctx.now;
	t->counters.udp_news++;
	return true;
}

static int receive_from(struct homad_thread *t, struct homad_port *port)
{
	int i, n = HOMAD_BATCH, total = 0;

	for (i = 0; i < HOMAD_RX_BATCHES && n == HOMAD_BATCH; i++) {
		n = homad_rx(t, port);
		total += n;
	}
	if (n == HOMAD_BATCH)
		t->rx_left = true;
	return total;
}

static int receive(struct homad_thread *t)
{
	int n, total = 0;
	u32 i;

	for (i = 0; i < t->num_ports; i++) {
		struct homad_port *port = t->ports[i];

		if (port->encap && !has_news(t, port) && t->ctx.now < port->rx_at)
			continue;
		n = receive_from(t, port);
		if (n)
			port->heard_at = t->ctx.now;
		else if (is_quiet(t, port))
			pause_port(t, port);
		total += n;
	}
	return total;
}

static void icmp(struct homad_thread *t)
{
	u32 i;

	for (i = 0; i < t->num_ports; i++)
		homad_icmp(t, t->ports[i]);
}

/* Does TCP have something to send by this port? */
static bool has_tcp(struct homad_thread *t, const struct homad_port *port)
{
	const struct homad_tcp *first = t->tcp;

	if (likely(!first) || port->encap)
		return false;
	do
		if (tas_first_out(&t->tcp->engine))
			return true;
	while (homad_tcp_another(t, first));
	return false;
}

/* ---- parts of a round for each TCP instance of the thread ---- */

static void begin_tcp(struct homad_thread *t)
{
	const struct homad_tcp *first = t->tcp;

	do {
		homad_tcp_round(t);
		homad_limits_round(t);
	} while (homad_tcp_another(t, first));
}

/* Moves segments within this host, and takes the engines' events. */
static int tcp_events(struct homad_thread *t)
{
	const struct homad_tcp *first = t->tcp;
	int n = 0;

	do {
		n += homad_tcp_local(t);
		homad_stream_events(t);
	} while (homad_tcp_another(t, first));
	return n;
}

/* Ends streams that had their turn to send, and tells the applications what is new. */
static int tell_tcp(struct homad_thread *t)
{
	const struct homad_tcp *first = t->tcp;
	int n = 0;

	do {
		n += (int)homad_streams_reset(t);
		homad_streams_deliver(t);
	} while (homad_tcp_another(t, first));
	return n;
}

static bool local_waits(struct homad_thread *t)
{
	const struct homad_tcp *first = t->tcp;
	bool any = false;

	do
		any |= homad_tcp_local_waits(t->tcp);
	while (homad_tcp_another(t, first));
	return any;
}

/*
 * Has other threads send what this one has given to the links of their ports: an answer to a
 * packet that came in here, or a message of an application that is at home here. Such a thread may
 * have nothing else to do, and then it would not look. It need not be woken: who serves a port
 * beside other threads spins, and one that is given the port looks at its link.
 */
static void tell_others(struct homad_thread *t)
{
	u32 i;

	for (i = 0; i < t->d->num_ports; i++) {
		struct homad_port *port = &t->d->ports[i];

		if (port->nic && HOMA_READ_ONCE(port->thread) != t->index &&
		    (t->ctx.tx_more || port->link == t->ctx.tx_link))
			__atomic_store_n(&port->wanted, true, __ATOMIC_SEQ_CST);
	}
}

/* Has another thread given the port's link something? It is asked after this, so nothing that was
 * given before is missed. */
static bool is_wanted(struct homad_port *port)
{
	return unlikely(HOMA_READ_ONCE(port->wanted)) &&
	       __atomic_exchange_n(&port->wanted, false, __ATOMIC_SEQ_CST);
}

/* Sends packets that wait. If @all is set, every port is asked, else only those that wait
 * for room, the pacer or another thread's packets, or have TCP. Returns how many were sent. */
static int send(struct homad_thread *t, bool all)
{
	int n = 0;
	u32 i;

	if (unlikely(t->d->num_threads > 1) && t->ctx.tx_link)
		tell_others(t);
	t->ctx.tx_link = NULL;
	t->ctx.tx_more = false;
	for (i = 0; i < t->num_ports; i++) {
		struct homad_port *port = t->ports[i];
		bool wanted = is_wanted(port);

		if (!all && !wanted && !port->tx_blocked &&
		    t->ctx.now < port->tx_at &&
		    (port->tx_at != HOMA_NEVER || !has_tcp(t, port)))
			continue;
		n += t->tcp && !port->encap ? homad_egress(t, port) :
					      homad_tx(t, port);
	}
	return n;
}

/*
 * Has applications polled whose messages found no buffers: even a quiet one must now tell
 * when it gives pages back. Polling does that, because parking an application asks it to
 * kick.
 */
static void watch_starved(struct homad_thread *t)
{
	u64 waits = t->ctx.metrics[HOMA_M_buffer_waits];
	struct homa_list *node;
	u32 i;

	if (unlikely(waits != t->waits_seen)) {
		t->waits_seen = waits;
		/* The application may belong to another thread. */
		for (i = 0; i < t->d->num_threads; i++)
			HOMA_WRITE_ONCE(t->d->threads[i]->some_starved, true);
	}
	if (likely(!HOMA_READ_ONCE(t->some_starved)))
		return;
	HOMA_WRITE_ONCE(t->some_starved, false);
	for (node = t->apps.next; node != &t->apps; node = node->next) {
		struct homad_app *app =
			homa_container_of(node, struct homad_app, member);

		if (homa_sock_starved(app->sock)) {
			homad_poll_app(t, app);
			homad_look_at_pool(t, app);
		}
	}
}

/* Runs timers that are due, after a round that has taken @received packets. */
static void overdue(struct homad_thread *t, u32 received)
{
	if (homa_overdue_wait(&t->overdue, received, t->rx_left)) {
		t->counters.timers_waited++;
		return;
	}
	icmp(t);
	run_timers(t);
}

/* Does one round of the thread's work; returns how much was done, 0 if there was nothing. */
int homad_round(struct homad_thread *t)
{
	int done, received;

	/* This is stored before the round takes anything; see grace.c. */
	__atomic_store_n(&t->passed, t->passed + 1, __ATOMIC_RELEASE);
	homad_now(t);
	t->counters.rounds++;
	if (unlikely(t->tcp))
		begin_tcp(t);
	done = homad_mail(t);
	t->rx_left = false;
	/* What other threads have handed over came in before what the ports have now, as far as it
	 * came by a port that has moved here since. */
	received = unlikely(t->tcp) ? homad_tcp_handed(t) : 0;
	received += receive(t);
	done += received;
	done += homad_commands(t);
	if (unlikely(t->ctx.now >= t->deadline))
		overdue(t, (u32)received);
	if (done)
		t->deadline = homa_min_u64(t->deadline, t->ctx.now + TIMER_LAG);
	done += homad_local(t, t->d->local);
	if (done || t->ctx.event_head)
		homad_events(t);
	if (unlikely(t->tcp))
		done += tcp_events(t);
	done += send(t, done || t->ctx.tx_link);
	if (unlikely(t->tcp))
		done += tell_tcp(t);
	if (done || t->ctx.retired_rpc || t->ctx.retired_peer)
		homad_reap(t);
	homad_deliver(t);
	watch_starved(t);
	if (unlikely(!homa_list_empty(&t->closing) ||
		     HOMA_READ_ONCE(t->some_evicted)))
		done += homad_sessions_closing(t);
	return done;
}

/* Returns the time at which a round is needed if nothing comes in, ns, or HOMA_NEVER. */
u64 homad_next_deadline(struct homad_thread *t)
{
	u64 next;
	u32 i;

	icmp(t);
	next = run_timers(t);
	homad_local(t, t->d->local);
	homad_events(t);
	if (t->tcp)
		tcp_events(t);
	if (send(t, true))
		next = t->ctx.now;
	if (t->tcp && tell_tcp(t))
		next = t->ctx.now;
	if (t->tcp && local_waits(t))
		next = t->ctx.now;
	homad_reap(t);
	homad_deliver(t);
	for (i = 0; i < t->num_ports; i++) {
		struct homad_port *port = t->ports[i];

		next = homa_min_u64(next, port->tx_at);
		/* No interface tells when a full nic has room again. */
		if (port->tx_blocked)
			next = homa_min_u64(next, t->ctx.now + TIMER_LAG);
	}
	return next;
}
