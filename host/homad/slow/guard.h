/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * SIGBUS insurance. The memory of an attachment is sealed against shrinking, so
 * that reading it cannot fault; but an application may punch holes into it, and
 * when the machine has no page left to fill one, our access gets SIGBUS. That
 * must cost the application its attachment and nobody else anything.
 */
#ifndef HOMAD_GUARD_H
#define HOMAD_GUARD_H

#include "homa_plat.h"

/** homad_guard_start() - catch SIGBUS. @fd: eventfd to signal, or -1. */
int homad_guard_start(int fd);
/**
 * homad_guard_add() - note that a fault in this memory concerns @owner. Returns the range's
 * number for homad_guard_remove(), from 1 on; 0 if the table is full (then a fault there ends
 * homad, as it would without this).
 */
u32 homad_guard_add(const void *base, size_t bytes, void *owner);
/** homad_guard_remove() - forget the range with this number; 0 is none. */
void homad_guard_remove(u32 number);
/** homad_guard_next() - return an owner whose memory has faulted since, or NULL. */
void *homad_guard_next(void);

#endif
