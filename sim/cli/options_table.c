// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Every option of homa-sim: its name, its value, a line for --help, and the
 * function that takes it in.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim_options.h"
#include "units.h"

#define ERR char *err, size_t errlen

static int complain(ERR, const char *flag, const char *arg, const char *wanted)
{
	snprintf(err, errlen, "--%s: '%.60s' is not %s", flag, arg, wanted);
	return -EINVAL;
}

/* An option that is one quantity: a function that parses it into a member. */
#define TIME_FLAG(name, flag, member)                                   \
	static int name(struct sim_options *o, const char *arg, ERR)    \
	{                                                               \
		if (sim_parse_time(arg, &o->member))                    \
			return 0;                                       \
		return complain(err, errlen, flag, arg,                 \
				"a time such as 250ns, 1.5us or 20ms"); \
	}
#define RATE_FLAG(name, flag, member)                                               \
	static int name(struct sim_options *o, const char *arg, ERR)                \
	{                                                                           \
		if (sim_parse_rate(arg, &o->member))                                \
			return 0;                                                   \
		return complain(err, errlen, flag, arg,                             \
				"a rate such as 10gbit or 400mbit, at most 8tbit"); \
	}
#define BYTES_FLAG(name, flag, member)                                 \
	static int name(struct sim_options *o, const char *arg, ERR)   \
	{                                                              \
		if (sim_parse_bytes(arg, &o->member))                  \
			return 0;                                      \
		return complain(err, errlen, flag, arg,                \
				"a size such as 36864, 64kb or 1MiB"); \
	}
