// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What the environment said when the program began, which may have cleared it since. */
#include <stdlib.h>
#include <string.h>
#include "tcp.h"

static bool was_on;
static char was_path[108];

bool homa_pl_tcp_is_on(void)
{
	const char *value = getenv("HOMA_TCP");

	return value ? !strcmp(value, "on") : was_on;
}

const char *homa_pl_service_socket(void)
{
	const char *path = getenv("HOMA_SERVICE_SOCKET");

	return path ? path : was_path;
}

__attribute__((constructor)) static void remember(void)
{
	const char *path = getenv("HOMA_SERVICE_SOCKET");

	was_on = homa_pl_tcp_is_on();
	if (path && strlen(path) < sizeof(was_path))
		strcpy(was_path, path);
}
