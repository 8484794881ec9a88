/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homad's settings: defaults, the configuration file, the command line, in this
 * order. Everything is checked before it gets here.
 */
#ifndef HOMAD_CONFIG_H
#define HOMAD_CONFIG_H

#include <stdio.h>
#include <sys/types.h>
#include "homa_engine.h"

#define HOMAD_MAX_PORTS 8    /* interfaces, and UDP */
#define HOMAD_MAX_THREADS 16 /* fast-path threads */
#define HOMAD_MAX_RULES 64
#define HOMAD_MAX_TCP_RULES 64

enum homad_mode { HOMAD_SHARED, HOMAD_DEDICATED };
enum homad_log_format { HOMAD_LOG_TEXT, HOMAD_LOG_JSON };
enum homad_bulk { HOMAD_BULK_AUTO, HOMAD_BULK_OFF, HOMAD_BULK_ON };

/** struct homad_who - whom a rule is for: @any: everybody; else @by_gid: @id is a group
 *  (also supplementary), or it is a user. */
struct homad_who {
	bool any;
	bool by_gid;
	u32 id;
};

/**
 * struct homad_tcp_rule - whose TCP homad takes, and how much of it
 * The first rule that is for the user, the port and the address decides.
 * @deny: it is refused, and not left to the kernel.
 * @listen: first and last port at which they may listen; 0: none.
 * @connect: first and last port to which connections are taken; 0: none. @ip, @prefix:
 *	and the first @prefix bits of the address, IPv4 as ::ffff:a.b.c.d.
 * @send, @receive: bytes a second; 0: as many as there are. @connections: open at once;
 *	0: as many as there are. @together: these hold for all users of the rule in sum,
 *	and not for each.
 * @congestion: as homad_config.tcp_cc; below 0: what that says. @dscp: of IP headers.
 */
struct homad_tcp_rule {
	struct homad_who who;
	bool deny;
	bool together;
	u16 listen[2];
	u16 connect[2];
	u8 ip[16];
	u8 prefix;
	u8 dscp;
	s8 congestion;
	u32 connections;
	u64 send, receive;
};

/**
 * struct homad_rule - who may attach and which ports they may bind
 * The first rule that matches uid or gid decides.
 * @allow: may attach.
 * @port_min, @port_max: ports that may be bound; 0, 0: none.
 */
struct homad_rule {
	struct homad_who who;
	bool allow;
	u16 port_min, port_max;
};

/**
 * struct homad_quota - limits of one attachment unless said otherwise
 * @attachments: of one user; @total_attachments: of all.
 * @rpcs: requests open at once, and requests received but not answered.
 * @user_rpcs: sum of @rpcs over the attachments of one user; when it runs short an
 *	attachment gets fewer.
 * @rcvbuf_default, @rcvbuf_max: receive pool, bytes, multiples of 64 KiB.
 * @send_max: bytes of data segments.
 * @user_memory: bytes of shared memory of one user over all attachments;
 *	@total_memory: of all users.
 * @handover_s: an attachment that was exported waits so long for its next process, s.
 */
struct homad_quota {
	u32 attachments;
	u32 total_attachments;
	u32 rpcs;
	u32 user_rpcs;
	u64 rcvbuf_default, rcvbuf_max;
	u64 send_max;
	u64 user_memory, total_memory;
	u32 handover_s;
};

/**
 * struct homad_config - all settings
 * @cores: dedicated: CPU of each fast-path thread, @num_cores of them.
 * @interfaces: AF_XDP devices; none: every one that is up and can, if
 *	@auto_interfaces, else UDP only.
 * @address: local address to use on the (only) interface, or "".
 * @afxdp: 0 off, 1 if it works (the reason is logged), 2 must work.
 * @xdp_mode: as nic_config.mode.
 * @udp: serve UDP encapsulation, too. @udp_port: 54321 by default.
 * @bulk, @bulk_min: send messages of at least so many bytes over UDP, whose
 *	segmentation offload is faster, when the peer understands it. AUTO: on
 *	virtual devices.
 * @link_mbps: link rate, 0: what the device says.
 * @direct: short RPCs between applications of this host go without packets.
 * @spin_us: shared: longest time that a thread polls without work before it
 *	blocks. @spin_min_us: the same where work is rare, and beside a hog.
 * @scale: dedicated: let the number of threads follow the load; @scale_idle
 *	(1.25): a thread goes if more cores than that are idle; @scale_busy (0.2):
 *	one comes if fewer are; in hundredths. @scale_ms: interval.
 * @socket, @socket_mode, @socket_group: the attach socket.
 * @monitor: the monitoring socket of ./homa ss, top, trace; "" none.
 * @monitor_group: group that may use it beside root and our own user; "" none.
 * @metrics: "" none, "unix:PATH" or "127.0.0.1:PORT".
 * @tcp_rules: whose TCP connections are taken. @tcp_streams: most of an attachment;
 *	@tcp_connections: of all. @tcp_ports: kept for connections. @tcp_receive_buffer,
 *	@tcp_send_buffer: most bytes of one. @tcp_cc: congestion control, its number among the
 *	setting's words. @tcp_share: of a link, when Homa has something to send there, too,
 *	percent.
 * @params: protocol settings.
 * @user: drop to this user after start, "": stay.
 * @file: where it came from, or "".
 */
struct homad_config {
	enum homad_mode mode;
	u32 cores[HOMAD_MAX_THREADS];
	u32 num_cores;
	char interfaces[HOMAD_MAX_PORTS - 1][16];
	u32 num_interfaces;
	bool auto_interfaces;
	char address[64];
	int afxdp;
	int xdp_mode;
	bool udp;
	u16 udp_port;
	enum homad_bulk bulk;
	u32 bulk_min;
	u32 link_mbps;
	bool direct;
	u32 spin_us, spin_min_us;
	bool scale;
	u32 scale_idle, scale_busy, scale_ms;
	char socket[108];
	mode_t socket_mode;
	char socket_group[32];
	char monitor[108];
	char monitor_group[32];
	char metrics[128];
	struct homad_rule rules[HOMAD_MAX_RULES];
	u32 num_rules;
	struct homad_tcp_rule tcp_rules[HOMAD_MAX_TCP_RULES];
	u32 num_tcp_rules;
	u32 tcp_streams, tcp_connections, tcp_ports;
	u64 tcp_receive_buffer, tcp_send_buffer;
	int tcp_cc;
	u32 tcp_share;
	struct homad_quota quota;
	struct homa_params params;
	int log_level;
	enum homad_log_format log_format;
	char user[32];
	char file[256];
};

/** homad_config_default() - what holds without a file. */
void homad_config_default(struct homad_config *config);
/**
 * homad_config_load() - read a TOML file over @config
 * Every error is printed to @errors, one a line, "FILE:LINE: what is wrong and
 * how to mend it". Returns 0, or how many errors there were.
 */
int homad_config_load(struct homad_config *config, const char *file,
		      FILE *errors);

#endif
