/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What models of protocols have in common that number the packets of a message
 * (pFabric, pHost): a message at one of its ends, the packets, those that a
 * host has yet to send because of what arrived, those that are under way, and
 * those that have arrived. A message has a window's worth of packets under way,
 * a dozen or so, which is why they are searched one by one.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_PACKETS_H
#define SIM_PACKETS_H

#include <string.h>

#include "homa_list.h"
#include "sim_transport.h"

/* IP and transport headers of data and control packets, in bytes */
#define SIM_MODEL_HEADERS 40u

static inline u32 sim_packets(u32 length, u32 segment)
{
	return length ? (length - 1) / segment + 1 : 1;
}

/** sim_packet_bytes() - message bytes in packet @seq */
static inline u32 sim_packet_bytes(u32 length, u32 seq, u32 segment)
{
	u32 rest = length - seq * segment;

	return rest < segment ? rest : segment;
}

/**
 * sim_model_pkt() - make a packet of @msg from @src to @dst without message bytes; NULL: no
 * memory
 */
static inline struct sim_pkt *sim_model_pkt(struct sim *sim, struct sim_msg *msg, u32 src,
					    u32 dst, u8 type)
{
	struct sim_pkt *pkt = sim_pkt_new(sim);

	if (!pkt)
		return NULL;
	pkt->wire = sim_wire(SIM_MODEL_HEADERS);
	pkt->src = (u16)src;
	pkt->dst = (u16)dst;
	pkt->type = type;
	pkt->flow = (u32)msg->serial;
	pkt->msg = msg;
	pkt->msg_serial = msg->serial;
	return pkt;
}

/** sim_model_data() - put the message bytes of packet @seq into it */
static inline void sim_model_data(struct sim_pkt *pkt, u32 seq, u32 segment)
{
	pkt->x[0] = seq;
	pkt->offset = seq * segment;
	pkt->payload = sim_packet_bytes(pkt->msg->length, seq, segment);
	pkt->wire = sim_wire(SIM_MODEL_HEADERS + pkt->payload);
}

/* ---- control packets that a host has to send, in order ---- */

/**
 * struct sim_control - control packets that a host has to send
 * @head: the first of them; NULL: there is none.
 * @tail: where the pointer to the next one will be written.
 */
struct sim_control {
	struct sim_pkt *head, **tail;
};

static inline void sim_control_init(struct sim_control *queue)
{
	queue->head = NULL;
	queue->tail = &queue->head;
}

static inline void sim_control_put(struct sim_control *queue, struct sim_pkt *pkt)
{
	pkt->flags |= SIM_CONTROL;
	pkt->prio = SIM_PRIORITIES - 1;
	pkt->next = NULL;
	*queue->tail = pkt;
	queue->tail = &pkt->next;
}

static inline struct sim_pkt *sim_control_take(struct sim_control *queue)
{
	struct sim_pkt *pkt = queue->head;

	if (!pkt)
		return NULL;
	queue->head = pkt->next;
	if (!queue->head)
		queue->tail = &queue->head;
	pkt->next = NULL;
	return pkt;
}

/* ---- packets of a message that are under way or were lost ---- */

/**
 * struct sim_slot - a packet that was sent and has not arrived
 * @at: time at which it was sent last, ps.
 * @seq: number of the packet.
 * @lost: the packet counts as lost and is to be sent again.
 */
struct sim_slot {
	u64 at;
	u32 seq;
	bool lost;
};

/**
 * struct sim_flight - the packets of a message that were sent and have not arrived
 * @slot: the packets, in memory of the owner.
 * @count: number of entries of @slot that are used.
 * @lost: number of these that count as lost.
 */
struct sim_flight {
	struct sim_slot *slot;
	u32 count, lost;
};

static inline u32 sim_flight_under_way(const struct sim_flight *flight)
{
	return flight->count - flight->lost;
}

static inline void sim_flight_add(struct sim_flight *flight, u32 seq, u64 at)
{
	struct sim_slot *slot = &flight->slot[flight->count++];

	slot->at = at;
	slot->seq = seq;
	slot->lost = false;
}

