// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Parts of homad that do not exist yet; goes away with the last of them. */
#include "slowpath.h"

#define WEAK(name)                                                         \
	__attribute__((weak)) int name##_start(struct homad *d, char *err, \
					       size_t errlen)              \
	{                                                                  \
		(void)d;                                                   \
		(void)err;                                                 \
		(void)errlen;                                              \
		return 0;                                                  \
	}                                                                  \
	__attribute__((weak)) void name##_stop(struct homad *d)            \
	{                                                                  \
		(void)d;                                                   \
	}
WEAK(homad_monitor)
WEAK(homad_metrics)
WEAK(homad_scaling)
