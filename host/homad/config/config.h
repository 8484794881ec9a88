/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homad's settings: defaults, the configuration file, the command line, in this
 * order. Everything is checked before it gets here.
 *
 * Written by: the reader of the configuration, before others have it, and control, which takes
 * what may change into homad.config while no fast-path thread reads it.
 */
#ifndef HOMAD_CONFIG_H
#define HOMAD_CONFIG_H

#include <stdio.h>
#include <sys/types.h>
#include "homa_engine.h"

/* most ports; UDP counts as a port like an interface */
#define HOMAD_MAX_PORTS 8
#define HOMAD_MAX_THREADS 16 /* most fast-path threads */
#define HOMAD_MAX_RULES 64
#define HOMAD_MAX_TCP_RULES 64

enum homad_mode { HOMAD_SHARED, HOMAD_DEDICATED };
enum homad_log_format { HOMAD_LOG_TEXT, HOMAD_LOG_JSON };
enum homad_bulk { HOMAD_BULK_AUTO, HOMAD_BULK_OFF, HOMAD_BULK_ON };

/**
 * struct homad_who - whom a rule is for
 * @any: The rule is for everybody, and the other fields say nothing.
 * @by_gid: @id is the number of a group, of which the client's process may also be a
 *	supplementary member. If it is false, @id is the number of a user.
 * @id: The uid or gid.
 */
struct homad_who {
	bool any;
	bool by_gid;
	u32 id;
};

/* The congestion control of a rule that sends at the rule's rate; the others are counted as in
 * homad_config.tcp_cc. */
#define HOMAD_TCP_CONSTANT 5

/**
 * struct homad_tcp_rule - whose TCP homad takes, and how much of it
 * The first rule that is for the user, the port and the address decides.
 * @who: The users whom the rule is for.
 * @deny: What the rule is for is refused, instead of being taken by homad.
 * @together: @send, @receive and @connections limit the sum over all users of the rule,
 *	and not each user.
 * @listen: The first and the last port at which homad takes listeners; 0, 0 is none.
 * @connect: The first and the last remote port to which homad takes connections; 0, 0 is none.
 * @ip: The remote address must begin with the first @prefix bits of this one. An IPv4 address
 *	is written as ::ffff:a.b.c.d.
 * @prefix: The number of bits of @ip that count.
 * @dscp: The DSCP in the IP headers of packets that are sent.
 * @congestion: The congestion control, counted as in homad_config.tcp_cc, which holds if this
 *	is negative; or HOMAD_TCP_CONSTANT.
 * @rate: With HOMAD_TCP_CONSTANT: the bytes of payload that each connection sends in a second.
 * @connections: The most connections that may be open at once; 0 sets no limit.
 * @send: The most bytes that are sent in a second; 0 sets no limit.
 * @receive: The most bytes that are received in a second; 0 sets no limit.
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
	u64 send, receive, rate;
};

/**
 * struct homad_rule - who may attach and which ports they may bind
 * The first rule that is for the user decides.
 * @who: The users whom the rule is for.
 * @allow: These users may attach.
 * @port_min: The first Homa port that they may bind, or 0 if they may bind none.
 * @port_max: The last Homa port that they may bind, or 0 if they may bind none.
 */
struct homad_rule {
	struct homad_who who;
	bool allow;
	u16 port_min, port_max;
};

/**
 * struct homad_quota - how much attachments and users may have
 * @attachments: A user may have this many attachments.
 * @total_attachments: All users together may have this many attachments.
 * @rpcs: An attachment may have this many requests open, and besides leave as many received
 *	requests unanswered.
 * @user_rpcs: The limits of open requests of a user's attachments add up to this at most;
 *	when it runs short, a new attachment gets fewer than @rpcs.
 * @user_peers: Of the addresses that homad remembers, so many may be charged to a user, whose
 *	programs were the first to send a request there.
 * @rcvbuf_default: Bytes of the receive pool of an attachment that asks for no size; a
 *	multiple of 64 KiB.
 * @rcvbuf_max: The most bytes of a receive pool; a multiple of 64 KiB.
 * @send_max: The most bytes of an attachment's data segments, which hold messages to send.
 * @user_memory: The most bytes of a user's attachments together: shared memory and copies of
 *	messages.
 * @total_memory: The most of these bytes of all users together.
 * @handover_s: An attachment that was exported waits this many seconds for its next
 *	process, and ends then.
 */
struct homad_quota {
	u32 attachments;
	u32 total_attachments;
	u32 rpcs;
	u32 user_rpcs;
	u32 user_peers;
	u64 rcvbuf_default, rcvbuf_max;
	u64 send_max;
	u64 user_memory, total_memory;
	u32 handover_s;
};

/**
 * struct homad_interfaces - network interfaces
 * @names: Their names.
 * @num: The number of entries of @names.
 * @automatic: homad finds out by itself which ones, instead of those in @names.
 */
struct homad_interfaces {
	char names[HOMAD_MAX_PORTS - 1][16];
	u32 num;
	bool automatic;
};

