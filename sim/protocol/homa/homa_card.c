// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A network card that does not say when it has room, as most do not. The
 * engine paces by its clock then: it gives the card packets ahead of time, so
 * that the link never idles, and these wait in the card's one queue whatever
 * their priority. A short message that the engine does not pace waits behind
 * them. Without a card (the usual) the port takes a packet from the engine at
 * the moment at which it can send it, which no host's software can do. The
 * queue has no limit: the pacer and the grants bound it.
 */
#include "homa_host.h"

void sim_homa_card_init(struct sim_homa_card *card)
{
	*card = (struct sim_homa_card){ 0 };
	card->tail = &card->head;
}

void sim_homa_card_put(struct sim_homa_card *card, struct sim_pkt *pkt)
{
	pkt->next = NULL;
	*card->tail = pkt;
	card->tail = &pkt->next;
}

struct sim_pkt *sim_homa_card_get(struct sim_homa_card *card)
{
	struct sim_pkt *pkt = card->head;

	if (!pkt)
		return NULL;
	card->head = pkt->next;
	if (!card->head)
		card->tail = &card->head;
	pkt->next = NULL;
	return pkt;
}
