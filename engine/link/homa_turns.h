/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two kinds of senders on one link: the *own* ones, which are the sendables of the link's
 * scheduler (homa_sched.h), and *others*, which the host asks by itself, such as TCP. They
 * take turns by deficit round robin (Shreedhar and Varghese 1995): in its turn a kind may
 * send its quantum of bytes. What it sends beyond that, because a packet is not cut for
 * it, it owes, and has so much less in its next turn. A kind that waits alone has the link
 * for itself, and what it sends then is charged to nobody.
 *
 * Brief own ones go before others out of turn, until they have taken so many bytes more
 * than is theirs as the bound says. They owe them, so shares hold all the same.
 */
#ifndef HOMA_TURNS_H
#define HOMA_TURNS_H

#include "homa_plat.h"

/* default bytes of a turn of both kinds together */
#define HOMA_TURNS_BYTES 32768u
#define HOMA_TURNS_BOUND 65536u /* most bytes that brief own senders may owe */

enum homa_sender {
	HOMA_TURN_OWN,	  /* a sendable sends next */
	HOMA_TURN_OTHERS, /* another sender sends next */
	HOMA_TURN_WAIT,	  /* nobody sends before the device has sent more */
	HOMA_TURN_IDLE,	  /* nobody has something to send */
};

/**
 * struct homa_turns - whose turn it is
 *
 * Guarded by: the link lock.
 *
 * @deficit: bytes that each kind may still send in its turn; below 0 it owes them.
 * @quantum: bytes of a turn of each kind; 0: the link is not shared. That of own senders is
 *	read without the lock.
 * @waits: which kinds had something to send when they were last asked.
 * @turn: the kind whose turn it is.
 */
struct homa_turns {
	s64 deficit[2];
	u32 quantum[2];
	bool waits[2];
	u8 turn;
};

/** homa_turns_set() - give others @percent of the link, 1 to 99, when both kinds wait */
void homa_turns_set(struct homa_turns *turns, u32 percent);

/**
 * homa_turns_next() - say who sends next: HOMA_TURN_OWN, HOMA_TURN_OTHERS or HOMA_TURN_IDLE
 * @own: sendables have something to send.
 * @others: other senders have something to send.
 * @brief: the first sendable is brief.
 */
enum homa_sender homa_turns_next(struct homa_turns *turns, bool own,
				 bool others, bool brief);

/**
 * homa_turns_spend() - count @bytes that @kind, HOMA_TURN_OWN or HOMA_TURN_OTHERS, was
 * given
 */
void homa_turns_spend(struct homa_turns *turns, enum homa_sender kind, u64 bytes);

#endif
