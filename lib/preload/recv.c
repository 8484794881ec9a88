// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * recvmsg(): give back pages, take a message, say where it is. Messages arrive
 * in the application's region itself if libhoma could be given that; else they
 * are copied there, and one that finds no room waits until pages come back.
 * It cannot be left in libhoma: only by taking it its length is known.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "libhoma_preload.h"
#include "../../abi/homa_encap.h"
#include "internal.h"
#include "real.h"

/* The longest slice of a wait, in ns, in a child of fork() while its parent still has the
 * port. */
#define FORKED_SLICE 20000000

/* struct receipt - one call of recvmsg() */
struct receipt {
	/* The application's arguments and results. */
	struct homa_recvmsg_args *args;
	/* The message that was taken from libhoma. */
	struct homa_message msg;
	/* The call may wait. */
	bool wait;
	/* The time at which a call that waits gives up, in ns; -1: never. */
	int64_t until;
};

socklen_t homa_pl_name(const struct homa_pl_sock *s,
		       const struct sockaddr_storage *peer,
		       struct sockaddr_storage *name)
{
	const struct sockaddr_in *in = (const void *)peer;
	struct sockaddr_in6 *in6 = (void *)name;
	uint8_t *ip = in6->sin6_addr.s6_addr;
	uint16_t encap;

	if (s->family == AF_INET) {
		if (peer->ss_family == AF_INET)
			memcpy(name, peer, sizeof(*in));
		else
			memset(name, 0, sizeof(*in));
		name->ss_family = AF_INET;
		return sizeof(*in);
	}
	if (peer->ss_family == AF_INET6) {
		memcpy(name, peer, sizeof(*in6));
		return sizeof(*in6);
	}
	memset(in6, 0, sizeof(*in6));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = in->sin_port;
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, &in->sin_addr, 4);
	/* The UDP port beside the Homa port, as libhoma keeps it. */
	if (homa_encap_in_zero(in->sin_zero, &encap))
		in6->sin6_flowinfo = htonl(homa_encap_to_flow(encap));
	return sizeof(*in6);
}

void homa_pl_wake_returned(struct homa_pl_sock *s)
{
	__atomic_fetch_add(&s->returned, 1, __ATOMIC_RELEASE);
	HOMA_PL_REAL(syscall)(SYS_futex, &s->returned, FUTEX_WAKE_PRIVATE,
			      INT32_MAX, NULL);
}

/* Returns how long the call may still wait, in ns; -1 for ever, 0 not at all. */
static int64_t left(const struct receipt *r)
{
	int64_t now;

	if (!r->wait)
		return 0;
	if (r->until < 0)
		return -1;
	now = homa_pl_now();
	return now < r->until ? r->until - now : 0;
}

/* Wait until pages come back. @seen: the value of @returned when there was no room. */
static int wait_returned(struct homa_pl_sock *s, const struct receipt *r,
			 uint32_t seen)
{
	int64_t ns = left(r);
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	if (!ns)
		return -EAGAIN;
	if (HOMA_PL_REAL(syscall)(SYS_futex, &s->returned, FUTEX_WAIT_PRIVATE,
				  seen, ns < 0 ? NULL : &ts) &&
	    errno == EINTR)
		return -EINTR;
	return 0;
}

static int give_back(struct homa_pl_sock *s, struct homa_recvmsg_args *args)
{
	uint32_t num = args->num_bpages;
	int rc;

	if (!num)
		return 0;
	args->num_bpages = 0;
	pthread_mutex_lock(&s->lock);
	rc = s->region.start ?
		     homa_pl_region_put(&s->region, num, args->bpage_offsets) :
		     -EINVAL;
	pthread_mutex_unlock(&s->lock);
	/* libhoma may have forgotten these pages, if homad was restarted meanwhile. */
	if (s->lent)
		homa_internal_release_pages(s->h, args->bpage_offsets, num);
	else
		homa_pl_wake_returned(s);
	return rc && !s->reborn ?
		       homa_pl_error(s, -EINVAL,
				     "recvmsg: an entry of bpage_offsets was not given to the application") :
		       0;
}

/* Copy a message from libhoma's memory to the application's region. */
static void copy(const struct homa_pl_sock *s, const struct homa_message *msg,
		 const uint32_t *offsets)
{
	size_t done = 0;
	int i;

	for (i = 0; i < msg->iovcnt; i++) {
		const uint8_t *from = msg->iov[i].iov_base;
		size_t n = msg->iov[i].iov_len;

		/* Both sides have pieces of at most 64 KiB, in step. */
		memcpy(s->region.start + offsets[done >> HOMA_BPAGE_SHIFT] +
			       (done & (HOMA_BPAGE_SIZE - 1)),
		       from, n);
		done += n;
	}
}

/* Put a message into the region, and its place into the call's result. -ENOBUFS if there is no
 * room now. */