/**
 * struct homad_config - all settings
 * @mode: HOMAD_SHARED runs one fast-path thread that sleeps when it has no work,
 *	HOMAD_DEDICATED one on each of @cores that spins.
 * @cores: In dedicated mode, the CPU of each fast-path thread.
 * @num_cores: The number of entries of @cores.
 * @interfaces: The devices on which AF_XDP is used; automatic: each that is up and can do it.
 * @message: The interfaces of message NICs, whose queues are used; never automatic.
 * @address: The local address to use on the only interface; if it is "", it is the
 *	interface's first.
 * @afxdp: 0 does not use AF_XDP; 1 uses it where it works, and logs why not elsewhere; with 2
 *	homad does not start without it.
 * @xdp_mode: How the XDP program is attached to a device, counted as in nic_config.mode.
 * @udp: homad speaks Homa in UDP, too.
 * @udp_port: The local UDP port; 54321 unless set.
 * @bulk: Whether long messages are sent over UDP, whose segmentation offload is faster, to
 *	peers that understand it. HOMAD_BULK_AUTO does so on virtual devices.
 * @bulk_min: A message of this many bytes is long.
 * @link_mbps: The rate of the link in Mbit/s; 0 takes what the device says.
 * @direct: Short RPCs between applications of this host go without packets.
 * @spin_us: In shared mode, a thread polls at most this many microseconds without work
 *	before it sleeps.
 * @spin_min_us: The same limit where work is rare, and beside a process that never sleeps.
 * @slice_us: In shared mode, the slice in microseconds that a thread asks of the scheduler, see
 *	homa_slice.h; 0 leaves that alone.
 * @scale: In dedicated mode, the number of threads that spin follows the load.
 * @scale_idle: A thread rests if the idle shares of all add up to more cores than this; in
 *	hundredths of a core.
 * @scale_busy: A thread is added if they add up to fewer cores than this; in hundredths of a
 *	core.
 * @scale_ms: The time between two looks at the load, in ms.
 * @socket: The path of the socket at which applications attach.
 * @socket_mode: The permissions of that socket.
 * @socket_group: The name of the group that owns that socket; "" is homad's own.
 * @monitor: The path of the monitoring socket of ./homa ss, top and trace; "" makes none.
 * @monitor_group: The group that may use it beside root and homad's own user; "" is none.
 * @metrics: The address at which Prometheus asks: "unix:PATH" or "127.0.0.1:PORT"; "" makes
 *	none.
 * @rules: Who may attach and bind ports.
 * @num_rules: The number of entries of @rules.
 * @tcp_rules: Whose TCP connections homad takes.
 * @num_tcp_rules: The number of entries of @tcp_rules.
 * @tcp_streams: The most TCP connections of an attachment.
 * @tcp_connections: The most TCP connections of all attachments.
 * @tcp_ports: The most local ports that homad takes from the kernel for connections that
 *	applications open.
 * @tcp_receive_buffer: The most bytes of a connection's receive buffer.
 * @tcp_send_buffer: The most bytes of a connection's send buffer.
 * @tcp_cc: The congestion control, as an index into the words of the setting
 *	tcp.congestion.
 * @tcp_share: The percentage of a link that TCP gets while Homa has something to send on
 *	it, too.
 * @quota: How much attachments and users may have.
 * @params: The settings of the Homa protocol.
 * @log_level: The least important level that is logged, HOMAD_ERROR to HOMAD_DEBUG.
 * @log_format: How a line of the log is written.
 * @user: The user that homad becomes after its start; if it is "", it stays who it is.
 * @file: The path of the file that the settings were read from, or "".
 */
struct homad_config {
	enum homad_mode mode;
	u32 cores[HOMAD_MAX_THREADS];
	u32 num_cores;
	struct homad_interfaces interfaces;
	struct homad_interfaces message;
	char address[64];
	int afxdp;
	int xdp_mode;
	bool udp;
	u16 udp_port;
	enum homad_bulk bulk;
	u32 bulk_min;
	u32 link_mbps;
	bool direct;
	u32 spin_us, spin_min_us, slice_us;
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

/** homad_config_default() - set @config to the settings without a file. */
void homad_config_default(struct homad_config *config);
/**
 * homad_tcp_conflict() - why [[tcp_rule]] cannot work with the other settings of @config
 * Returns a text for people; NULL if there is no such rule, or if it can.
 */
const char *homad_tcp_conflict(const struct homad_config *config);
/** homad_interfaces_conflict() - why network.interfaces of @config cannot be; NULL if it can. */
const char *homad_interfaces_conflict(const struct homad_config *config);
/** homad_message_conflict() - why network.message cannot work with the other settings of @config;
 *  NULL if it can. */
const char *homad_message_conflict(const struct homad_config *config);
/** homad_names() - is @name one of @in->names? */
bool homad_names(const struct homad_interfaces *in, const char *name);
/**
 * homad_config_load() - read a TOML file over @config
 * Every error is printed to @errors, one a line, "FILE:LINE: what is wrong and
 * how to mend it". Returns 0, or how many errors there were.
 */
int homad_config_load(struct homad_config *config, const char *file,
		      FILE *errors);

#endif
