// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Which way to a destination: an application of this host (its own addresses),
 * a device over which Homa goes natively, or UDP encapsulation. The kernel's
 * routing table decides, asked once a second for each destination in use, by the thread
 * for routes (slow/routes.c): nothing here waits for it. Users share what is known, but
 * one's destinations do not push out another's.
 */
#include <errno.h>
#include <sys/random.h>
#include <unistd.h>
#include "homa_sockaddr.h"
#include "route.h"
#include "dest_table.h"
#include "fast.h"

/* The time for which the kernel's answer is believed while the kernel is asked again,
 * ns. */
#define BELIEVE_ASKED_NS 2000000000u
/* The time without use after which an entry is free, ns. */
#define UNUSED_NS 10000000000u

int homad_dests_init(struct homad_dests *dests)
{
	ssize_t n = getrandom(dests->key, sizeof(dests->key), 0);

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(dests->key) ? 0 : -EIO;
}

/* Returns the port of the device @ifindex that this thread serves, or else another port of
 * the device, or NULL. */
static struct homad_port *port_over(struct homad_thread *t, int ifindex)
{
	struct homad_port *any = NULL;
	u32 i;

	for (i = 0; i < t->d->num_ports; i++) {
		struct homad_port *port = &t->d->ports[i];

		if (!port->nic || port->encap || port->ifindex != ifindex)
			continue;
		if (port->thread == t->index)
			return port;
		any = port;
	}
	return any;
}

/* Finds the way over UDP; the nic knows it best, but belongs to one thread. */
static int over_udp(struct homad_thread *t, struct homa_addr *addr,
		    struct homad_port **port)
{
	u32 mtu;
	int rc;

	*port = t->d->udp;
	if (!*port)
		return -EPROTONOSUPPORT;
	if (!addr->encap)
		addr->encap = HOMA_ENCAP_PORT;
	mtu = (*port)->info->mtu;
	if ((*port)->thread == t->index) {
		rc = nic_route((*port)->nic, addr, &mtu);
		if (rc)
			return rc;
	}
	homad_refill(t);
	homa_path_mtu(&t->ctx, (*port)->link, addr, mtu);
	return 0;
}

/*
 * Names this host as a destination. As with the kernel, messages to ourselves come from the
 * address that they were sent to. But all of 127.0.0.0/8 is one host, or one application
 * could make a peer of each of these addresses.
 */
static void name_ourselves(struct homa_addr *addr)
{
	addr->encap = 0;
	if (homa_addr_is_v4(addr) && addr->ip[12] == 127)
		memcpy(addr->ip + 13, "\0\0\1", 3);
}

/* Finds the port for the route that the kernel has given in @q. */
static int resolve(struct homad_thread *t, const struct homad_question *q,
		   struct homa_addr *addr, struct homad_port **port)
{
	const struct nic_route_result *route = &q->route;
	u32 mtu;

	if (q->error)
		return q->error == -ENETUNREACH ? q->error : -EHOSTUNREACH;
	if (route->local &&
	    (!addr->encap ||
	     (t->d->udp && addr->encap == t->d->udp->info->address.encap))) {
		name_ourselves(addr);
		*port = t->d->local;
		return 0;
	}
	*port = addr->encap || route->local ? NULL : port_over(t, route->ifindex);
	if (!*port)
		return over_udp(t, addr, port);
	mtu = (*port)->info->mtu;
	if ((*port)->thread == t->index) {
		if (q->way.ifindex == (*port)->ifindex)
			nic_learn((*port)->nic, &q->way);
		/* The nic may have learned of a narrower path. */
		nic_route((*port)->nic, addr, &mtu);
	}
	if (route->mtu && route->mtu < mtu)
		mtu = route->mtu;
	homad_refill(t);
	homa_path_mtu(&t->ctx, (*port)->link, addr, mtu);
	return 0;
}

static bool unused(const struct homad_dest *dest, u64 now)
{
	return !dest->checked || homa_since(now, dest->used) > UNUSED_NS;
}

/* Has only the user of the entry sent to the destination of late? */
static bool own(const struct homad_dest *dest, u64 now)
{
	return !dest->others_at || homa_since(now, dest->others_at) > UNUSED_NS;
}

static u32 entries_of(const struct homad_dest *set, uid_t user)
{
	u32 i, n = 0;

	for (i = 0; i < HOMAD_DEST_WAYS; i++)
		n += set[i].user == user;
	return n;
}

static bool older(const struct homad_dest *a, const struct homad_dest *b)
{
	return !b || a->used < b->used;
}

/* Of the entries that only @user uses, returns the one that was used longest ago, or NULL;
 * *@count receives how many there are. */
static struct homad_dest *own_in(struct homad_dest *set, uid_t user, u64 now,
				 u32 *count)
{
	struct homad_dest *found = NULL;
	u32 i;

	*count = 0;
	for (i = 0; i < HOMAD_DEST_WAYS; i++) {
		if (set[i].user != user || !own(&set[i], now))
			continue;
		(*count)++;
		if (older(&set[i], found))
			found = &set[i];
	}
	return found;
}

/* Returns an entry of the user who has the most entries in the set, preferably one that
 * nobody else uses and the oldest of those; *@count receives how many that user has. */