static int place(struct homa_pl_sock *s, struct receipt *r,
		 struct homa_message *msg)
{
	uint32_t offsets[HOMA_MAX_BPAGES];
	int n;

	if (s->lent) {
		memcpy(r->args->bpage_offsets, homa_internal_pages(msg),
		       (size_t)msg->iovcnt * sizeof(uint32_t));
		r->args->num_bpages = (uint32_t)msg->iovcnt;
		pthread_mutex_lock(&s->lock);
		homa_pl_region_note(&s->region, r->args->num_bpages,
				    r->args->bpage_offsets);
		pthread_mutex_unlock(&s->lock);
		return 0;
	}
	pthread_mutex_lock(&s->lock);
	n = s->region.start ?
		    homa_pl_region_get(&s->region, msg->length, offsets) :
		    -ENOMEM;
	pthread_mutex_unlock(&s->lock);
	if (n == -ENOMEM) {
		homa_release(s->h, msg);
		return homa_pl_error(
			s, n,
			"recvmsg: a message came, but the receive region was unmapped");
	}
	if (n < 0)
		return n;
	copy(s, msg, offsets);
	homa_release(s->h, msg);
	memcpy(r->args->bpage_offsets, offsets, (size_t)n * sizeof(*offsets));
	r->args->num_bpages = (uint32_t)n;
	return 0;
}

/* Take a message that waited for room; returns 1, 0 if there is none, or an error. */
static int take_held(struct homa_pl_sock *s, struct receipt *r)
{
	struct homa_pl_held *held;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	held = s->held;
	if (held) {
		s->held = held->next;
		if (!s->held)
			s->held_end = &s->held;
	}
	pthread_mutex_unlock(&s->lock);
	if (!held)
		return 0;
	rc = place(s, r, &held->msg);
	if (rc == -ENOBUFS) {
		pthread_mutex_lock(&s->lock);
		held->next = s->held;
		if (!s->held)
			s->held_end = &held->next;
		s->held = held;
		pthread_mutex_unlock(&s->lock);
		return rc;
	}
	r->msg = held->msg;
	free(held);
	return rc ? rc : 1;
}

