// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What models of protocols that number packets have in common and need once
 * per message or per run; what they need per packet is in packets.h. Messages
 * come and go by the million, so their memory is kept for the next ones.
 */
#include <stdlib.h>

#include "packets.h"

bool sim_arrived_clear(struct sim_arrived *arrived, u32 packets)
{
	u32 words = (packets + 63) / 64;

	if (arrived->words < words) {
		free(arrived->word);
		arrived->word = malloc(words * sizeof(*arrived->word));
		arrived->words = arrived->word ? words : 0;
		if (!arrived->word)
			return false;
	}
	memset(arrived->word, 0, words * sizeof(*arrived->word));
	return true;
}

void sim_sides_init(struct sim_sides *sides, size_t clear, size_t extra)
{
	homa_list_init(&sides->used);
	homa_list_init(&sides->spare);
	sides->clear = clear;
	sides->size = clear + extra;
}

static void sides_free_list(struct homa_list *list)
{
	struct homa_list *node;

	while ((node = homa_list_pop(list)) != NULL) {
		struct sim_side *side = homa_list_entry(node, struct sim_side, all);

		free(side->arrived.word);
		free(side);
	}
}

void sim_sides_free(struct sim_sides *sides)
{
	sides_free_list(&sides->used);
	sides_free_list(&sides->spare);
}

void *sim_side_new(struct sim_sides *sides, struct sim_msg *msg, u32 segment)
{
	struct homa_list *spare = homa_list_pop(&sides->spare);
	struct sim_arrived arrived = { 0 };
	struct sim_side *side;

	if (spare) {
		side = homa_list_entry(spare, struct sim_side, all);
		arrived = side->arrived;
	} else {
		side = malloc(sides->size);
		if (!side)
			return NULL;
	}
	memset(side, 0, sides->clear);
	side->arrived = arrived;
	side->packets = sim_packets(msg->length, segment);
	side->msg = msg;
	sim_msg_get(msg);
	homa_list_init(&side->all);
	homa_list_add_tail(&sides->used, &side->all);
	return side;
}

void sim_side_done(struct sim *sim, struct sim_sides *sides, struct sim_side *side)
{
	struct sim_msg *msg = side->msg;

	homa_list_del(&side->all);
	homa_list_add_head(&sides->spare, &side->all);
	side->msg = NULL;
	sim_msg_put(sim, msg);
}

void sim_model_defaults(struct sim_config *cfg, const struct sim_option *options,
			enum sim_queue_kind queue, u64 port_bytes)
{
	u32 i;

	for (i = 0; options[i].name; i++)
		cfg->option[i] = options[i].def;
	cfg->queue = queue;
	cfg->balance = SIM_SPRAY;
	cfg->port_bytes = port_bytes;
	cfg->shared_bytes = 0;
	cfg->ecn_bytes = 0;
}
