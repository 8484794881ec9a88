/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The highest load that a protocol sustains (Figure 12 of the SIGCOMM'18 study). */
#ifndef SIM_LIMIT_H
#define SIM_LIMIT_H

#include "json.h"
#include "options.h"

/**
 * sim_limit_find() - search between o->limit_low and o->limit_high
 * Return: the result, or NULL with a sentence in @err; @usage: the request
 * made no sense.
 */
cJSON *sim_limit_find(const struct sim_options *o, bool *usage, char *err, size_t errlen);
void sim_limit_print(const cJSON *json);

/* ---- main.c ---- */

/** sim_run_once() - a run of @cfg from beginning to end; its result or NULL, as above */
cJSON *sim_run_once(const struct sim_options *o, const struct sim_config *cfg, bool *usage,
		    char *err, size_t errlen);
bool sim_interrupted(void);

#endif
