/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The input of fuzz_shm as a script: how its files read it. */
#ifndef FUZZ_SHM_SCRIPT_H
#define FUZZ_SHM_SCRIPT_H

#include "shm_bed.h"

/* struct script - the bytes that were not read yet */
struct script {
	const u8 *at, *end;
};

static inline u32 byte(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static inline u32 word(struct script *s)
{
	u32 low = byte(s);

	return low | byte(s) << 8;
}

/* Mostly small, sometimes at an edge, sometimes anything. */
static inline u32 number(struct script *s)
{
	static const u32 edges[] = {
		0,	    1,	       4096,	     4097,
		65535,	    65536,     SHM_DATA - 1, SHM_DATA,
		1000000,    1000001,   0x7fffffff,   0x80000000,
		0xfffffffe, 0xffffffff
	};
	u32 how = byte(s);

	if (how < 128)
		return how;
	if (how < 200)
		return edges[how % (sizeof(edges) / sizeof(edges[0]))];
	return word(s) | word(s) << 16;
}

#endif
