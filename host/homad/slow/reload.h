/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reading the configuration again (SIGHUP). */
#ifndef HOMAD_RELOAD_H
#define HOMAD_RELOAD_H

#include "homad.h"

/**
 * homad_reload_init() - remember the settings that were read; called before homad_start().
 */
void homad_reload_init(const struct homad *d);
void homad_reload_free(void);
/** homad_reload() - take over what can change while running, say what cannot; a
 *  file that is wrong changes nothing. */
void homad_reload(struct homad *d, int argc, char **argv);

#endif
