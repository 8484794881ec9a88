/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What happened, packet by packet, for people and their tools: a trace that
 * the Perfetto UI and chrome://tracing open, and a capture for Wireshark. Both
 * listen to the run as a tap and are written while it goes on; memory grows
 * only with the messages that are under way. docs/simulator-traces.md says
 * what stands in them.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "sim.h"

/**
 * struct sim_trace_options - what to trace; zero it first
 * @json: file for the Perfetto trace, or NULL.
 * @pcap: file for the pcapng capture, or NULL.
 * @from: time at which the traces begin, ps.
 * @until: time before which they end, ps; 0: at the end of the run.
 * @max_bytes: size at which each file ends, about; 0: SIM_TRACE_MAX_BYTES.
 */
struct sim_trace_options {
	const char *json, *pcap;
	u64 from, until;
	u64 max_bytes;
};

#define SIM_TRACE_MAX_BYTES (2ull << 30)

/**
 * sim_trace_open() - begin to trace @sim, which has not run yet
 * Both paths may be NULL; then nothing is done. They are used only in here.
 * Return: 0 or a negative errno with a sentence in @err.
 */
int sim_trace_open(struct sim *sim, const struct sim_trace_options *o, char *err,
		   size_t errlen);

/**
 * sim_trace_close() - complete the files; before sim_free(), also after SIGINT
 * Harmless without sim_trace_open().
 * Return: 0, or a negative errno with a sentence in @err: a file could not be
 * written to its end (disk full: the run went on without it, what is there can
 * be read), -EFBIG: it was cut at its greatest size.
 */
int sim_trace_close(struct sim *sim, char *err, size_t errlen);

#endif