/**
 * sim_flight_remove() - remove @seq, which has arrived; returns when it was sent, or
 * SIM_NEVER if it is not in @flight
 */
static inline u64 sim_flight_remove(struct sim_flight *flight, u32 seq)
{
	u64 at;
	u32 i;

	for (i = 0; i < flight->count; i++) {
		if (flight->slot[i].seq != seq)
			continue;
		at = flight->slot[i].at;
		flight->lost -= flight->slot[i].lost;
		flight->slot[i] = flight->slot[--flight->count];
		return at;
	}
	return SIM_NEVER;
}

/** sim_flight_lose() - count all packets as lost that were sent before the time @limit */
static inline void sim_flight_lose(struct sim_flight *flight, u64 limit)
{
	u32 i;

	for (i = 0; i < flight->count; i++) {
		if (flight->slot[i].lost || flight->slot[i].at >= limit)
			continue;
		flight->slot[i].lost = true;
		flight->lost++;
	}
}

/**
 * sim_flight_again() - send again at the time @at the first lost packet, of which there
 * must be one; returns its number
 */
static inline u32 sim_flight_again(struct sim_flight *flight, u64 at)
{
	struct sim_slot *first = NULL;
	u32 i;

	for (i = 0; i < flight->count; i++)
		if (flight->slot[i].lost && (!first || flight->slot[i].seq < first->seq))
			first = &flight->slot[i];
	first->lost = false;
	first->at = at;
	flight->lost--;
	return first->seq;
}

/* ---- packets of a message that have arrived ---- */

/**
 * struct sim_arrived - a bit for each packet of a message, 1 if it has arrived; a later
 * message uses the memory again
 * @word: the bits.
 * @words: number of words for which there is memory.
 */
struct sim_arrived {
	u64 *word;
	u32 words;
};

/** sim_arrived_clear() - note that none of @packets has arrived; false: no memory */
bool sim_arrived_clear(struct sim_arrived *arrived, u32 packets);

static inline bool sim_arrived_has(const struct sim_arrived *arrived, u32 seq)
{
	return arrived->word[seq / 64] >> (seq % 64) & 1;
}

static inline void sim_arrived_add(struct sim_arrived *arrived, u32 seq)
{
	arrived->word[seq / 64] |= 1ull << (seq % 64);
}

/* ---- messages ---- */

/**
 * struct sim_side - a message at its sender or its receiver; a model's own struct begins
 * with it
 * @all: links it into a list of struct sim_sides.
 * @msg: the message, as the traffic knows it.
 * @packets: number of packets of the message.
 * @received: number of packets that have arrived; used by receivers.
 * @arrived: which packets have arrived; used by receivers, after sim_arrived_clear().
 */
struct sim_side {
	struct homa_list all;
	struct sim_msg *msg;
	u32 packets, received;
	struct sim_arrived arrived;
};

/**
 * struct sim_sides - all sides of one kind
 * @used: sides of messages that are not over.
 * @spare: memory for further ones.
 * @clear: number of bytes at the beginning that are zeroed for a new side.
 * @size: number of bytes of each.
 */
struct sim_sides {
	struct homa_list used, spare;
	size_t clear, size;
};

/**
 * sim_sides_init() - prepare for structs of @clear bytes, with @extra bytes behind them
 * that are not zeroed
 */
void sim_sides_init(struct sim_sides *sides, size_t clear, size_t extra);
/** sim_sides_free() - free all sides, at the end of the run */
void sim_sides_free(struct sim_sides *sides);
/** sim_side_new() - make a side of @msg, to which it holds a reference; NULL: no memory */
void *sim_side_new(struct sim_sides *sides, struct sim_msg *msg, u32 segment);
/** sim_side_done() - release @side, to which the caller has no pointer left */
void sim_side_done(struct sim *sim, struct sim_sides *sides, struct sim_side *side);

/**
 * sim_model_defaults() - set the defaults of @options, and a network that sprays packets
 */
void sim_model_defaults(struct sim_config *cfg, const struct sim_option *options,
			enum sim_queue_kind queue, u64 port_bytes);

#endif
