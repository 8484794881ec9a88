/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the evil application of fuzz_shm does to its TCP streams, and to listeners and tickets. */
#ifndef FUZZ_SHM_LIES_H
#define FUZZ_SHM_LIES_H

#include "shm_script.h"
#include "shm_streams.h"

#define EVIL_TCP 91 /* the port at which it listens */
#define GOOD_TCP 90 /* the port of one that echoes */

/** shm_lies_step() - one operation on streams, as the script says: what a correct program does, or
 *  a lie. */
void shm_lies_step(struct script *s, struct shm_streams *st,
		   struct shm_side *side);

#endif
