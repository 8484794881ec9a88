// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Mistakes in a configuration file are collected, and printed at the end. */
#include <stdarg.h>
#include "config_load.h"

void homad_complain(struct homad_loader *l, u32 line, const char *format, ...)
{
	struct homad_complaint *c;
	va_list args;

	if (l->num == HOMAD_COMPLAINTS)
		return;
	c = &l->complaints[l->num++];
	c->line = line;
	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
}
