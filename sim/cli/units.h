/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Quantities as people write them: "10gbit", "250ns", "64kb", "0.8". */
#ifndef SIM_UNITS_H
#define SIM_UNITS_H

#include <stdbool.h>
#include <stddef.h>

#include "homa_plat.h"

/* Each returns false if @text is not one, or is out of what fits. */

/** sim_parse_rate() - read a whole rate in Mbit/s; "10gbit", "25Gbps", "400mbit" */
bool sim_parse_rate(const char *text, u32 *mbps);
/** sim_parse_time() - read a time in ps, at most 200 days; "250ns", "1.5ms", "0" */
bool sim_parse_time(const char *text, u64 *ps);
/** sim_parse_bytes() - read a number of bytes; "1500", "64kb" (64,000), "1MiB" */
bool sim_parse_bytes(const char *text, u64 *bytes);
/** sim_parse_number() - read decimal digits; at most @max */
bool sim_parse_number(const char *text, u64 max, u64 *value);
/** sim_parse_real() - read a finite number in [@min, @max] */
bool sim_parse_real(const char *text, double min, double max, double *value);

#endif
