/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#ifndef HOMAD_PORT_CHOICE_H
#define HOMAD_PORT_CHOICE_H

#include "homa_plat.h"

/* The most ports that are drawn before the kernel has to find one. */
#define HOMAD_PORT_DRAWS 64u

/**
 * struct homad_port_choice - the ports that a program of this network namespace gets unasked
 * @first: the first one; 0: not known.
 * @last: the last one.
 * @reserved: a bit for each port, 1 if only who asks for it gets it.
 * @random: random numbers for the next ports.
 * @num_random: how many of these are left.
 *
 * Written by: the functions below, on the thread that takes ports.
 */
struct homad_port_choice {
	u16 first, last;
	u64 reserved[65536 / 64];
	u16 random[HOMAD_PORT_DRAWS];
	u32 num_random;
};

/** homad_port_choice_read() - asks the kernel for the range and the reserved ports. */
void homad_port_choice_read(struct homad_port_choice *choice);

/** homad_port_choice_draw() - returns a random port that is not reserved, which another program
 *  may have; 0: none was drawn, so the kernel has to choose. */
u16 homad_port_choice_draw(struct homad_port_choice *choice);

#endif