static struct homad_dest *most_in(struct homad_dest *set, u64 now, u32 *count)
{
	struct homad_dest *found = NULL;
	u32 i;

	*count = 0;
	for (i = 0; i < HOMAD_DEST_WAYS; i++) {
		u32 n = entries_of(set, set[i].user) * 2 + own(&set[i], now);

		if (n > *count || (n == *count && older(&set[i], found))) {
			found = &set[i];
			*count = n;
		}
	}
	*count /= 2;
	return found;
}

/*
 * Returns the entry to replace. A user replaces an entry of his own, unless he has none or
 * another user has two more in the set. So a user with very many destinations takes at most
 * one entry of a set from a user who has few there.
 */
static struct homad_dest *place_in(struct homad_dest *set, uid_t user, u64 now)
{
	struct homad_dest *mine, *theirs;
	u32 i, my_count, their_count;

	for (i = 0; i < HOMAD_DEST_WAYS; i++)
		if (unused(&set[i], now))
			return &set[i];
	mine = own_in(set, user, now, &my_count);
	theirs = most_in(set, now, &their_count);
	return mine && their_count < my_count + 2 ? mine : theirs;
}

int homad_dest_learn(struct homad_thread *t, const struct homad_question *q)
{
	struct homad_dest *set = homad_dest_set(&t->dests, &q->addr);
	struct homad_dest *dest = homad_dest_find_in(set, &q->addr);

	if (!dest) {
		dest = place_in(set, q->user, t->ctx.now);
		memset(dest, 0, sizeof(*dest));
		dest->addr = q->addr;
		dest->user = q->user;
		dest->used = t->ctx.now;
	}
	dest->way = q->addr;
	dest->port = NULL;
	dest->error = resolve(t, q, &dest->way, &dest->port);
	dest->checked = t->ctx.now;
	return dest->error;
}

static int answered(struct homad_thread *t, void *arg)
{
	struct homad_question *q = arg;

	q->open = false;
	homad_now(t);
	return homad_dest_learn(t, q);
}

/* Asks the kernel on this thread, when no thread for routes can: the fast-path thread is not
 * running, or homad ends. */
static void ask_here(struct homad_question *q)
{
	q->error = nic_route_get(&q->thread->rtnl, &q->addr, 0, &q->route);
	q->job.run(q->thread, q->job.arg);
}

void homad_ring_routes(struct homad *d)
{
	u64 one = 1;

	if (write(d->questions_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the eventfd is readable */
}

void homad_ask_route(struct homad *d, struct homad_question *q)
{
	if (!__atomic_load_n(&d->routes, __ATOMIC_ACQUIRE)) {
		ask_here(q);
		return;
	}
	HOMAD_PUSH(&d->questions, q, next);
	homad_ring_routes(d);
}

/* Returns a free question, or NULL. Each user has at most one question under way, so that a
 * user who sends to ever new destinations leaves room for others. */
static struct homad_question *question_of(struct homad_dests *dests, uid_t user)
{
	struct homad_question *unused = NULL;
	u32 i;

	for (i = 0; i < HOMAD_QUESTIONS; i++) {
		struct homad_question *q = &dests->questions[i];

		if (!q->open)
			unused = q;
		else if (q->user == user)
			return NULL;
	}
	return unused;
}

/*
 * Asks another thread to ask the kernel, so that no round waits for it. Until the answer is
 * there a command waits if its destination is new; if the destination is in use, the
 * command goes the way that was right a moment ago. What bulk.c knows of the peer outlives
 * the route.
 */
HOMA_RARE static struct homad_dest *look_up(struct homad_thread *t, uid_t user,
					    struct homad_dest *dest,
					    const struct homa_addr *addr)
{
	struct homad_question *q = question_of(&t->dests, user);
	bool serves = dest && !dest->error &&
		      homa_since(t->ctx.now, dest->checked) <= BELIEVE_ASKED_NS;

	if (q) {
		*q = (struct homad_question){
			.job = { .run = answered, .arg = q },
			.thread = t,
			.addr = *addr,
			.user = user,
			.is_new = !dest,
			.open = true,
		};
		t->counters.route_lookups++;
		homad_ask_route(t->d, q);
		if (!q->open)
			return homad_dest_find(&t->dests, addr);
	}
	if (serves)
		return dest;
	t->counters.route_waits++;
	return NULL;
}

int homad_dest(struct homad_thread *t, uid_t user, struct homa_addr *addr,
	       u32 length, struct homad_port **port)
{
	struct homad_dest *dest;

	if (unlikely(homa_addr_is_any(addr))) {
		addr->encap = 0;
		*port = t->d->local;
		return 0;
	}
	dest = homad_dest_find(&t->dests, addr);
	if (unlikely(!dest || homa_since(t->ctx.now, dest->checked) >
				      HOMAD_BELIEVE_NS)) {
		dest = look_up(t, user, dest, addr);
		if (!dest)
			return -EAGAIN;
	}
	dest->used = t->ctx.now;
	if (unlikely(dest->user != user))
		dest->others_at = t->ctx.now;
	if (unlikely(dest->error))
		return dest->error;
	if (homad_bulk(t, dest, length, addr, port))
		return 0;
	*addr = dest->way;
	*port = dest->port;
	return 0;
}
