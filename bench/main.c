/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homa-bench: load generator and server for Homa, TCP and UDP, after the
 * benchmarks of the Homa papers. This file only wires the parts together:
 * configuration, endpoint, run, result. Exit status: 0 measured, 1 something
 * failed while running (the result says what was measured until then), 2 the
 * request made no sense or cannot be served here.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "json.h"
#include "run.h"
#include "bench_transport.h"

volatile int bench_stop;

static void on_signal(int signal)
{
	(void)signal;
	bench_stop = 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	/* Without SA_RESTART a blocking read notices the first signal; with SA_RESETHAND a
	 * second one ends the program. */
	action.sa_flags = (int)SA_RESETHAND;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Pins the process to its core, and asks for punctual timers. */
static int place(const struct bench_config *config)
{
	cpu_set_t set;

	prctl(PR_SET_TIMERSLACK, 1);
	if (config->cpu < 0)
		return 0;
	CPU_ZERO(&set);
	if (config->cpu < CPU_SETSIZE)
		CPU_SET(config->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		bench_complain("--pin: this process cannot run on CPU %d: %s",
			       config->cpu, strerror(errno));
		return BENCH_EXIT_USAGE;
	}
	return 0;
}

static int run_role(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	int ret;

	if (config->role & BENCH_SERVER)
		fprintf(stderr, "homa-bench: ready: %s on %s\n",
			config->transport, run->ep->where);
	if (config->role == BENCH_SERVER)
		return bench_run_serve(run);
	ret = bench_run_connect(run);
	if (ret == -EINTR) {
		run->interrupted = true;
		run->outcome = ret;
		return ret;
	}
	if (ret) {
		bench_complain("peer %s does not answer (%s): is 'homa-bench server --transport %s' running there?",
			       config->peers[run->failed_peer], strerror(-ret),
			       config->transport);
		run->outcome = ret;
		return ret;
	}
	if (config->loop == BENCH_UNLOADED)
		return bench_run_unloaded(run);
	return bench_run_load(run);
}

static int finish(struct bench_run *run, int ret)
{
	const struct bench_config *config = run->config;
	cJSON *result = bench_result(run);
	char err[512];
	int code = ret && ret != -EINTR ? BENCH_EXIT_RUNTIME : 0;

	if (run->gave_up)
		bench_complain("gave up: peer %s: %s, and no RPC succeeded for %g s",
			       config->peers[run->failed_peer], strerror(-ret),
			       config->give_up);
	if (config->json &&
	    homa_json_write(result, config->json, err, sizeof(err))) {
		bench_complain("--json: %s", err);
		code = BENCH_EXIT_RUNTIME;
	}
	if (!config->quiet && run->stats.window_end_ns &&
	    !(config->json && !strcmp(config->json, "-")))
		bench_report(result);
	cJSON_Delete(result);
	return code;
}

static int run_config(const struct bench_config *config)
{
	const struct bench_transport *transport =
		bench_transport_find(config->transport);
	struct bench_endpoint *ep = NULL;
	struct bench_run run;
	char err[512] = "";
	int ret, code;

	code = place(config);
	if (code)
		return code;
	ret = transport->open(&ep, config, err, sizeof(err));
	if (ret) {
		bench_complain("%s", err[0] ? err : strerror(-ret));
		return BENCH_EXIT_USAGE;
	}
	ep->transport = transport;
	ret = bench_run_init(&run, config, ep);
	if (ret) {
		bench_complain("out of memory: lower --max-outstanding");
		code = BENCH_EXIT_USAGE;
		goto out;
	}
	if (config->denominators &&
	    bench_denominators_load(&run.stats.denominators,
				    config->denominators, err, sizeof(err))) {
		bench_complain("--denominators: %s", err);
		code = BENCH_EXIT_USAGE;
		goto out;
	}
	code = finish(&run, run_role(&run));
out:
	bench_run_free(&run);
	transport->close(ep);
	return code;
}

int main(int argc, char **argv)
{
	struct bench_config config;
	int ret, code;

	if (argc > 1 && !strcmp(argv[1], "list")) {
		if (argc > 2 && strcmp(argv[2], "--json")) {
			bench_complain("unknown option '%s'; list knows only --json",
				       argv[2]);
			return BENCH_EXIT_USAGE;
		}
		return bench_list(argc > 2);
	}
	ret = bench_options(&config, argc, argv);
	catch_signals();
	code = ret < 0 ? BENCH_EXIT_USAGE : ret > 0 ? 0 : run_config(&config);
	bench_options_free(&config);
	return code;
}
