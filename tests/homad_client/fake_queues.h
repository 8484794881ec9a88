/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The queues memory of the fake homad. */
#ifndef FAKE_QUEUES_H
#define FAKE_QUEUES_H

#include "fake.h"

/** fake_queues() - make it as @f says; its descriptor. */
int fake_queues(struct fake *f);

#endif
