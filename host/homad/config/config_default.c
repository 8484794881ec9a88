// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What holds without a file. It has to work on any machine: AF_XDP where that
 * goes, UDP everywhere, one fast-path thread that shares its core, everybody may
 * attach and nobody may take more than a fair part of the memory. Ports below
 * 1024 are root's, as with TCP.
 */
#include <string.h>
#include <unistd.h>
#include "config.h"
#include "log.h"
#include "shm.h"

#define MIB ((u64)1 << 20)
/* Time after which an RPC fails, in us. It is long because small machines stop a process
 * for 100 ms now and then, which an RPC must survive. */
#define TIMEOUT_US 500000u
#define UDP_PORT 54321u
/* Most peers that the engine remembers: more than the RPCs of one user (quota.user_rpcs)
 * can go to. */
#define MAX_PEERS 600000u

static u64 machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (u64)pages * (u64)size : 0;
}

/* Returns a quarter of the machine's memory, but no more than 4 GiB, in bytes. */
static u64 user_memory(void)
{
	u64 quarter = machine_memory() / 4;

	if (quarter < 64 * MIB)
		return 64 * MIB;
	return quarter > 4096 * MIB ? 4096 * MIB : quarter;
}

/* Returns half of the machine's memory, in bytes: enough for two users who take all that
 * they may, and for root. */
static u64 total_memory(void)
{
	u64 half = machine_memory() / 2;

	return half < 160 * MIB ? 160 * MIB : half;
}

void homad_config_default(struct homad_config *config)
{
	memset(config, 0, sizeof(*config));
	config->mode = HOMAD_SHARED;
	config->interfaces.automatic = true;
	config->afxdp = 1;
	config->udp = true;
	config->udp_port = UDP_PORT;
	config->bulk = HOMAD_BULK_AUTO;
	config->bulk_min = 65536;
	config->direct = true;
	config->spin_us = 50;
	config->spin_min_us = 5;
	config->scale = true;
	config->scale_idle = 125;
	config->scale_busy = 20;
	config->scale_ms = 10;
	strcpy(config->socket, HOMA_SHM_SOCKET);
	strcpy(config->monitor, "/run/homa/monitor.sock");
	config->socket_mode = 0666;
	config->rules[0] = (struct homad_rule){
		.who.id = 0,
		.allow = true,
		.port_min = 1,
		.port_max = 32767,
	};
	config->rules[1] = (struct homad_rule){
		.who.any = true,
		.allow = true,
		.port_min = 1024,
		.port_max = 32767,
	};
	config->num_rules = 2;
	config->tcp_streams = 16384;
	config->tcp_connections = 131072;
	config->tcp_ports = 8192;
	config->tcp_share = 50;
	config->tcp_receive_buffer = 512 << 10;
	config->tcp_send_buffer = 512 << 10;
	config->quota = (struct homad_quota){
		.attachments = 1024,
		.total_attachments = 2048,
		.rpcs = 4096,
		.user_rpcs = 262144,
		.user_peers = 262144,
		.rcvbuf_default = 8 * MIB,
		.rcvbuf_max = 256 * MIB,
		.send_max = 64 * MIB,
		.user_memory = user_memory(),
		.total_memory = total_memory(),
		.handover_s = 10,
	};
	homa_params_default(&config->params);
	config->params.timeout_us = TIMEOUT_US;
	config->params.max_peers = MAX_PEERS;
	config->log_level = HOMAD_INFO;
	config->log_format = HOMAD_LOG_TEXT;
}
