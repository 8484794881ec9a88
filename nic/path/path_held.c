// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets that wait until the link address of their next hop is known: copies, few for
 * each destination and for each owner, in the order in which they came.
 */
#include <stdlib.h>
#include <string.h>

#include "homa_hash.h"
#include "path.h"

/* The counter of the packet's owner. An owner may have as many packets held as there is room left
 * for others (Choudhury and Hahne 1998), so one who takes all he can leaves half. Owners with the
 * same hash have one counter and one share. */
static u16 *held_by(struct nic_paths *paths, const struct nic_tx *pkt)
{
	return &paths->held_by[homa_hash_mix(pkt->owner ^ paths->key[0]) %
			       NIC_PATH_OWNERS];
}

static void held_free(struct nic_paths *paths, struct nic_held *h)
{
	paths->held--;
	--*held_by(paths, &h->pkt);
	free(h);
}

void nic_held_drop(struct nic_paths *paths, struct nic_path *path)
{
	while (path->held) {
		struct nic_held *h = path->held;

		path->held = h->next;
		held_free(paths, h);
	}
	path->n_held = 0;
}

/* A path that holds packets is in the list of its hop, and in that of all such paths (below). */
void nic_held_leave(struct nic_path *path)
{
	if (!path->wait_at)
		return;
	*path->wait_at = path->wait_next;
	if (path->wait_next)
		path->wait_next->wait_at = path->wait_at;
	path->wait_at = NULL;
}

void nic_held_join(struct nic_path *path)
{
	struct nic_path **head = &path->hop->waiting;

	path->wait_next = *head;
	path->wait_at = head;
	if (*head)
		(*head)->wait_at = &path->wait_next;
	*head = path;
}

static void hold_del(struct nic_path *path)
{
	if (!path->hold_at)
		return;
	*path->hold_at = path->hold_next;
	if (path->hold_next)
		path->hold_next->hold_at = path->hold_at;
	path->hold_at = NULL;
}

static void hold_add(struct nic_paths *paths, struct nic_path *path)
{
	path->hold_next = paths->holding;
	path->hold_at = &paths->holding;
	if (paths->holding)
		paths->holding->hold_at = &path->hold_next;
	paths->holding = path;
}

void nic_held_settle(struct nic_paths *paths, struct nic_path *path, int error)
{
	struct nic_held *list = path->held;

	path->held = NULL;
	path->n_held = 0;
	hold_del(path);
	nic_held_leave(path);
	while (list) {
		struct nic_held *h = list;

		list = h->next;
		paths->done(paths->arg, path, &h->pkt, error);
		held_free(paths, h);
	}
}

bool nic_path_hold(struct nic_paths *paths, struct nic_path *path,
		   const struct nic_tx *pkt)
{
	u16 *mine = held_by(paths, pkt);
	struct nic_held **end = &path->held;
	struct nic_held *h;

	if (path->n_held >= NIC_PATH_HOLD ||
	    *mine >= NIC_PATH_HOLD_ALL - paths->held)
		return false;
	h = malloc(sizeof(*h) + pkt->hdr_len + pkt->payload_len);
	if (!h)
		return false;
	h->next = NULL;
	h->pkt = *pkt;
	h->pkt.hdr = h->bytes;
	h->pkt.payload = h->bytes + pkt->hdr_len;
	if (pkt->src) {
		h->src = *pkt->src;
		h->pkt.src = &h->src;
	}
	memcpy(h->bytes, pkt->hdr, pkt->hdr_len);
	if (pkt->payload_len)
		memcpy(h->bytes + pkt->hdr_len, pkt->payload, pkt->payload_len);
	while (*end)
		end = &(*end)->next;
	*end = h;
	++*mine;
	paths->held++;
	if (!path->n_held++) {
		hold_add(paths, path);
		/* Without a hop, the kernel has not told yet which one it is. */
		if (path->hop)
			nic_held_join(path);
	}
	return true;
}
