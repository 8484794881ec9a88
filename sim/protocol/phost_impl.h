/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * pHost's state, shared by its sender (phost.c) and its receiver
 * (phost_receiver.c). A packet may be sent only with a token: the first few of
 * a message come with their own, all others need one from the receiver, which
 * gives out one per packet time of its link.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_PHOST_IMPL_H
#define SIM_PHOST_IMPL_H

#include "homa_heap.h"
#include "packets.h"

#define PHOST_MAX_BACKOFF 6u /* most doublings of a time-out */

enum phost_type { PHOST_DATA = 1, PHOST_RTS, PHOST_TOKEN, PHOST_ACK };

/** struct phost_token - the right to send packet @seq until @expires */
struct phost_token {
	u64 expires;
	u32 seq;
};

/**
 * struct phost_tx - a message at its sender
 * @side: the message at this host.
 * @turn: links the message into the host's heap while it may have a token; its key is
 *	@left.
 * @timer: event of the sender's time-out.
 * @left: number of packets that the receiver lacks, as the last token said.
 * @owed: numbers of the packets that may be sent at any time, at first those with free
 *	tokens; a ring of phost->free entries.
 * @first_owed: index in @owed of the first entry.
 * @num_owed: number of entries of @owed that are used.
 * @heard_at: time at which the receiver was last heard, ps.
 * @backoff: number of doublings of the time-out.
 * @first: index in @token of the first entry.
 * @num: number of entries of @token that are used.
 * @token: tokens in order of expiry; a ring of phost->window entries.
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
 * @side: the message at this host.
 * @turn: links the message into the host's heap while it may be given a token; its key is
 *	the number of missing packets.
 * @timer: event of the receiver's time-out.
 * @active_at: time of the last token for it or of its last packet, ps.
 * @next: number of the first packet that never had a token.
 * @silences: number of time-outs since a packet arrived.
 * @flight: packets that have a token, free or not, and have not arrived; lost ones are
 *	given a new token.
 * @slot: memory of @flight, phost->window entries.
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
 * @senders: messages that may have tokens.
 * @wanting: messages that may be given tokens.
 * @control: control packets to send.
 * @pacer: event that gives the next token.
 * @host: the simulated host.
 * @next_token: earliest time of the next token, ps.
 */
struct phost_host {
	struct homa_heap senders, wanting;
	struct sim_control control;
	struct sim_event pacer;
	struct sim_host *host;
	u64 next_token;
};

/**
 * struct phost_counts - numbers of packets and events of all hosts
 * @rts_again: RTSs that were repeated.
 * @tokens: tokens that were given.
 * @tokens_again: those of them that were for packets that counted as lost.
 * @expired: tokens that were not used in time.
 * @downgrades: number of times that a message got no tokens for a while.
 * @duplicates: packets that arrived a second time.
 */
struct phost_counts {
	u64 rts_again, tokens, tokens_again, expired, downgrades, duplicates;
};

/**
 * struct phost - sim->proto
 * @hosts: both sides of each host, by its number.
 * @senders, @receivers: messages that are being sent, and that are being received.
 * @segment: message bytes in a full packet.
 * @free: number of packets of a message that need no token from the receiver.
 * @window: most packets of a message that may have tokens and not have arrived.
 * @bare_sizes: packets have the sizes of the paper's simulations.
 * @packet_ps: time of a full packet on a host's link, ps.
 * @expiry_ps: time for which a token is valid, ps.
 * @resend_ps: time after which a packet that has a token counts as lost, ps.
 * @downgrade_ps: time for which a message with @window packets under way gets no token, ps.
 * @rts_ps: time of silence after which a sender repeats its RTS, ps.
 * @counts: what is counted of the run.
 */
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
