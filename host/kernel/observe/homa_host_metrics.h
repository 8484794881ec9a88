/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the host counts, each CPU by itself (homak_cpu.metrics). */
#ifndef HOMA_HOST_METRICS_H
#define HOMA_HOST_METRICS_H

/*
 * The host's counters, which stand beside the engine's; shown in the same list.
 *	HOST_METRIC(name, "what one count means")
 */
#define HOMAK_HOST_METRICS(M)                                                      \
	M(host_rx_skbs, "buffers received from IP")                                \
	M(host_rx_gro, "packets that came batched by GRO")                         \
	M(host_rx_gso,                                                             \
	  "packets that came unsegmented from a neighbour on this machine")        \
	M(host_rx_refused,                                                         \
	  "packets refused by a socket's filter, its cgroup or a security module") \
	M(host_rx_nomem, "packets dropped: no memory to queue them")               \
	M(host_tx_skbs, "buffers given to IP")                                     \
	M(host_tx_gso, "of these, with several segments")                          \
	M(host_tx_nomem, "transmissions put off: no memory")                       \
	M(host_tx_noroute, "transmissions put off or given up: no route")          \
	M(host_tx_error, "transmissions IP or the queue refused")                  \
	M(host_handoffs, "messages handed to a waiting thread")                    \
	M(host_polls, "receives that found their message while polling")           \
	M(host_sleeps, "receives that slept")                                      \
	M(host_busy_polls, "receives that polled a network card (SO_BUSY_POLL)")   \
	M(host_copied_bytes, "message bytes copied to applications")               \
	M(host_spares_failed, "times there was no memory for spare objects")       \
	M(host_paused, "packets dropped while settings changed")                   \
	M(host_q_homa_bytes, "bytes of Homa that \"homa\" qdiscs handed on")       \
	M(host_q_other_bytes, "bytes of others, since Homa uses the device")       \
	M(host_q_short, "short packets of others that passed in them")             \
	M(host_q_drops, "packets they dropped")                                    \
	M(host_q_pulls, "times that room in them made Homa send")                  \
	M(host_stream_conns, "connections of streams that peers opened")           \
	M(host_stream_refused, "connections of streams that were refused")         \
	M(host_stream_bad, "messages of streams that broke the rules")

enum homak_host_metric {
#define M(name, text) HOMAK_H_##name,
	HOMAK_HOST_METRICS(M)
#undef M
		HOMAK_H_COUNT,
};

#endif
