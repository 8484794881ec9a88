/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which of 32,768 ports are taken: a bit for each and a bit for each full word of
 * them, so that the next free one is found in a dozen steps even if there is none.
 *
 * Guarded by: the owner, whose lock is held for all calls.
 */
#ifndef HOMA_PORTS_H
#define HOMA_PORTS_H

#include "homa_plat.h"

#define HOMA_PORTS 0x8000u
#define HOMA_PORT_WORDS (HOMA_PORTS / 64)

/**
 * struct homa_ports - which ports are in use; the owner's lock protects it
 * @taken: a bit for each port, set while the port is in use.
 * @full: a bit for each word of @taken, set while all ports of that word are in use.
 */
struct homa_ports {
	u64 taken[HOMA_PORT_WORDS];
	u64 full[HOMA_PORT_WORDS / 64];
};

/** homa_ports_take() - note that @port, below HOMA_PORTS, is in use */
static inline void homa_ports_take(struct homa_ports *ports, u32 port)
{
	u64 *word = &ports->taken[port / 64];

	*word |= 1ull << port % 64;
	if (!~*word)
		ports->full[port / 4096] |= 1ull << port / 64 % 64;
}

/** homa_ports_free() - note that @port is not in use any more */
static inline void homa_ports_free(struct homa_ports *ports, u32 port)
{
	ports->taken[port / 64] &= ~(1ull << port % 64);
	ports->full[port / 4096] &= ~(1ull << port / 64 % 64);
}

/** homa_ports_next() - return the first free port from @from, below HOMA_PORTS, on, going
 *  round; HOMA_PORTS: there is none. */
static inline u32 homa_ports_next(const struct homa_ports *ports, u32 from)
{
	u64 free = ~ports->taken[from / 64] & ~0ull << from % 64;
	u32 word = (from / 64 + 1) % HOMA_PORT_WORDS;
	u32 group = word / 64, i;

	if (free)
		return from / 64 * 64 + (u32)homa_ctz64(free);
	free = ~ports->full[group] & ~0ull << word % 64;
	for (i = 0; !free && i < HOMA_PORT_WORDS / 64; i++) {
		group = (group + 1) % (HOMA_PORT_WORDS / 64);
		free = ~ports->full[group];
	}
	if (!free)
		return HOMA_PORTS;
	word = group * 64 + (u32)homa_ctz64(free);
	return word * 64 + (u32)homa_ctz64(~ports->taken[word]);
}

#endif
