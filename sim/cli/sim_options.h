/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The command line of homa-sim. options.c reads it, options_table.c says what
 * there is, options_list.c prints it for people and programs.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include "sim_transport.h"

#define SIM_EXIT_RUNTIME 1
#define SIM_EXIT_USAGE 2

/**
 * struct sim_options - what the command line asks for
 * @cfg: configuration of the run.
 * @json: file of the result, "-": standard output; NULL: the result is printed for people.
 * @trace: file for the Perfetto trace, or NULL.
 * @pcap: file for the capture, or NULL.
 * @record: file for the arrivals, or NULL.
 * @label: text of the user for the report, or NULL.
 * @trace_from: time at which the traces begin, ps.
 * @trace_until: time at which the traces end, ps; 0: at the end of the run.
 * @progress: descriptor to which progress lines are written, or -1.
 * @quiet, @list, @help, @version: flags of the same names were given.
 * @abort_unstable, @against_oracle: flags of the same names were given.
 * @stop_growth: growth of the backlog in the first third of the window above which the run
 *	ends, share of what is offered; 0: it goes on.
 * @warm_start: simulated time that the oracle runs before, whose unfinished messages the
 *	run begins with, ps; 0: it does not.
 * @hosts: value of --hosts while options are read; 0: not given.
 * @per_rack: value of --hosts-per-rack while options are read; 0: not given.
 * @warmup_set, @measure_set, @racks_set, @spines_set, @k_set: the option was given; used only
 *	while options are read.
 */
struct sim_options {
	struct sim_config cfg;
	const char *json, *trace, *pcap, *record, *label;
	u64 trace_from, trace_until;
	int progress;
	bool quiet, list, help, version;
	bool abort_unstable, against_oracle;
	double stop_growth;
	u64 warm_start;
	/* used only while options are read */
	u32 hosts, per_rack;
	bool warmup_set, measure_set, racks_set, spines_set, k_set;
};

/**
 * struct sim_flag - an option; a flag has no value if @value is NULL
 * @name: name of the option, without dashes.
 * @value: what the help calls its value.
 * @text: what it does, for the help.
 * @set: takes the option: 0, or -EINVAL with one sentence in @err.
 */
struct sim_flag {
	const char *name, *value, *text;
	int (*set)(struct sim_options *o, const char *arg, char *err, size_t errlen);
};

/**
 * sim_flags - all options; the last one has an empty name, and one without @set is a
 * heading
 */
extern const struct sim_flag sim_flags[];

/**
 * sim_options_parse() - fill @o from the command line
 * Return: 0, or -EINVAL with one sentence in @err.
 */
int sim_options_parse(struct sim_options *o, int argc, char *const *argv, char *err,
		      size_t errlen);
const struct sim_transport *sim_transport_find(const char *name);
/** sim_transport_names() - write the names of all protocols, "homa, pfabric, ..." */
void sim_transport_names(char *text, size_t size);

void sim_options_help(void);
/**
 * sim_options_list() - print protocols, presets, settings and flags as JSON; returns an
 * exit code
 */
int sim_options_list(void);

#endif
