// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP as ATC'21 ("A Linux Kernel Implementation of the Homa Transport
 * Protocol", Ousterhout) compares Homa with it: connections between each pair
 * of hosts that last, each a stream that its messages share in the order in
 * which they were sent, so that a short message waits for the long ones before
 * it. That study's benchmark has 32 from each client to each server (4 ports by
 * 8, in the scripts of its published module); a request takes one at random,
 * and its response comes back on it.
 *
 * Congestion control is NewReno, loss recovery without SACK unless they are set
 * (window_cubic.c, window_loss.c); window.h lists the RFCs and what the model
 * leaves out. What sets it apart from Linux as measured there: NewReno instead
 * of Cubic, no SACK, no RACK, no segmentation offload, no CPU time.
 *
 * Parameters: initial window 10 (RFC 6928); least time-out 10 ms, as in DCTCP's
 * own evaluation (SIGCOMM'10) and a data centre (Linux has 200 ms, but with
 * SACK and tail loss probes seldom comes to it, while here every lost tail
 * does); largest window 6 MB (Linux); an ack for every second segment or after
 * 0.5 ms (RFC 5681 allows 500 ms, Linux takes 40 or more, but acks at once
 * where it guesses that the sender waits). Switches have 13 MB of buffer that
 * their ports share, each at most as much as is still free (ATC'21, section
 * 5.5); ports of unlimited length would let every window grow to its maximum.
 */
#include "window.h"

static const struct sim_option tcp_options[] = {
	WINDOW_OPTIONS(10, 10000, 2, WINDOW_STREAMS_OPTION),
	{ "sack", 0, 0, 1, "bool",
	  "acks say what came out of order, and losses are found as Linux does (RFC 2018, 8985)" },
	{ "turns", 0, 0, 1, "bool",
	  "connections to a host take messages in turn; 0: one at random" },
	{ "undo", 0, 0, 1, "bool",
	  "with sack: a time-out after which bytes come that were not sent again is undone, as "
	  "by Linux (RFC 5682)" },
	{ "idle-restart", 1, 0, 1, "bool",
	  "a connection that was idle has the initial window again (RFC 5681); 0: its last one, "
	  "as Linux with tcp_slow_start_after_idle=0" },
	{ "cubic", 0, 0, 1, "bool",
	  "windows grow and shrink as CUBIC's (RFC 9438) with HyStart, as Linux' do; 0: NewReno's" },
	{ NULL, 0, 0, 0, NULL, NULL },
};

static const struct window_policy tcp_policy = {
	.ecn = false,
	.sack = true,
};

static int tcp_defaults(struct sim_config *cfg)
{
	window_defaults(cfg, tcp_options);
	cfg->shared_bytes = WINDOW_SWITCH_BYTES;
	cfg->shared_alpha = 256;
	sim_costs_default(&cfg->software, SIM_STACK_TCP);
	return 0;
}

static int tcp_start(struct sim *sim)
{
	return window_start(sim, &tcp_policy);
}

const struct sim_transport sim_tcp = {
	.name = "tcp",
	.title = "TCP",
	.text = "TCP NewReno over lasting connections (RFC 5681, 6582, 6298)",
	.options = tcp_options,
	.defaults = tcp_defaults,
	.start = tcp_start,
	.stop = window_stop,
	.send = window_send,
	.tx = window_tx,
	.rx = window_rx,
	.metrics = window_metrics,
};
