// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RPCs by several threads, for core_count.c: client thread i is on CPU i and has a
 * socket of its own, and so has the server thread that it calls, which is half of the CPUs
 * away. So every RPC goes from one CPU to another and back, all CPUs do the same work, and
 * no two threads use the same socket: what the CPUs share is the kernel's choice.
 *
 * All begin their measured part together, after each one's warm-up; the marks are the first
 * thread's. Servers are threads of another process, as hosts share no memory.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mark.h"
#include "rpcs.h"

/* struct worker - a thread and what it needs; @config has its own port; @number: from 0 */
struct worker {
	struct rpcs_config config;
	const struct rpcs_proto *proto;
	pthread_t thread;
	uint32_t number;
};

static struct worker workers[RPCS_MAX_CORES];
static pthread_barrier_t together;

static void *server(void *data)
{
	struct worker *worker = data;

	rpcs_enter_net(worker->config.server_net);
	rpcs_pin((int)((worker->number + (worker->config.cores + 1) / 2) %
		       worker->config.cores));
	worker->proto->listen(&worker->config);
	pthread_barrier_wait(&together);
	worker->proto->serve(&worker->config);
	return NULL;
}

/* Ends one RPC of the thread's and begins the next, @count times. */
static void turns(struct worker *worker, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		worker->proto->send(&worker->config,
				    worker->proto->receive(&worker->config));
}

static void *client(void *data)
{
	struct worker *worker = data;
	const struct rpcs_config *config = &worker->config;

	rpcs_enter_net(config->client_net);
	rpcs_pin((int)worker->number);
	worker->proto->connect(config);
	for (uint32_t i = 0; i < config->outstanding; i++)
		worker->proto->send(config, i);
	turns(worker, config->warmup);
	pthread_barrier_wait(&together);
	if (config->mark && !worker->number)
		MARK(MARK_BEGIN);
	pthread_barrier_wait(&together);
	turns(worker, config->count);
	pthread_barrier_wait(&together);
	if (config->mark && !worker->number)
		MARK(MARK_END);
	for (uint32_t i = 0; i < config->outstanding; i++)
		worker->proto->receive(config);
	return NULL;
}

static void start(uint32_t cores, void *(*run)(void *))
{
	for (uint32_t i = 0; i < cores; i++)
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			rpcs_die("thread");
}

static pid_t start_servers(uint32_t cores)
{
	int ready[2];
	pid_t parent = getpid(), pid;
	char byte;

	if (pipe(ready))
		rpcs_die("pipe");
	pid = fork();
	if (pid < 0)
		rpcs_die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ready[0]);
		if (pthread_barrier_init(&together, NULL, cores + 1))
			_exit(1);
		start(cores, server);
		pthread_barrier_wait(&together);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		pthread_join(workers[0].thread, NULL);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(1); /* a server has said why it failed */
	close(ready[0]);
	return pid;
}

void rpcs_cores(const struct rpcs_config *config, const struct rpcs_proto *proto)
{
	uint32_t cores = config->cores;
	pid_t servers;

	for (uint32_t i = 0; i < cores; i++) {
		struct sockaddr_in *to = (void *)&workers[i].config.peer;

		workers[i] = (struct worker){ *config, proto, 0, i };
		to->sin_port = htons((uint16_t)(config->port + i));
	}
	servers = start_servers(cores);
	if (pthread_barrier_init(&together, NULL, cores))
		rpcs_die("barrier");
	start(cores, client);
	for (uint32_t i = 0; i < cores; i++)
		pthread_join(workers[i].thread, NULL);
	kill(servers, SIGKILL);
	if (waitpid(servers, NULL, 0) != servers)
		rpcs_die("the servers");
	printf("RESULT {\"label\": \"%s\", \"proto\": \"%s\", \"cores\": %u, \"count\": %u}\n",
	       config->label, config->proto, cores, cores * config->count);
}
