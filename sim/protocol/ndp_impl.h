/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * NDP's state, shared by its sender (ndp.c) and its receiver (ndp_receiver.c).
 *
 * It is a game of tokens. A message starts with as many as its first window
 * has packets; each allows one packet to be sent. A packet that arrives, whole
 * or trimmed, turns into a PULL, and the PULL into the right to send one more.
 * So there are never more packets of a message in the network than its window,
 * and the receiver, which paces its PULLs, sets the rate of all of them.
 */
#ifndef SIM_NDP_IMPL_H
#define SIM_NDP_IMPL_H

#include "homa_heap.h"
#include "homa_list.h"
#include "sim_transport.h"

#define NDP_HEADERS 40u /* IP and NDP, of data and of control packets */

enum ndp_type { NDP_DATA = 1, NDP_ACK, NDP_NACK, NDP_PULL };
enum ndp_option { NDP_OPT_WINDOW, NDP_OPT_RTO_US, NDP_OPT_SRPT };

/** struct ndp_slot - a packet that was sent and is not acknowledged */
struct ndp_slot {
	u32 seq;
	bool waiting; /* to be sent again; else in the network */
	u64 at;	      /* when it was sent last */
};

/**
 * struct ndp_tx - a message at its sender
 * @ready: in the host's round while there are tokens and packets for them.
 * @all: in ndp->senders, or in ndp->spare_tx.
 * @packets, @next, @acked: how many, first never sent, acknowledged ones.
 * @tokens: packets that may be sent now.
 * @pulled: highest counter of a PULL.
 * @slots: at most a window of them, unless time-outs were premature.
 * @heard_at: last sign of the receiver. @backoff: doublings of the time-out.
 */
struct ndp_tx {
	struct homa_list ready, all;
	struct sim_event timer;
	struct sim_msg *msg;
	u32 packets, next, acked;
	u32 tokens, pulled;
	u32 waiting;
	struct ndp_slot *slots;
	u32 num_slots, cap_slots;
	u64 heard_at;
	u32 backoff;
};

/**
 * struct ndp_rx - a message at its receiver
 * @turn: in the host's heap of PULLs to send; its key is the turn, or with
 *	SRPT the packets that are missing.
 * @received: packets; @have: which ones.
 * @needed: PULLs that the sender needs: packets beyond the first window and
 *	trimmed ones. @asked: sent and queued, @queued: of which not sent.
 * @held: counts in the host's @held, because not all PULLs are sent.
 */
struct ndp_rx {
	struct homa_heap_node turn;
	struct homa_list all;
	struct sim_msg *msg;
	u32 packets, received;
	u32 needed, asked, queued;
	bool held;
	u64 *have;
	u32 cap_words;
};

/**
 * struct ndp_host - both sides of a host
 * @ready: messages that may send. @control: ACKs, NACKs and PULLs to send.
 * @pulls: messages with PULLs to send. @pacer: when the next one goes.
 * @held: incoming messages of which something is not asked for.
 */
struct ndp_host {
	struct homa_list ready;
	struct sim_pkt *control, **control_tail;
	struct homa_heap pulls;
	struct sim_event pacer;
	struct sim_host *host;
	u64 next_pull;
	u64 turns;
	u32 held;
};

struct ndp_counts {
	u64 trimmed, retransmits, timeouts, probes, pulls, duplicates;
};

struct ndp {
	struct ndp_host *hosts;
	struct homa_list senders, receivers, spare_tx, spare_rx;
	u32 window, segment;
	u64 rto_ps, pull_ps;
	bool srpt;
	struct ndp_counts counts;
};

static inline struct ndp *ndp_of(const struct sim *sim)
{
	return sim->proto;
}

/** ndp_control() - queue an ACK, NACK or PULL of @msg from @host to its sender */
void ndp_control(struct sim *sim, struct sim_host *host, struct sim_msg *msg,
		 enum ndp_type type, u32 number);

/* ---- ndp_receiver.c ---- */

void ndp_receiver_init(struct ndp_host *nh, struct sim_host *host);
/** ndp_data_arrived() - a DATA packet or what a switch left of it */
void ndp_data_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt);
/** ndp_rx_free() - give a message's memory back to the system */
void ndp_rx_free(struct ndp_rx *rx);

#endif
