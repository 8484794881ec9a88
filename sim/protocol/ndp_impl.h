/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * NDP's state, shared by its sender (ndp.c) and its receiver (ndp_receiver.c).
 *
 * It is a game of tokens. A message starts with as many as its first window
 * has packets; each allows one packet to be sent. A packet that arrives, whole
 * or trimmed, turns into a PULL, and the PULL into the right to send one more.
 * So there are never more packets of a message in the network than its window,
 * and the receiver, which paces its PULLs, sets the rate of all of them.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_NDP_IMPL_H
#define SIM_NDP_IMPL_H

#include "homa_heap.h"
#include "homa_list.h"
#include "sim_transport.h"

/* IP and NDP headers of data and control packets, in bytes */
#define NDP_HEADERS 40u

enum ndp_type { NDP_DATA = 1, NDP_ACK, NDP_NACK, NDP_PULL };
enum ndp_option { NDP_OPT_WINDOW, NDP_OPT_RTO_US, NDP_OPT_SRPT };

/**
 * struct ndp_slot - a packet that was sent and is not acknowledged
 * @seq: number of the packet.
 * @waiting: the packet is to be sent again; otherwise it is in the network.
 * @at: time at which it was sent last, ps.
 */
struct ndp_slot {
	u32 seq;
	bool waiting;
	u64 at;
};

/**
 * struct ndp_tx - a message at its sender
 * @ready: links the message into the host's round while it has tokens and packets to send.
 * @all: links the message into ndp->senders, or free memory into ndp->spare_tx.
 * @timer: event of the time-out.
 * @msg: the message, as the traffic knows it.
 * @packets: number of packets of the message.
 * @next: number of the first packet that was never sent.
 * @acked: number of acknowledged packets.
 * @tokens: number of packets that may be sent now.
 * @pulled: highest number of a PULL so far.
 * @waiting: number of entries of @slots that are to be sent again.
 * @slots: packets that were sent and are not acknowledged; at most a window of them, unless
 *	time-outs were premature.
 * @num_slots: number of entries of @slots that are used.
 * @cap_slots: number of entries of @slots for which there is memory.
 * @heard_at: time at which the receiver was last heard, ps.
 * @backoff: number of doublings of the time-out.
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
 * @turn: links the message into the host's heap of messages with PULLs to send; its key is
 *	the number of its turn, or with SRPT the number of packets that are missing.
 * @all: links the message into ndp->receivers, or free memory into ndp->spare_rx.
 * @msg: the message, as the traffic knows it.
 * @packets: number of packets of the message.
 * @received: number of packets that have arrived.
 * @needed: number of PULLs that the sender needs: one for each packet beyond the first
 *	window, and for each trimmed one.
 * @asked: number of PULLs that were sent or are queued.
 * @queued: number of PULLs that are queued.
 * @held: the message counts in the host's @held, because not all PULLs are sent.
 * @have: a bit for each packet, 1 if it has arrived.
 * @cap_words: number of words of @have for which there is memory.
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
 * @ready: messages that may send, in turn.
 * @control: ACKs, NACKs and PULLs to send, oldest first.
 * @control_tail: where the pointer to the next of these will be written.
 * @pulls: messages with PULLs to send.
 * @pacer: event that sends the next PULL.
 * @host: the simulated host.
 * @next_pull: earliest time of the next PULL, ps.
 * @turns: number of turns given so far.
 * @held: number of incoming messages for which not all PULLs are sent.
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

/**
 * struct ndp_counts - numbers of packets and events of all hosts
 * @trimmed: packets that arrived without payload, because a switch had trimmed them.
 * @retransmits: packets that were sent again.
 * @timeouts: packets that counted as lost because nothing was heard of them.
 * @probes: packets that were sent because the receiver was silent.
 * @pulls: PULLs that were sent.
 * @duplicates: packets that arrived a second time.
 */
struct ndp_counts {
	u64 trimmed, retransmits, timeouts, probes, pulls, duplicates;
};

/**
 * struct ndp - sim->proto
 * @hosts: both sides of each host, by its number.
 * @senders: messages that are being sent, by ndp_tx.all.
 * @receivers: messages that are being received, by ndp_rx.all.
 * @spare_tx: free memory for struct ndp_tx.
 * @spare_rx: free memory for struct ndp_rx.
 * @window: number of packets that a message sends without a PULL.
 * @segment: message bytes in a full packet.
 * @rto_ps: time after which a packet that was not heard of counts as lost, ps.
 * @pull_ps: time between two PULLs of a host, that of a full packet on its link, ps.
 * @srpt: a host pulls the message with the fewest missing packets first, else all in turn.
 * @counts: what is counted of the run.
 */
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
/** ndp_data_arrived() - take in a DATA packet, or what a switch left of one */
void ndp_data_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt);
/** ndp_rx_free() - give a message's memory back to the system */
void ndp_rx_free(struct ndp_rx *rx);

#endif
