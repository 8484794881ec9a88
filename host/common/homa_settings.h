/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Protocol settings as text: "name=value,name=value". */
#ifndef HOMA_SETTINGS_H
#define HOMA_SETTINGS_H

#include "homa_engine.h"

/**
 * homa_settings_parse() - apply settings to @params
 * @text: the settings, or NULL for none. "sigcomm" alone in place of a
 *	setting takes all settings of the SIGCOMM study.
 * @err: receives one sentence on failure.
 * Returns 0 or -EINVAL; then @params may be changed in part.
 */
int homa_settings_parse(struct homa_params *params, const char *text, char *err,
			size_t errlen);

#endif
