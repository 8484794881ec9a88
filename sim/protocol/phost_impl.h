/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * pHost's state, shared by its sender (phost.c) and its receiver
 * (phost_receiver.c). A packet may be sent only with a token: the first few of
 * a message come with their own, all others need one from the receiver, which
 * gives out one per packet time of its link.
 */
#ifndef SIM_PHOST_IMPL_H
#define SIM_PHOST_IMPL_H

#include "homa_heap.h"
#include "packets.h"

#define PHOST_MAX_BACKOFF 6u /* doublings of a time-out */

enum phost_type { PHOST_DATA = 1, PHOST_RTS, PHOST_TOKEN, PHOST_ACK };

/** struct phost_token - the right to send packet @seq until @expires */
struct phost_token {
	u64 expires;
	u32 seq;
};

/**
 * struct phost_tx - a message at its sender
 * @turn: in the host's heap while it may have a token; its key is @left.
 * @left: packets that the receiver lacks, as the last token said.
 * @owed: packets that may be sent at any time: those with free tokens; a ring
 *	of phost->free, @num_owed from @first_owed.
 * @token: a ring of phost->window, @num from @first, in order of expiry.
 * @heard_at: last sign of the receiver. @backoff: doublings of the wait.
 */
struct phost_tx {
	struct sim_side side;
	struct homa_heap_node turn;
	struct sim_event timer;
	u32 left;
	u32 *owed, first_owed, num_owed;
	u64 heard_at;
	u32 backoff;
	u32 first, num;
	struct phost_token token[];
};

/**
 * struct phost_rx - a message at its receiver
 * @turn: in the host's heap while it may be given a token; its key is what is
 *	missing, in packets.
 * @next: first packet that never had a token.
 * @flight: packets with tokens that have not arrived, also those with free
 *	ones; lost: to be given a new one.
 * @active_at: last token to it or arrival from it. @silences: since an arrival.
 */
struct phost_rx {
	struct sim_side side;
	struct homa_heap_node turn;
	struct sim_event timer;
	u64 active_at;
	u32 next, silences;
	struct sim_flight flight;
	struct sim_slot slot[];
};

/**
 * struct phost_host - both sides of a host
 * @senders: messages that may have tokens. @wanting: messages to give tokens to.
 * @pacer: gives the next token, not before @next_token.
 */
struct phost_host {
	struct homa_heap senders, wanting;
	struct sim_control control;
	struct sim_event pacer;
	struct sim_host *host;
	u64 next_token;
};

struct phost_counts {
	u64 rts_again, tokens, tokens_again, expired, downgrades, duplicates;
};

/** struct phost - @packet_ps: time of a full packet on a host's link */
struct phost {
	struct phost_host *hosts;
	struct sim_sides senders, receivers;
	u32 segment, free, window;
	bool bare_sizes;
	u64 packet_ps, expiry_ps, resend_ps, downgrade_ps, rts_ps;
	struct phost_counts counts;
};

static inline struct phost *phost_of(const struct sim *sim)
{
	return sim->proto;
}

/* ---- phost_receiver.c ---- */

void phost_receiver_init(struct phost_host *ph, struct sim_host *host);
void phost_rts_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt);
void phost_data_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt);

#endif
