/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Signals, the watchdog, and faults in the memory of attachments. */
#ifndef HOMAD_SIGNALS_H
#define HOMAD_SIGNALS_H

#include "slowpath.h"

/** homad_signals_args() - keep the command line, for reloading. */
void homad_signals_args(int argc, char **argv);
/**
 * homad_signals_start() - take signals; called before any thread is made, so that all
 * inherit the mask.
 */
int homad_signals_start(struct homad *d, char *err, size_t errlen);
void homad_signals_stop(struct homad *d);

#endif
