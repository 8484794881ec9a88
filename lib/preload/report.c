// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the library says of itself: the sentence about a socket's last failure, which
 * HOMAIOCINFO returns, and lines on standard error for whoever sets HOMA_PRELOAD_DEBUG.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "real.h"

void homa_pl_debug(const char *format, ...)
{
	char text[512] = "homa-preload: ";
	size_t n = strlen(text);
	va_list args;

	if (!getenv("HOMA_PRELOAD_DEBUG"))
		return;
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - n - 1, format, args);
	va_end(args);
	strcat(text, "\n");
	if (HOMA_PL_REAL(write)(STDERR_FILENO, text, strlen(text)) < 0)
		return;
}

int homa_pl_error(struct homa_pl_sock *s, int rc, const char *text)
{
	/* The last byte stays 0, even if two threads write at the same time. */
	snprintf(s->error, sizeof(s->error), "%s", text);
	return rc;
}