#define NUMBER_FLAG(name, flag, member, min, max)                           \
	static int name(struct sim_options *o, const char *arg, ERR)        \
	{                                                                   \
		u64 value;                                                  \
                                                                            \
		if (sim_parse_number(arg, max, &value) && value >= (min)) { \
			o->member = (u32)value;                             \
			return 0;                                           \
		}                                                           \
		return complain(err, errlen, flag, arg,                     \
				"a whole number from " #min " to " #max);   \
	}
#define TEXT_FLAG(name, member)                                      \
	static int name(struct sim_options *o, const char *arg, ERR) \
	{                                                            \
		(void)err;                                           \
		(void)errlen;                                        \
		o->member = arg;                                     \
		return 0;                                            \
	}
#define BOOL_FLAG(name, member)                                      \
	static int name(struct sim_options *o, const char *arg, ERR) \
	{                                                            \
		(void)arg;                                           \
		(void)err;                                           \
		(void)errlen;                                        \
		o->member = true;                                    \
		return 0;                                            \
	}

RATE_FLAG(set_link, "link", cfg.host_mbps)
RATE_FLAG(set_fabric, "fabric", cfg.fabric_mbps)
TIME_FLAG(set_link_delay, "link-delay", cfg.host_prop_ps)
TIME_FLAG(set_fabric_delay, "fabric-delay", cfg.fabric_prop_ps)
TIME_FLAG(set_switch_delay, "switch-delay", cfg.switch_ps)
TIME_FLAG(set_send_delay, "send-delay", cfg.send_ps)
TIME_FLAG(set_receive_delay, "receive-delay", cfg.recv_ps)
TIME_FLAG(set_htb_burst, "htb-burst", cfg.burst_ps)
TIME_FLAG(set_drain, "drain", cfg.drain_ps)
TIME_FLAG(set_warm_start, "warm-start", warm_start)
TIME_FLAG(set_trace_from, "trace-from", trace_from)
TIME_FLAG(set_trace_until, "trace-until", trace_until)
BYTES_FLAG(set_port_buffer, "port-buffer", cfg.port_bytes)
BYTES_FLAG(set_shared_buffer, "shared-buffer", cfg.shared_bytes)
BYTES_FLAG(set_ecn, "ecn", cfg.ecn_bytes)
NUMBER_FLAG(set_hosts, "hosts", hosts, 2, 65535)
NUMBER_FLAG(set_per_rack, "hosts-per-rack", per_rack, 1, 65535)
NUMBER_FLAG(set_trim, "trim-packets", cfg.trim_packets, 1, 1000000)
NUMBER_FLAG(set_closed, "closed", cfg.closed, 1, 100000)
NUMBER_FLAG(set_servers, "servers", cfg.servers, 1, 65534)
NUMBER_FLAG(set_cores, "cores", cfg.software.cores, 1, 256)
NUMBER_FLAG(set_mtu, "mtu", cfg.mtu, 256, 9216)
TEXT_FLAG(set_json, json)
TEXT_FLAG(set_trace, trace)
TEXT_FLAG(set_pcap, pcap)
TEXT_FLAG(set_record, record)
TEXT_FLAG(set_label, label)
BOOL_FLAG(set_cut_through, cfg.cut_through)
BOOL_FLAG(set_shaped, cfg.shaped)
BOOL_FLAG(set_quiet, quiet)
BOOL_FLAG(set_abort, abort_unstable)
BOOL_FLAG(set_against, against_oracle)

/* The flag was handled before all others, in sim_options_parse(). */
static int set_earlier(struct sim_options *o, const char *arg, ERR)
{
	(void)o;
	(void)arg;
	(void)err;
	(void)errlen;
	return 0;
}

#define SET_FLAG(name, flag, member, given, min, max)                             \
	static int name(struct sim_options *o, const char *arg, ERR)              \
	{                                                                         \
		u64 value;                                                        \
                                                                                  \
		if (!sim_parse_number(arg, max, &value) || value < (min))         \
			return complain(err, errlen, flag, arg,                   \
					"a whole number from " #min " to " #max); \
		o->cfg.member = (u32)value;                                       \
		o->given = true;                                                  \
		return 0;                                                         \
	}

SET_FLAG(set_racks, "racks", racks, racks_set, 1, 2048)
SET_FLAG(set_spines, "spines", spines, spines_set, 1, 2048)
SET_FLAG(set_k, "k", k, k_set, 2, 40)

static int set_warmup(struct sim_options *o, const char *arg, ERR)
{
	o->warmup_set = true;
	if (sim_parse_time(arg, &o->cfg.warmup_ps))
		return 0;
	return complain(err, errlen, "warmup", arg, "a time such as 5ms");
}

static int set_measure(struct sim_options *o, const char *arg, ERR)
{
	o->measure_set = true;
	if (sim_parse_time(arg, &o->cfg.measure_ps))
		return 0;
	return complain(err, errlen, "measure", arg, "a time such as 20ms");
}

/* Returns the number of @arg among @words, which end with NULL, or -1 if it is none of them. */
static int choice(const char *arg, const char *const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(arg, words[i]))
			return i;
	return -1;
}

#define CHOICE_FLAG(name, flag, member, kind, list, ...)                         \
	static int name(struct sim_options *o, const char *arg, ERR)             \
	{                                                                        \
		static const char *const words[] = { __VA_ARGS__, NULL };        \
		int n = choice(arg, words);                                      \
                                                                                 \
		if (n < 0)                                                       \
			return complain(err, errlen, flag, arg, "one of " list); \
		o->member = (kind)n;                                             \
		return 0;                                                        \
	}

CHOICE_FLAG(set_topology, "topology", cfg.topology, enum sim_topology,
	    "one-switch, leaf-spine, fat-tree", "one-switch", "leaf-spine", "fat-tree")
CHOICE_FLAG(set_balance, "balance", cfg.balance, enum sim_balance, "spray, ecmp", "spray",
	    "ecmp")
CHOICE_FLAG(set_queue, "queue", cfg.queue, enum sim_queue_kind, "priority, rank, trim",
	    "priority", "rank", "trim")
CHOICE_FLAG(set_headers, "headers", cfg.sigcomm_headers, bool, "true, sigcomm18", "true",
	    "sigcomm18")
CHOICE_FLAG(set_mode, "mode", cfg.rpc, bool, "oneway, rpc", "oneway", "rpc")
CHOICE_FLAG(set_load_kind, "load-kind", cfg.load_kind, enum sim_load_kind,
	    "wire, payload", "wire", "payload")

static int set_alpha(struct sim_options *o, const char *arg, ERR)
{
	double value;

	if (!sim_parse_real(arg, 1.0 / 256, 1e6, &value))
		return complain(err, errlen, "shared-alpha", arg,
				"a number from 0.00390625 to 1000000");
	o->cfg.shared_alpha = (u32)(value * 256 + 0.5);
	return 0;
}

static int set_loss(struct sim_options *o, const char *arg, ERR)
{
	double value;

	if (!sim_parse_real(arg, 0, 0.5, &value))
		return complain(err, errlen, "loss", arg, "a probability from 0 to 0.5");
	o->cfg.loss_ppm = (u32)(value * 1e6 + 0.5);
	return 0;
}

static int set_load(struct sim_options *o, const char *arg, ERR)
{
	if (!sim_parse_real(arg, 0, 10, &o->cfg.load))
		return complain(err, errlen, "load", arg,
				"a number from 0 to 10, such as 0.8");
	return 0;
}

static int set_stop_growth(struct sim_options *o, const char *arg, ERR)
{
	if (!sim_parse_real(arg, 0, 10, &o->stop_growth))
		return complain(err, errlen, "stop-growth", arg,
				"a number from 0 to 10, such as 0.04");
	return 0;
}

static int set_seed(struct sim_options *o, const char *arg, ERR)
{
	if (!sim_parse_number(arg, 1ull << 53, &o->cfg.seed))
		return complain(err, errlen, "seed", arg,
				"a whole number from 0 to 9007199254740992");
	return 0;
}

static int set_max_messages(struct sim_options *o, const char *arg, ERR)
{
	if (!sim_parse_number(arg, 1ull << 53, &o->cfg.max_messages))
		return complain(err, errlen, "max-messages", arg, "a whole number");
	return 0;
}

static int set_cut(struct sim_options *o, const char *arg, ERR)
{
	u64 value;

	if (!sim_parse_bytes(arg, &value) || value < 1 || value > UINT32_MAX)
		return complain(err, errlen, "cut", arg,
				"a size from 1 to 4294967295 such as 1mb");
	o->cfg.cut = (u32)value;
	return 0;
}

static int set_apart(struct sim_options *o, const char *arg, ERR)
{
	u64 host;

	if (!sim_parse_number(arg, 65534, &host))
		return complain(err, errlen, "apart", arg, "the number of a host, from 0");
	o->cfg.apart = (u32)host + 1;
	return 0;
}

static int set_response(struct sim_options *o, const char *arg, ERR)
{
	u64 value;

	if (!sim_parse_bytes(arg, &value) || value < 1 || value > 0x7fffffff)
		return complain(err, errlen, "response-size", arg,
				"a size from 1 to 2147483647 such as 10kb");
	o->cfg.response = (u32)value;
	return 0;
}

static int set_path(char *to, size_t size, const char *flag, const char *arg, ERR)
{
	if (!*arg)
		return complain(err, errlen, flag, arg, "a name");
	if (strlen(arg) < size) {
		strcpy(to, arg);
		return 0;
	}
	snprintf(err, errlen, "--%s: the name is longer than %zu characters", flag,
		 size - 1);
	return -EINVAL;
}

static int set_workload(struct sim_options *o, const char *arg, ERR)
{
	return set_path(o->cfg.workload, sizeof(o->cfg.workload), "workload", arg, err,
			errlen);
}

static int set_arrivals(struct sim_options *o, const char *arg, ERR)
{
	return set_path(o->cfg.arrivals, sizeof(o->cfg.arrivals), "arrivals", arg, err,
			errlen);
}

/* Copies @arg to @copy and cuts it into @n parts at colons, of which the first may be
 * @first instead. */
static bool split(const char *arg, char *copy, size_t size, char first, char **part, u32 n)
{
	char *at;
	u32 i;

	if (strlen(arg) >= size)
		return false;
	strcpy(copy, arg);
	part[0] = copy;
	for (i = 1; i < n; i++) {
		at = strchr(part[i - 1], i == 1 ? first : ':');
		if (!at)
			return false;
		*at = '\0';
		part[i] = at + 1;
	}
	return !strchr(part[n - 1], ':');
}

static int set_incast(struct sim_options *o, const char *arg, ERR)
{
	char copy[128], *part[3];
	u64 n, bytes, period;

	if (!split(arg, copy, sizeof(copy), ':', part, 3) ||
	    !sim_parse_number(part[0], 65534, &n) || !n ||
	    !sim_parse_bytes(part[1], &bytes) || !bytes || bytes > 0x7fffffff ||
	    !sim_parse_time(part[2], &period) || !period)
		return complain(err, errlen, "incast", arg,
				"SENDERS:BYTES:PERIOD such as 32:20kb:1ms");
	o->cfg.incast = (u32)n;
	o->cfg.incast_bytes = (u32)bytes;
	o->cfg.incast_ps = period;
	return 0;
}

static int set_fail(struct sim_options *o, const char *arg, ERR)
{
	struct sim_config *cfg = &o->cfg;
	u64 node, peer, from, until;
	char copy[128], *part[4];

	if (cfg->num_failures == SIM_MAX_FAILURES) {
		snprintf(err, errlen, "--fail: more than %d failures", SIM_MAX_FAILURES);
		return -EINVAL;
	}
	if (!split(arg, copy, sizeof(copy), '-', part, 4) ||
	    !sim_parse_number(part[0], UINT32_MAX, &node) ||
	    !sim_parse_number(part[1], UINT32_MAX, &peer) ||
	    !sim_parse_time(part[2], &from) || !sim_parse_time(part[3], &until) ||
	    until <= from)
		return complain(err, errlen, "fail", arg,
				"NODE-NODE:FROM:UNTIL such as 144-153:1ms:2ms, the end after the beginning");
	cfg->failures[cfg->num_failures++] = (struct sim_failure){
		.node = (u32)node, .peer = (u32)peer, .from = from, .until = until
	};
	return 0;
}

static int set_cost(struct sim_options *o, const char *arg, ERR)
{
	const char *equals = strchr(arg, '=');
	char name[64];
	u64 value;

	if (!equals || (size_t)(equals - arg) >= sizeof(name))
		return complain(err, errlen, "cost", arg, "NAME=VALUE");
	memcpy(name, arg, (size_t)(equals - arg));
	name[equals - arg] = '\0';
	if (sim_parse_number(equals + 1, UINT32_MAX, &value) &&
	    sim_cost_set(&o->cfg.software, name, value))
		return 0;
	return complain(err, errlen, "cost", arg,
			"a cost and a value that it can have; --list shows them all");
}

static int set_offload(struct sim_options *o, const char *arg, ERR)
{
	static const char *const words[] = { "none",	"rss", "lso",
					     "rss+lso", "lro", "rss+lro",
					     "lso+lro", "all", NULL };
	int n = choice(arg, words);

	if (n < 0)
		return complain(err, errlen, "offload", arg,
				"one of none, rss, lso, lro, rss+lso, rss+lro, lso+lro, all");
	o->cfg.software.offload = (u32)n; /* bits of enum sim_offload */
	return 0;
}

static int set_progress(struct sim_options *o, const char *arg, ERR)
{
	u64 value;

	if (!sim_parse_number(arg, 65535, &value))
		return complain(err, errlen, "progress", arg, "a file descriptor's number");
	o->progress = (int)value;
	return 0;
}

static const struct sim_option *option_find(const struct sim_transport *t,
					    const char *name, u32 *index)
{
	u32 i;

	for (i = 0; t->options && t->options[i].name; i++) {
		if (!strcmp(t->options[i].name, name)) {
			*index = i;
			return &t->options[i];
		}
	}
	return NULL;
}

static int set_setting(struct sim_options *o, const char *arg, ERR)
{
	const struct sim_transport *t = o->cfg.transport;
	const struct sim_option *option;
	char name[64];
	const char *equals = strchr(arg, '=');
	u64 value;
	u32 i;

	if (!equals || equals == arg || (size_t)(equals - arg) >= sizeof(name) ||
	    !sim_parse_bytes(equals + 1, &value))
		return complain(err, errlen, "set", arg, "NAME=VALUE with a whole number");
	memcpy(name, arg, (size_t)(equals - arg));
	name[equals - arg] = '\0';
	option = option_find(t, name, &i);
	if (!option) {
		if (t->set && !t->set(&o->cfg, name, value))
			return 0;
		snprintf(err, errlen,
			 "--set: %s has no setting '%s' that can be %llu; homa-sim --list shows them all",
			 t->name, name, (unsigned long long)value);
		return -EINVAL;
	}
	if (value < option->min || value > option->max) {
		snprintf(err, errlen, "--set %s: %llu is not from %llu to %llu (%s)",
			 name, (unsigned long long)value, (unsigned long long)option->min,
			 (unsigned long long)option->max, option->unit);
		return -EINVAL;
	}
	o->cfg.option[i] = value;
	return 0;
}

const struct sim_flag sim_flags[] = {
	{ "WHO SENDS", NULL, NULL, NULL },
	{ "protocol", "NAME",
	  "homa is the engine of this project; see --list for the others", set_earlier },
	{ "preset", "NAME",
	  "the protocol's settings of a published study (default: its first)", set_earlier },
	{ "set", "NAME=VALUE",
	  "a setting of the protocol, may be repeated; --list has all", set_setting },
	{ "WHAT IS SENT", NULL, NULL, NULL },
	{ "workload", "W", "message sizes: w1 .. w5, fixed:BYTES or a CSV file (w4)",
	  set_workload },
	{ "load", "F", "part of each host's link, 0 .. 1 and above (0.8)", set_load },
	{ "load-kind", "KIND",
	  "wire: all bytes on the wire count; payload: only messages' (wire)",
	  set_load_kind },
	{ "mode", "MODE",
	  "oneway messages, or rpc: each is answered by as many bytes (oneway)", set_mode },
	{ "closed", "N",
	  "with --mode rpc: each client keeps N RPCs under way (--load says when they come)",
	  set_closed },
	{ "servers", "N",
	  "with --closed: the first N hosts only answer, the others only ask (all do both)",
	  set_servers },
	{ "response-size", "BYTES",
	  "with --mode rpc and --arrivals: of each response (as its request)",
	  set_response },
	{ "apart", "HOST",
	  "messages from and to this host are counted by themselves (none)", set_apart },
	{ "cut", "BYTES", "longer messages are cut to this (never)", set_cut },
	{ "arrivals", "FILE", "a recorded trace instead: lines time_ns,src,dst,bytes",
	  set_arrivals },
	{ "incast", "N:B:PERIOD",
	  "in addition, every PERIOD N random hosts send B bytes to one", set_incast },
	{ "max-messages", "N", "create no more than N", set_max_messages },
	{ "seed", "N", "same seed and options: same result (1)", set_seed },
	{ "HOW LONG (simulated time)", NULL, NULL, NULL },
	{ "warmup", "T", "not measured (5ms)", set_warmup },
	{ "warm-start", "T",
	  "begin with what the oracle leaves unfinished after so long (0)", set_warm_start },
	{ "measure", "T", "messages created in this time are measured (20ms)", set_measure },
	{ "drain", "T",
	  "at most so long to finish them (1s); the load stays on for the first part",
	  set_drain },
	{ "abort-unstable", NULL, "end when the network clearly cannot carry the load",
	  set_abort },
	{ "against-oracle", NULL,
	  "run the oracle first; stable: the backlog grows no faster than its",
	  set_against },
	{ "stop-growth", "F",
	  "end after a third if the backlog grew by more, itself and above the oracle's",
	  set_stop_growth },
	{ "NETWORK", NULL, NULL, NULL },
	{ "topology", "NAME", "one-switch, leaf-spine or fat-tree (leaf-spine)",
	  set_topology },
	{ "hosts", "N", "hosts (144)", set_hosts },
	{ "racks", "N", "leaf-spine: racks (9)", set_racks },
	{ "hosts-per-rack", "N", "leaf-spine: hosts in each (16)", set_per_rack },
	{ "spines", "N", "leaf-spine: switches that join the racks (4)", set_spines },
	{ "k", "N", "fat-tree: its parameter; k^3/4 hosts (8)", set_k },
	{ "link", "RATE", "of host links (10gbit)", set_link },
	{ "fabric", "RATE", "of links between switches (40gbit)", set_fabric },
	{ "link-delay", "T", "propagation on a host link (0)", set_link_delay },
	{ "fabric-delay", "T", "propagation between switches (0)", set_fabric_delay },
	{ "switch-delay", "T", "a switch's own delay per packet (250ns)", set_switch_delay },
	{ "send-delay", "T", "a sending host's software and NIC (1us)", set_send_delay },
	{ "receive-delay", "T", "a receiving host's (500ns)", set_receive_delay },
	{ "cut-through", NULL, "switches send on before they have the whole packet",
	  set_cut_through },
	{ "shaped", NULL,
	  "links let a packet go when its time on them begins, as Linux' HTB does",
	  set_shaped },
	{ "htb-burst", "T",
	  "with --shaped: after a pause the next packet may begin up to T early, and "
	  "--port-buffer counts 24 bytes less of each packet, both as Linux' HTB (0: neither)",
	  set_htb_burst },
	{ "balance", "HOW",
	  "spray: any path for each packet; ecmp: one for each flow (protocol's)",
	  set_balance },
	{ "queue", "KIND", "of switch ports: priority, rank or trim (protocol's)",
	  set_queue },
	{ "port-buffer", "BYTES", "limit of each port's queue, 0: none (protocol's)",
	  set_port_buffer },
	{ "shared-buffer", "BYTES",
	  "buffer shared by a switch's ports, 0: none (protocol's)", set_shared_buffer },
	{ "shared-alpha", "F", "a port may hold F times what is free of it (1)", set_alpha },
	{ "ecn", "BYTES", "mark packets that find so much queued, 0: never (protocol's)",
	  set_ecn },
	{ "trim-packets", "N", "queue trim: whole packets held (8)", set_trim },
	{ "loss", "P", "each link loses a packet with this probability (0)", set_loss },
	{ "fail", "A-B:FROM:UNTIL",
	  "the link between two nodes is down; hosts count from 0, switches follow",
	  set_fail },
	{ "mtu", "N", "IP packets' greatest length (1500)", set_mtu },
	{ "headers", "MODEL",
	  "sigcomm18: header sizes of that study; true: the real ones (preset's)",
	  set_headers },
	{ "SOFTWARE OF HOSTS", NULL, NULL, NULL },
	{ "cores", "N",
	  "of each host, on which its software queues (software only takes time)",
	  set_cores },
	{ "cost", "NAME=VALUE", "a cost of software, may be repeated; --list has all",
	  set_cost },
	{ "offload", "WHICH",
	  "what the network card does: none, all, or rss, lso, lro joined by + (none)",
	  set_offload },
	{ "RESULT", NULL, NULL, NULL },
	{ "json", "FILE",
	  "write the whole result (-: standard output) instead of a summary", set_json },
	{ "label", "TEXT", "kept in the result", set_label },
	{ "trace", "FILE", "write a trace for the Perfetto UI", set_trace },
	{ "pcap", "FILE", "write a capture for Wireshark", set_pcap },
	{ "record", "FILE", "write the arrivals, as --arrivals reads them", set_record },
	{ "trace-from", "T", "both only from here (0)", set_trace_from },
	{ "trace-until", "T", "to here (the end)", set_trace_until },
	{ "progress", "FD",
	  "write lines 'simulated_ns end_ns messages wall_ms' to this descriptor",
	  set_progress },
	{ "quiet", NULL, "print no summary", set_quiet },
	{ "list", NULL, "print protocols, presets and settings as JSON", set_earlier },
	{ "help", NULL, "print this", set_earlier },
	{ "version", NULL, "print the version", set_earlier },
	{ NULL, NULL, NULL, NULL },
};
