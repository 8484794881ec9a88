// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What libhoma-preload needs besides libhoma.h: a receive pool over memory of the
 * application's, the list of RPCs, shutdown.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "client.h"
#include "fd.h"
#include "svc_att.h"

/* Exchange the pool of an attachment that has received nothing. */
static void exchange(struct homa_svc *c, struct homa_svc_att *with)
{
	struct homa_svc_att *att = c->att, old;

	homa_gate_lock(&c->lock);
	homa_gate_lock(&c->release_lock);
	old = *att;
	att->pool = with->pool;
	att->pool_bytes = with->pool_bytes;
	att->lent = with->lent;
	att->out = with->out;
	c->release_batch = (u32)homa_min_u64(8, att->pool_bytes / 65536 / 64);
	homa_gate_unlock(&c->release_lock);
	homa_gate_unlock(&c->lock);
	if (!old.lent)
		munmap(old.pool, old.pool_bytes);
	munmap(old.out, old.pool_bytes / HOMA_SVC_GRANULE);
}

/* homad has another pool than we have, and what it puts there could not be read. The handle
 * attaches again, with the pool that it had. */
static void give_up(struct homa_svc *c)
{
	homa_gate_lock(&c->lock);
	homa_svc_lost(c, HOMA_SVC_LOST);
	homa_gate_unlock(&c->lock);
}

int homa_svc_set_region(void *host, void *region, size_t bytes)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_POOL, .bytes = bytes };
	struct homa_ctl_answer answer = { 0 };
	struct homa_svc_att with = { 0 };
	struct homa_svc *c = host;
	int fd = -1, rc = -EBUSY;

	pthread_mutex_lock(&c->ctl);
	if (!c->rx_bytes && !c->att->pieces_taken)
		rc = homa_svc_question(c, &request, &answer, &fd);
	if (!rc) {
		/* From here on homad writes to the new pool, so there is no way back. */
		if (fd < 0 || answer.pool_bytes != bytes)
			rc = fd < 0 ? -EMFILE : -EPROTO;
		else
			rc = homa_svc_map_pool(&with, fd, bytes, region);
		if (rc) {
			give_up(c);
		} else {
			exchange(c, &with);
			c->region = region;
			c->rcvbuf = bytes;
		}
	}
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&c->ctl);
	return rc;
}

int homa_svc_listen(void *host, uint16_t port, unsigned int flags)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_LISTEN,
					    .port = port,
					    .bytes = flags };
	struct homa_ctl_answer answer;
	struct homa_svc *c = host;
	int rc;

	pthread_mutex_lock(&c->ctl);
	rc = homa_svc_question(c, &request, &answer, NULL);
	if (!rc) {
		c->bound = port ? port : c->bound;
		c->listen = flags;
		c->att->answer.port = answer.port;
	}
	pthread_mutex_unlock(&c->ctl);
	return rc;
}

int homa_svc_shutdown(void *host)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_SHUTDOWN };
	struct homa_ctl_answer answer;
	struct homa_svc *c = host;

	pthread_mutex_lock(&c->ctl);
	/* homad's answer does not matter: the handle is shut without homad, too. */
	homa_svc_question(c, &request, &answer, NULL);
	homa_gate_lock(&c->lock);
	if (homa_svc_state(c) == HOMA_SVC_UP)
		homa_svc_lost(c, HOMA_SVC_SHUT);
	else
		__atomic_store_n(&c->state, HOMA_SVC_SHUT, __ATOMIC_RELEASE);
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	pthread_mutex_unlock(&c->ctl);
	return 0;
}