static int hold(struct homa_pl_sock *s, const struct homa_message *msg)
{
	struct homa_pl_held *held = malloc(sizeof(*held));

	if (!held)
		return -ENOMEM;
	held->msg = *msg;
	held->next = NULL;
	pthread_mutex_lock(&s->lock);
	*s->held_end = held;
	s->held_end = &held->next;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* Take the next message that is not private, or the failure of an RPC. */
static int shared(struct homa_pl_sock *s, struct receipt *r)
{
	int rc;

	for (;;) {
		uint32_t seen = __atomic_load_n(&s->returned, __ATOMIC_ACQUIRE);
		int64_t ns = left(r);

		if (__atomic_load_n(&s->shut, __ATOMIC_ACQUIRE))
			return -ESHUTDOWN;
		rc = take_held(s, r);
		if (rc == -ENOBUFS) {
			rc = wait_returned(s, r, seen);
			if (rc)
				return rc;
			continue;
		}
		if (rc)
			return rc < 0 ? rc : 0;
		homa_pl_claim_port(s);
		if (s->port_missing && (ns < 0 || ns > FORKED_SLICE))
			ns = FORKED_SLICE;
		rc = homa_receive_ns(s->h, &r->msg, ns ? 0 : HOMA_RECV_NONBLOCK,
				     ns);
		if (rc == -EAGAIN && s->port_missing && left(r))
			continue;
		if (rc || r->msg.kind == HOMA_ERROR)
			return rc;
		rc = place(s, r, &r->msg);
		if (rc != -ENOBUFS)
			return rc;
		rc = hold(s, &r->msg);
		if (rc) {
			homa_release(s->h, &r->msg);
			return rc;
		}
	}
}

/* Wait for the outcome of the private RPC @id, and put its response into the region. */
static int wait_private(struct homa_pl_sock *s, struct receipt *r, uint64_t id)
{
	int64_t ns = left(r);
	int rc, ms;

	ms = ns < 0			? -1 :
	     ns > INT32_MAX * 1000000ll ? INT32_MAX :
					  (int)((ns + 999999) / 1000000);
	rc = homa_receive_id(s->h, &r->msg, id, ms);
	if (rc == -ENOENT && __atomic_load_n(&s->shut, __ATOMIC_ACQUIRE))
		return -ESHUTDOWN;
	if (rc == -ENOENT) {
		pthread_mutex_lock(&s->lock);
		homa_pl_rpc_forget(s, id);
		pthread_mutex_unlock(&s->lock);
		return homa_pl_error(s, -EINVAL, "recvmsg: the RPC was aborted");
	}
	if (rc || r->msg.kind == HOMA_ERROR)
		return rc;
	return place(s, r, &r->msg);
}

static int private_one(struct homa_pl_sock *s, struct receipt *r, uint64_t id)
{
	struct homa_pl_rpc *rpc;
	uint32_t seen;
	bool held;
	int rc;

	pthread_mutex_lock(&s->lock);
	rpc = homa_pl_rpc_find(s, id, NULL);
	held = rpc && rpc->held;
	if (held)
		r->msg = rpc->msg;
	pthread_mutex_unlock(&s->lock);
	if (__atomic_load_n(&s->shut, __ATOMIC_ACQUIRE))
		return -ESHUTDOWN;
	if (!rpc)
		return homa_pl_error(
			s, -EINVAL,
			"recvmsg: the id is not that of an open private RPC");
	for (;;) {
		seen = __atomic_load_n(&s->returned, __ATOMIC_ACQUIRE);
		rc = held ? place(s, r, &r->msg) : wait_private(s, r, id);
		if (rc != -ENOBUFS)
			break;
		held = true;
		rc = wait_returned(s, r, seen);
		if (rc)
			break;
	}
	pthread_mutex_lock(&s->lock);
	rpc = homa_pl_rpc_find(s, id, NULL);
	if (rpc && held && (rc == -EAGAIN || rc == -EINTR)) {
		rpc->held = true;
		rpc->msg = r->msg;
	} else if (rpc && rc != -EAGAIN && rc != -EINTR) {
		homa_pl_rpc_take(s, rpc);
		free(rpc);
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static void fill_name(const struct homa_pl_sock *s, struct msghdr *hdr,
		      const struct homa_message *msg)
{
	struct sockaddr_storage name;
	socklen_t size;

	if (!hdr->msg_name)
		return;
	size = homa_pl_name(s, &msg->peer, &name);
	memcpy(hdr->msg_name, &name,
	       hdr->msg_namelen < size ? hdr->msg_namelen : size);
	hdr->msg_namelen = size;
}

int homa_pl_check_receive(struct homa_pl_sock *s,
			  const struct homa_recvmsg_args *args)
{
	if (args->reserved)
		return homa_pl_error(s, -EINVAL,
				     "recvmsg: the reserved field is not 0");
	if (!__atomic_load_n(&s->has_region, __ATOMIC_ACQUIRE))
		return homa_pl_error(
			s, -EINVAL,
			"recvmsg: the socket has no receive region; set SO_HOMA_RCVBUF first");
	if (args->num_bpages > HOMA_MAX_BPAGES)
		return homa_pl_error(s, -EINVAL,
				     "recvmsg: num_bpages is larger than 16");
	return 0;
}

static void begin(struct homa_pl_sock *s, struct receipt *r, int flags)
{
	r->wait = !(flags & MSG_DONTWAIT) && !(s->status & O_NONBLOCK);
	r->until = -1;
	if (r->wait && s->rcvtimeo >= 0)
		r->until = homa_pl_now() + s->rcvtimeo;
}

/* Fills in the caller's @hdr and homa_recvmsg_args from @r. @rc: 0, or -ENOMEM if the message
 * could not be kept. Returns the message's length or a negative errno. */
static int64_t end(struct homa_pl_sock *s, struct receipt *r,
		   struct msghdr *hdr, int rc)
{
	r->args->id = r->msg.id;
	r->args->completion_cookie =
		r->msg.kind == HOMA_REQUEST ? 0 : r->msg.cookie;
	fill_name(s, hdr, &r->msg);
	hdr->msg_flags = 0;
	/* A kernel that has no control messages to give returns 0, too. */
	hdr->msg_controllen = 0;
	if (rc)
		return rc;
	if (r->msg.kind == HOMA_ERROR) {
		homa_release(s->h, &r->msg);
		return homa_pl_error(s, r->msg.error, "the RPC failed");
	}
	if (r->msg.kind == HOMA_REQUEST) {
		pthread_mutex_lock(&s->lock);
		homa_pl_rpc_request(s, &r->msg);
		pthread_mutex_unlock(&s->lock);
	}
	return (int64_t)r->msg.length;
}

int64_t homa_pl_recvmsg(struct homa_pl_sock *s, struct msghdr *hdr, int flags)
{
	struct receipt r;
	int rc;

	if (!hdr)
		return -EFAULT;
	r.args = hdr->msg_control;
	if (!r.args || hdr->msg_controllen != sizeof(*r.args))
		return homa_pl_error(
			s, -EINVAL,
			"recvmsg: msg_control is not a struct homa_recvmsg_args with its size in msg_controllen");
	r.msg.kind = 0;
	rc = homa_pl_check_receive(s, r.args);
	if (!rc)
		rc = give_back(s, r.args);
	if (!rc) {
		begin(s, &r, flags);
		rc = r.args->id ? private_one(s, &r, r.args->id) : shared(s, &r);
	}
	if (!rc || (rc == -ENOMEM && r.msg.kind))
		return end(s, &r, hdr, rc);
	/* No RPC failed, so none is named. */
	r.args->id = 0;
	r.args->completion_cookie = 0;
	return rc;
}
