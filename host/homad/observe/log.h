/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The structured log, on standard error (systemd's journal, or a file that the
 * shell redirects): "time level message key=value ..." or a JSON object a line.
 * Never blocks for long and never fails: with a full disk lines are lost and
 * counted. Any thread may log; the fast path does so only about exceptions, at a
 * bounded rate.
 */
#ifndef HOMAD_LOG_H
#define HOMAD_LOG_H

#include "config.h"

enum { HOMAD_ERROR, HOMAD_WARNING, HOMAD_INFO, HOMAD_DEBUG };

void homad_log_init(int level, enum homad_log_format format);
/** homad_log() - log a line: a sentence, and after a tab in the format pairs of a key and a
 *  value, as in homad_log(HOMAD_INFO, "attached\tapp=%u uid=%u", ...). */
void homad_log(int level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/** homad_log_lost() - the number of lines that could not be written. */
unsigned long homad_log_lost(void);

#endif
