/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the two files of the fake homad share. */
#ifndef FAKE_IMPL_H
#define FAKE_IMPL_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "fake_streams.h"

/* Whatever goes wrong in the fake is the test's mistake and ends it. */
#define must(cond)                                                           \
	do {                                                                 \
		if (!(cond)) {                                               \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__,  \
				__LINE__, #cond, errno);                     \
			abort();                                             \
		}                                                            \
	} while (0)

#endif
