// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The open RPCs of a handle. homad knows those that it works at; one that is over
 * is still open to the application until it has taken it, and one that was aborted
 * is not, whatever homad was told of that yet. So homad's records are put right by
 * our own tables.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "client.h"
#include "fd.h"
#include "svc_slot.h"
#include "svc_wait.h"

/* Ask homad for its records of RPCs. NULL with an error in @rc. */
static struct homa_ctl_rpc *ask_rpcs(struct homa_svc *c, u32 *total, int *rc)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_RPCS };
	struct homa_ctl_answer answer = { 0 };
	struct homa_ctl_rpc *rpcs;

	*rc = homa_svc_question(c, &request, &answer, NULL);
	if (*rc)
		return NULL;
	rpcs = calloc(answer.total + 1, sizeof(*rpcs));
	*rc = homa_svc_records(c, rpcs, sizeof(*rpcs), answer.total);
	if (!rpcs && !*rc)
		*rc = -ENOMEM;
	*total = answer.total;
	return rpcs;
}

/* The ids of requests that nobody has taken yet; the caller frees them. */
static u64 *waiting_requests(struct homa_svc *c, u32 *num)
{
	struct homa_list *first = &c->ready[HOMA_SVC_REQUESTS], *node;
	u64 *ids = calloc(c->ready_count + 1, sizeof(*ids));

	*num = 0;
	for (node = first->next; ids && node != first; node = node->next)
		ids[(*num)++] =
			homa_container_of(node, struct homa_svc_item, list)->cqe.id;
	return ids;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Is an RPC that is open at homad open to the application, too? Then its record gets the id that
 * the application knows. */
static bool is_open(struct homa_svc *c, struct homa_ctl_rpc *rpc)
{
	const struct homa_svc_slot *slot;

	if (!rpc->client)
		return true;
	slot = homa_svc_slot(c, rpc->id);
	if (!slot || slot->gone || slot->state != HOMA_SVC_OPEN)
		return false;
	rpc->id = slot->id;
	return true;
}

/* Write the record of a request that is over and whose outcome was not taken yet. */
static void show_done(struct homa_svc *c, u32 index, struct homa_ctl_rpc *rpc)
{
	const struct homa_svc_slot *slot = &c->slots[index];
	const struct homa_cqe *cqe = &c->slot_items[index].cqe;

	*rpc = (struct homa_ctl_rpc){
		.id = slot->id,
		.cookie = slot->cookie,
		.encap = slot->peer.encap,
		.port = slot->port,
		.client = 1,
		.tx_length = slot->length,
		.tx_sent = slot->length,
		.tx_granted = slot->length,
		.rx_length = cqe->length,
		.rx_granted = cqe->length,
		.ready = 1,
	};
	memcpy(rpc->ip, slot->peer.ip, sizeof(rpc->ip));
}

static u32 count_done(struct homa_svc *c)
{
	u32 i, n = 0, top = __atomic_load_n(&c->fresh, __ATOMIC_RELAXED);

	for (i = 0; i < top; i++)
		n += c->slots[i].state == HOMA_SVC_DONE;
	return n;
}

/* Correct homad's @total records and add ours, for which there is room. The caller has the
 * lock. */
static u32 put_right(struct homa_svc *c, struct homa_ctl_rpc *rpcs, u32 total)
{
	u32 i, n = 0, num, top = __atomic_load_n(&c->fresh, __ATOMIC_RELAXED);
	u64 *ids = waiting_requests(c, &num);

	if (ids)
		qsort(ids, num, sizeof(*ids), compare);
	for (i = 0; i < total; i++) {
		if (!is_open(c, &rpcs[i]))
			continue;
		if (ids && !rpcs[i].client &&
		    bsearch(&rpcs[i].id, ids, num, sizeof(*ids), compare))
			rpcs[i].ready = 1;
		rpcs[n++] = rpcs[i];
	}
	for (i = 0; i < top; i++)
		if (c->slots[i].state == HOMA_SVC_DONE)
			show_done(c, i, &rpcs[n++]);
	free(ids);
	return n;
}

int homa_svc_rpcs(void *host,
		  void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		  void *arg)
{
	struct homa_svc *c = host;
	struct homa_ctl_rpc *rpcs, *larger;
	u32 i, total = 0;
	int rc;

	pthread_mutex_lock(&c->ctl);
	rpcs = ask_rpcs(c, &total, &rc);
	if (!rc) {
		homa_gate_lock(&c->lock);
		if (homa_svc_state(c) == HOMA_SVC_UP)
			homa_svc_drain(c, NULL);
		homa_svc_fd_touch(c);
		/* None is over meanwhile that is not counted here. */
		larger = reallocarray(rpcs, total + count_done(c) + 1,
				      sizeof(*rpcs));
		rpcs = larger ? larger : rpcs;
		rc = larger ? 0 : -ENOMEM;
		total = rc ? 0 : put_right(c, rpcs, total);
		homa_gate_unlock(&c->lock);
	}
	pthread_mutex_unlock(&c->ctl);
	for (i = 0; i < total && !rc; i++)
		visit(arg, &rpcs[i]);
	free(rpcs);
	return rc ? rc : (int)total;
}
