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
 * homad_guard_add() - note that a fault in this memory concerns @owner Returns a ticket for
 * homad_guard_remove(), 0 if the table is full (then a fault there is deadly as without
 * us).
 */
u32 homad_guard_add(const void *base, size_t bytes, void *owner);
void homad_guard_remove(u32 ticket);
/** homad_guard_next() - return an owner whose memory has faulted since, or NULL. */
void *homad_guard_next(void);

#endif
