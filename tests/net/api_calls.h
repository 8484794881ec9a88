/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Checks of api_client that stand in another file, by name. */
#ifndef API_CALLS_H
#define API_CALLS_H

#include <homa/libhoma.h>

typedef void api_call_check(struct homa *h,
			    const struct sockaddr_storage *server);

/* NULL: there is none of that name. */
api_call_check *api_find_call(const char *name);

#endif
