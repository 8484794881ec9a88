/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The command line of homa-sim. options.c reads it, options_table.c says what
 * there is, options_list.c prints it for people and programs.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include "sim_transport.h"

#define SIM_EXIT_RUNTIME 1
#define SIM_EXIT_USAGE 2

/**
 * struct sim_options - what is to be done
 * @record: file for the arrivals.
 * @json: file of the result, "-": standard output; NULL: print for people.
 * @progress: descriptor for progress lines, -1 none.
 */
struct sim_options {
	struct sim_config cfg;
	const char *json, *trace, *pcap, *record, *label;
	u64 trace_from, trace_until;
	int progress;
	bool quiet, list, help, version;
	bool abort_unstable, against_oracle;
	u64 warm_start;
	/* while reading */
	u32 hosts, per_rack;
	bool warmup_given, measure_given, racks_given, spines_given, k_given;
};

/** struct sim_flag - an option: a flag without value if @value is NULL */
struct sim_flag {
	const char *name, *value, *text;
	int (*set)(struct sim_options *o, const char *arg, char *err, size_t errlen);
};

/** sim_flags - ends with an empty name; an entry without @set is a heading */
extern const struct sim_flag sim_flags[];

/**
 * sim_options_parse() - fill @o from the command line
 * Return: 0, or -EINVAL with one sentence in @err.
 */
int sim_options_parse(struct sim_options *o, int argc, char *const *argv, char *err,
		      size_t errlen);
const struct sim_transport *sim_transport_find(const char *name);
/** sim_transport_names() - "homa, pfabric, ..." */
void sim_transport_names(char *text, size_t size);

void sim_options_help(void);
/** sim_options_list() - protocols, presets, settings, flags as JSON; exit code */
int sim_options_list(void);

#endif
