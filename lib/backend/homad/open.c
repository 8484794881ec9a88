// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Opening and closing a handle of the homad backend.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "client.h"
#include "fd.h"
#include "homa_clock.h"
#include "svc_att.h"
#include "svc_memory.h"
#include "svc_slot.h"
#include "transfer.h"

#define SPIN_DEFAULT_US 50 /* as in options.c */
#define SPIN_MIN_US 5

/* The default spinning time may become shorter by itself; a program's own does not. */
static void set_spin(struct homa_svc *c, int32_t spin_us)
{
	u64 max = (u64)(spin_us < 0 ? SPIN_DEFAULT_US : spin_us) * 1000;
	u64 min = spin_us == SPIN_DEFAULT_US ? SPIN_MIN_US * 1000 : max;

	c->never_sleep = spin_us < 0;
	homa_spin_init(&c->spin, min, max, homa_clock_ns());
}

static struct homa_svc *new_handle(const struct homa_backend_options *options)
{
	struct homa_svc *c = aligned_alloc(64, sizeof(*c));
	int i;

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->nudge_fd = c->ep_fd = c->level_fd = c->ready_fd = c->timer_fd = -1;
	homa_svc_may_send_init(&c->may_send);
	set_spin(c, options->spin_us);
	c->rcvbuf = options->own_rcvbuf || options->region ? options->rcvbuf : 0;
	c->region = options->region;
	c->shared_port = options->flags & HOMA_OPEN_SHARED_PORT;
	c->handover = options->flags & HOMA_OPEN_HANDOVER;
	homa_list_init(&c->all);
	homa_list_init(&c->waiters);
	homa_list_init(&c->items);
	homa_list_init(&c->old);
	for (i = 0; i < HOMA_SVC_QUEUES; i++)
		homa_list_init(&c->ready[i]);
	pthread_mutex_init(&c->ctl, NULL);
	return c;
}

/* Free the handle. Messages that the application holds are lost, as in every host. */
void homa_svc_free(struct homa_svc *c)
{
	struct homa_list *node;
	void *chunk, *next;

	homa_svc_fd_close(c);
	homa_svc_may_send_close(&c->may_send, c->att);
	while ((node = homa_list_pop(&c->old)))
		homa_svc_att_put(
			homa_container_of(node, struct homa_svc_att, old));
	if (c->coming.att)
		homa_svc_att_put(c->coming.att);
	if (c->att)
		homa_svc_att_put(c->att);
	/* The memory that the application lent becomes plain memory again. */
	if (c->region && c->att &&
	    mmap(c->region, c->rcvbuf, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		 0) == MAP_FAILED)
		madvise(c->region, c->rcvbuf, MADV_DONTNEED);
	for (chunk = c->chunks; chunk; chunk = next) {
		memcpy(&next, chunk, sizeof(next));
		free(chunk);
	}
	homa_svc_slots_free(c);
	if (c->nudge_fd >= 0)
		close(c->nudge_fd);
	pthread_mutex_destroy(&c->ctl);
	free(c);
}

static int set_path(struct homa_svc *c, char *err, size_t errlen)
{
	const char *path = getenv("HOMA_SERVICE_SOCKET");

	if (!path || !*path)
		path = HOMA_SHM_SOCKET;
	if (strlen(path) >= sizeof(c->path)) {
		snprintf(err, errlen,
			 "HOMA_SERVICE_SOCKET is longer than %zu bytes; a UNIX socket's path cannot be",
			 sizeof(c->path) - 1);
		return -ENAMETOOLONG;
	}
	snprintf(c->path, sizeof(c->path), "%s", path);
	return 0;
}

int homa_svc_new(struct homa_svc **out,
		 const struct homa_backend_options *options, char *err,
		 size_t errlen)
{
	struct homa_svc *c = new_handle(options);
	int rc = -ENOMEM;

	err[0] = '\0';
	if (!c)
		return rc;
	rc = set_path(c, err, errlen);
	if (!rc)
		rc = homa_svc_slots_init(c);
	if (!rc) {
		c->nudge_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		rc = c->nudge_fd < 0 ? -errno : 0;
	}
	if (rc)
		homa_svc_free(c);
	else
		*out = c;
	return rc;
}

/* Can this homad do what the flags ask for? */
static int check_features(const struct homa_svc *c, u32 features, char *err,
			  size_t errlen)
{
	const char *lacks = c->shared_port && !(features & HOMA_SHM_CAN_SHARE) ?
				    "HOMA_OPEN_SHARED_PORT" :
			    c->handover && !(features & HOMA_SHM_CAN_HANDOVER) ?
				    "HOMA_OPEN_HANDOVER" :
				    NULL;

	if (!lacks)
		return 0;
	snprintf(err, errlen,
		 "this homad is older than %s; update it and start it again",
		 lacks);
	return -EOPNOTSUPP;
}

int homa_svc_open(void **out, const struct homa_backend_options *options,
		  char *err, size_t errlen)
{
	struct homa_svc_att *att = NULL;
	struct homa_svc *c = NULL;
	int rc;

	rc = homa_svc_new(&c, options, err, errlen);
	if (!rc)
		rc = homa_svc_attach(c, &att, err, errlen);
	if (!rc)
		rc = check_features(c, att->queues->features, err, errlen);
	if (!rc) {
		homa_svc_adopt(c, att);
		homa_svc_list_handle(c);
		*out = c;
		return 0;
	}
	if (att)
		homa_svc_att_put(att);
	if (!err[0])
		snprintf(err, errlen, "cannot attach to homad: %s",
			 strerror(-rc));
	if (c)
		homa_svc_free(c);
	return rc;
}

void homa_svc_close(void *host)
{
	struct homa_svc *c = host;

	homa_svc_unlist_handle(c);
	homa_gate_lock(&c->lock);
	__atomic_store_n(&c->closing, 1, __ATOMIC_SEQ_CST);
	homa_svc_end_waits(c);
	homa_gate_unlock(&c->lock);
	/* The end of the connection is the end of the attachment. */
	homa_svc_free(c);
}

const struct homa_backend_ops *homa_svc_get(void)
{
	static const struct homa_backend_ops ops = {
		.abi = HOMA_BACKEND_ABI,
		.open = homa_svc_open,
		.close = homa_svc_close,
		.bind = homa_svc_bind,
		.getsockname = homa_svc_getsockname,
		.udp_port = homa_svc_udp_port,
		.request = homa_svc_request,
		.reply = homa_svc_reply,
		.receive = homa_svc_receive,
		.receive_batch = homa_svc_receive_batch,
		.release = homa_svc_release,
		.abort = homa_svc_abort,
		.fd = homa_svc_fd,
		.poll = homa_svc_poll,
		.metrics = homa_svc_metrics,
		.fd_edges = homa_svc_fd_edges,
		.set_region = homa_svc_set_region,
		.listen = homa_svc_listen,
		.release_pages = homa_svc_release_pages,
		.rpcs = homa_svc_rpcs,
		.shutdown = homa_svc_shutdown,
		.reject = homa_svc_reject,
		.alive = homa_svc_alive,
		.wait_send = homa_svc_wait_send,
		.send_fd = homa_svc_send_fd,
		.alloc = homa_svc_alloc,
		.unalloc = homa_svc_unalloc,
		.sends_from = homa_svc_sends_from,
	};

	return &ops;
}
