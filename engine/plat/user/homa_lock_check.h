/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a host or a test may ask of the lock-order checker, which exists only
 * when HOMA_MT and HOMA_LOCK_CHECK are defined. The engine itself needs none of this.
 */
#ifndef HOMA_LOCK_CHECK_H
#define HOMA_LOCK_CHECK_H

#include "homa_plat.h"

#if defined(HOMA_MT) && defined(HOMA_LOCK_CHECK)

/**
 * homa_plat_lock_violation() - called when the order is violated
 * @what: kind of violation.
 * @held: name of the class held; "-" if none.
 * @taken: name of the class that is being taken or released.
 *
 * A weak symbol: the default prints one line and aborts; a test that provokes
 * violations defines its own.
 */
void homa_plat_lock_violation(const char *what, const char *held,
			      const char *taken);

/** homa_plat_lock_expected() - report if @lock may not be taken now */
void homa_plat_lock_expected(const struct homa_lock *lock);

/** homa_plat_lock_name() - of an enum homa_lock_class */
const char *homa_plat_lock_name(u32 lock_class);

/**
 * homa_plat_locks_held() - how many locks the calling thread holds
 *
 * A host asserts that it is 0 when an engine call returns.
 */
int homa_plat_locks_held(void);

#endif
#endif
