// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What homa-run -v says. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "supervisor.h"

void homa_sv_debug(const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	if (!getenv("HOMA_PRELOAD_DEBUG"))
		return;
	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n >= 0)
		dprintf(STDERR_FILENO, "homa-supervisor: %s\n", text);
}
