// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The turns of homa_turns.h. Rounds in which neither kind could send, since both owe more
 * than a quantum, are not gone through one by one.
 */
#include "homa_turns.h"

void homa_turns_set(struct homa_turns *turns, u32 percent)
{
	turns->quantum[HOMA_TURN_OTHERS] = HOMA_TURNS_BYTES / 100 * percent;
	HOMA_WRITE_ONCE(turns->quantum[HOMA_TURN_OWN],
			HOMA_TURNS_BYTES / 100 * (100 - percent));
}

/* Returns the number of quanta after which @kind may send again. */
static u64 rounds_of(const struct homa_turns *turns, u32 kind)
{
	u32 quantum = turns->quantum[kind];

	return homa_div64((u64)-turns->deficit[kind] + quantum, quantum);
}

/* Lets rounds pass until one kind has paid what it owes, as both kinds owe. */
static void pay(struct homa_turns *turns)
{
	u64 rounds = homa_min_u64(rounds_of(turns, HOMA_TURN_OWN),
				  rounds_of(turns, HOMA_TURN_OTHERS)) -
		     1;

	turns->deficit[HOMA_TURN_OWN] +=
		(s64)(rounds * turns->quantum[HOMA_TURN_OWN]);
	turns->deficit[HOMA_TURN_OTHERS] +=
		(s64)(rounds * turns->quantum[HOMA_TURN_OTHERS]);
}

/* Notes that a kind has nothing to send: it keeps what it owes, but saves up nothing. */
static void absent(struct homa_turns *turns, u32 kind, bool waits)
{
	turns->waits[kind] = waits;
	if (!waits && turns->deficit[kind] > 0)
		turns->deficit[kind] = 0;
}

enum homa_sender homa_turns_next(struct homa_turns *turns, bool own,
				 bool others, bool brief)
{
	absent(turns, HOMA_TURN_OWN, own);
	absent(turns, HOMA_TURN_OTHERS, others);
	if (!own || !others)
		return own    ? HOMA_TURN_OWN :
		       others ? HOMA_TURN_OTHERS :
				HOMA_TURN_IDLE;
	if (brief && turns->deficit[HOMA_TURN_OWN] > -(s64)HOMA_TURNS_BOUND)
		return HOMA_TURN_OWN;
	if (turns->deficit[HOMA_TURN_OWN] <= 0 &&
	    turns->deficit[HOMA_TURN_OTHERS] <= 0)
		pay(turns);
	while (turns->deficit[turns->turn] <= 0) {
		turns->turn ^= 1;
		turns->deficit[turns->turn] += turns->quantum[turns->turn];
	}
	return (enum homa_sender)turns->turn;
}

void homa_turns_spend(struct homa_turns *turns, enum homa_sender kind, u64 bytes)
{
	u32 other = (u32)kind ^ 1;

	if (turns->waits[other]) {
		turns->deficit[kind] -= (s64)bytes;
		return;
	}
	/* As many rounds have passed as this kind has had turns, and the other kind pays
	 * its debt in them. */
	if (turns->deficit[other] < 0) {
		u64 owed = (u64)-turns->deficit[other];
		u64 paid = homa_div64(bytes * turns->quantum[other],
				      turns->quantum[kind]);

		turns->deficit[other] += (s64)homa_min_u64(owed, paid);
	}
}
