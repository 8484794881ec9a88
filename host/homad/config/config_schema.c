// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The table of the settings of the file; config_schema.h describes its columns. */
#include <stdlib.h>
#include <string.h>
#include "config_schema.h"
#include "homa_slice.h"

#define AT(field) offsetof(struct homad_config, field)
#define ROOM(field) sizeof(((struct homad_config *)0)->field)
#define KIB ((u64)1 << 10)
#define MIB ((u64)1 << 20)
#define GIB ((u64)1 << 30)
#define POOL_PAGE (64 * KIB)

#define BOOL(key, field, live, text) \
	{ key, HOMAD_SET_BOOL, AT(field), 0, 1, NULL, live, text }
#define NUMBER(key, field, min, max, live, text) \
	{ key, HOMAD_SET_NUMBER, AT(field), min, max, NULL, live, text }
#define HUNDREDTHS(key, field, min, max, live, text) \
	{ key, HOMAD_SET_HUNDREDTHS, AT(field), min, max, NULL, live, text }
#define SIZE(key, field, min, max, live, text) \
	{ key, HOMAD_SET_SIZE, AT(field), min, max, NULL, live, text }
#define CHOICE(key, field, words, live, text) \
	{ key, HOMAD_SET_CHOICE, AT(field), 0, 0, words, live, text }
#define TEXT(key, type, field, live, text) \
	{ key, type, AT(field), 0, ROOM(field), NULL, live, text }

static const char *const modes[] = { "shared", "dedicated", NULL };
static const char *const afxdp[] = { "off", "auto", "on", NULL };
static const char *const xdp_modes[] = { "auto", "generic", "native",
					 "zerocopy", NULL };
static const char *const bulk[] = { "auto", "off", "on", NULL };
static const char *const tcp_cc[] = { "newreno",    "dctcp",  "cubic",
				      "dctcp-rate", "timely", NULL };
static const char *const levels[] = { "error", "warning", "info", "debug", NULL };
static const char *const formats[] = { "text", "json", NULL };

const struct homad_setting homad_settings[] = {
	CHOICE("threads.mode", mode, modes, false,
	       "one fast-path thread that shares its core with applications, or a spinning one on each of cores"),
	{ "threads.cores", HOMAD_SET_CORES, AT(cores), 0, 65535, NULL, false,
	  "CPUs of the dedicated mode, such as [2, 3]" },
	NUMBER("threads.spin_us", spin_us, 0, 1000000, true,
	       "shared: longest polling without work before the thread sleeps, us"),
	NUMBER("threads.spin_min_us", spin_min_us, 0, 1000000, true,
	       "shared: the same where work is rare, and beside a process that never sleeps, us"),
	NUMBER("threads.slice_us", slice_us, 0, HOMA_SLICE_MAX_US, false,
	       "shared: for how long the scheduler lets the thread run beside others that have work, us; 0: as it likes"),
	BOOL("threads.scale", scale, false,
	     "dedicated: the number of threads that spin follows the load"),
	HUNDREDTHS("threads.scale_idle", scale_idle, 1, 1600, false,
		   "dedicated: a thread rests if more cores than this are idle in sum"),
	HUNDREDTHS("threads.scale_busy", scale_busy, 0, 1600, false,
		   "dedicated: a thread comes if fewer cores than this are idle in sum"),
	NUMBER("threads.scale_ms", scale_ms, 1, 60000, false,
	       "dedicated: how often that is looked at, ms"),

	{ "network.interfaces", HOMAD_SET_INTERFACES, AT(interfaces), 0, 1,
	  NULL, false,
	  "for AF_XDP, such as [\"eth0\"]; \"auto\": all that are up and can; []: none, UDP only" },
	{ "network.message", HOMAD_SET_INTERFACES, AT(message), 0, 0, NULL, false,
	  "of message NICs, such as [\"homa0\"], which cut and join Homa's packets; homad does not start without them" },
	TEXT("network.address", HOMAD_SET_STRING, address, false,
	     "local address to use, \"\": the interface's first"),
	CHOICE("network.afxdp", afxdp, afxdp, false,
	       "AF_XDP: auto uses it where it works and says why not elsewhere, on insists"),
	CHOICE("network.xdp_mode", xdp_mode, xdp_modes, false,
	       "how the XDP program hangs on the device; auto: generic on virtual devices, else native"),
	BOOL("network.udp", udp, false, "Homa in UDP, too"),
	{ "network.udp_port", HOMAD_SET_PORT, AT(udp_port), 1, 65535, NULL,
	  false, "our UDP port" },
	CHOICE("network.bulk", bulk, bulk, false,
	       "send long messages over UDP, whose segmentation offload is faster; auto: on virtual devices"),
	NUMBER("network.bulk_min", bulk_min, 1, 1000000, false,
	       "bytes from which a message is long"),
	BOOL("network.direct", direct, false,
	     "short RPCs between applications of this host go from memory to memory, without packets"),
	NUMBER("network.link_mbps", link_mbps, 0, 10000000, false,
	       "rate of the link for pacing, Mbit/s; 0: what the device says"),

	TEXT("attach.socket", HOMAD_SET_STRING, socket, false,
	     "where applications attach"),
	{ "attach.mode", HOMAD_SET_MODE, AT(socket_mode), 0, 0777, NULL, false,
	  "permissions of that socket, such as \"0660\"" },
	TEXT("attach.group", HOMAD_SET_GROUP, socket_group, false,
	     "group of that socket, \"\": our own"),

	NUMBER("quota.attachments", quota.attachments, 1, 16384, true,
	       "handles that one user may have open"),
	NUMBER("quota.total_attachments", quota.total_attachments, 1, 16384, true,
	       "handles of all users; one user gets as many as are left to all others, and a sixteenth is kept for root"),
	NUMBER("quota.rpcs", quota.rpcs, 1, 65536, true,
	       "requests that a handle may have open, and received requests it may leave unanswered"),
	NUMBER("quota.user_rpcs", quota.user_rpcs, 64, 16777216, true,
	       "requests that all handles of one user may have open; when they run short a handle gets fewer, at least 64"),
	NUMBER("quota.user_peers", quota.user_peers, 16, 600000, true,
	       "addresses, to which one user's programs were the first to send a request, that homad remembers; the next one takes the place of one without open RPCs"),
	SIZE("quota.rcvbuf_default", quota.rcvbuf_default, 2 * POOL_PAGE,
	     4 * GIB - POOL_PAGE, true,
	     "receive buffer of a handle that asks for none"),
	SIZE("quota.rcvbuf_max", quota.rcvbuf_max, 2 * POOL_PAGE,
	     4 * GIB - POOL_PAGE, true, "largest receive buffer of a handle"),
	SIZE("quota.send_max", quota.send_max, 4 * MIB, 64 * GIB, true,
	     "memory for messages to send of a handle"),
	SIZE("quota.user_memory", quota.user_memory, 16 * MIB, 16384 * GIB, true,
	     "memory of one user over all handles: shared memory, and copies of short messages on their way, for which a sixteenth is kept"),
	SIZE("quota.total_memory", quota.total_memory, 64 * MIB, 16384 * GIB, true,
	     "memory of all users, shared and copies; one user gets as much as is left to all others, a sixteenth is kept for root and one for copies"),
	NUMBER("quota.handover_s", quota.handover_s, 1, 3600, true,
	       "how long a handle waits for the process that it was handed over to, s; then it is closed"),

	NUMBER("tcp.streams", tcp_streams, 16, 65536, false,
	       "TCP connections that an application may have open; each has 8 KiB of its user's memory at least"),
	SIZE("tcp.receive_buffer", tcp_receive_buffer, 4 << 10, MIB, false,
	     "bytes to which the receive buffer of a connection grows from 4 KiB, a power of two; they count as its user's memory"),
	SIZE("tcp.send_buffer", tcp_send_buffer, 4 << 10, MIB, false,
	     "the same for the send buffer"),
	NUMBER("tcp.connections", tcp_connections, 64, 1048576, false,
	       "TCP connections of all, half-open and closing ones included; with several threads that serve TCP each gets an equal part"),
	NUMBER("tcp.ports", tcp_ports, 1, 60000, false,
	       "most local ports for TCP connections that applications open, taken from the kernel's as they are needed; as many may go to one peer's port, and each needs a descriptor, of which a quarter stay for programs that attach; threads get equal parts of them, too"),
	CHOICE("tcp.congestion", tcp_cc, tcp_cc, false,
	       "how TCP answers to loss and marks; dctcp and dctcp-rate are for networks whose switches mark early"),
	NUMBER("tcp.share", tcp_share, 1, 99, true,
	       "percent of a link that TCP gets while Homa has something to send there, too"),

	TEXT("monitor.socket", HOMAD_SET_STRING, monitor, false,
	     "where ./homa ss, top and trace ask, \"\": nowhere"),
	TEXT("monitor.group", HOMAD_SET_GROUP, monitor_group, false,
	     "group that may ask beside root and homad's own user"),
	TEXT("monitor.metrics", HOMAD_SET_STRING, metrics, false,
	     "Prometheus metrics: \"unix:PATH\", \"127.0.0.1:PORT\", \"\": none"),

	CHOICE("log.level", log_level, levels, true, "least important to log"),
	CHOICE("log.format", log_format, formats, true,
	       "lines for people, or a JSON object each"),

	TEXT("process.user", HOMAD_SET_USER, user, false,
	     "become this user after start, keeping the capabilities that are needed; \"\": stay"),
};
const u32 homad_num_settings = HOMA_ARRAY_SIZE(homad_settings);

const char *const homad_rule_keys[][2] = {
	{ "rule.user", "for this user, by name or number" },
	{ "rule.group", "for members of this group, by name or number" },
	{ "rule.allow", "whether they may attach (true)" },
	{ "rule.ports",
	  "server ports that they may bind, [first, last] within 1 to 32767; []: none" },
};
const char *const homad_tcp_rule_keys[][2] = {
	{ "tcp_rule.user", "for this user, by name or number" },
	{ "tcp_rule.group", "for members of this group, by name or number" },
	{ "tcp_rule.listen",
	  "ports at which homad takes their connections, [first, last]" },
	{ "tcp_rule.connect",
	  "ports to which homad takes their connections, [first, last]" },
	{ "tcp_rule.to",
	  "take only connections to these addresses, such as \"10.0.0.0/8\"" },
	{ "tcp_rule.deny", "refuse these connections with EACCES (false)" },
	{ "tcp_rule.send", "most that they send, such as \"100 Mbit/s\"" },
	{ "tcp_rule.receive",
	  "most that they receive, by the window, such as \"1 Gbit/s\"" },
	{ "tcp_rule.connections", "most connections that they have open at once" },
	{ "tcp_rule.limits",
	  "whether send, receive and connections are of each \"user\" or of the \"rule\", all users together (\"user\")" },
	{ "tcp_rule.congestion",
	  "\"newreno\", \"dctcp\", \"cubic\", \"dctcp-rate\" or \"timely\" instead of what tcp.congestion says; \"constant\": at rate, whatever is lost" },
	{ "tcp_rule.rate",
	  "with congestion = \"constant\": bytes of payload that each connection sends, such as \"100 Mbit/s\"" },
	{ "tcp_rule.dscp", "DSCP of their packets, 0 to 63 (0)" },
};
const u32 homad_num_tcp_rule_keys = HOMA_ARRAY_SIZE(homad_tcp_rule_keys);
const u32 homad_num_rule_keys = HOMA_ARRAY_SIZE(homad_rule_keys);

size_t homad_setting_size(const struct homad_setting *s)
{
	switch (s->type) {
	case HOMAD_SET_BOOL:
		return sizeof(bool);
	case HOMAD_SET_PORT:
		return sizeof(u16);
	case HOMAD_SET_SIZE:
		return sizeof(u64);
	case HOMAD_SET_MODE:
		return sizeof(mode_t);
	case HOMAD_SET_STRING:
	case HOMAD_SET_USER:
	case HOMAD_SET_GROUP:
		return s->max;
	case HOMAD_SET_CORES:
		return AT(num_cores) + sizeof(u32) - AT(cores);
	case HOMAD_SET_INTERFACES:
		return offsetof(struct homad_interfaces, automatic) +
		       sizeof(bool);
	default:
		return sizeof(u32);
	}
}

static void size_text(u64 bytes, char *text, size_t size)
{
	if (bytes && bytes % GIB == 0)
		snprintf(text, size, "%llu GiB",
			 (unsigned long long)(bytes / GIB));
	else if (bytes && bytes % MIB == 0)
		snprintf(text, size, "%llu MiB",
			 (unsigned long long)(bytes / MIB));
	else if (bytes && bytes % KIB == 0)
		snprintf(text, size, "%llu KiB",
			 (unsigned long long)(bytes / KIB));
	else
		snprintf(text, size, "%llu", (unsigned long long)bytes);
}

void homad_setting_range(const struct homad_setting *s, char *text, size_t size)
{
	char low[32], high[32];
	size_t used;
	u32 i;

	switch (s->type) {
	case HOMAD_SET_BOOL:
		snprintf(text, size, "true or false");
		break;
	case HOMAD_SET_HUNDREDTHS:
		snprintf(text, size, "a number from %u.%02u to %u.%02u",
			 (u32)s->min / 100, (u32)s->min % 100,
			 (u32)s->max / 100, (u32)s->max % 100);
		break;
	case HOMAD_SET_SIZE:
		size_text(s->min, low, sizeof(low));
		size_text(s->max, high, sizeof(high));
		snprintf(text, size,
			 "bytes or a text such as \"8 MiB\", from %s to %s",
			 low, high);
		break;
	case HOMAD_SET_CHOICE:
		used = (size_t)snprintf(text, size, "\"%s\"", s->choices[0]);
		for (i = 1; s->choices[i] && used < size; i++)
			used += (size_t)snprintf(text + used, size - used,
						 s->choices[i + 1] ? ", \"%s\"" :
								     " or \"%s\"",
						 s->choices[i]);
		break;
	case HOMAD_SET_STRING:
		snprintf(text, size, "a text of at most %llu characters",
			 (unsigned long long)s->max - 1);
		break;
	case HOMAD_SET_USER:
		snprintf(text, size, "the name of a user, or \"\"");
		break;
	case HOMAD_SET_GROUP:
		snprintf(text, size, "the name of a group, or \"\"");
		break;
	case HOMAD_SET_MODE:
		snprintf(text, size,
			 "octal digits as text, \"0000\" to \"0777\"");
		break;
	case HOMAD_SET_CORES:
		snprintf(text, size, "a list of at most %d CPU numbers",
			 HOMAD_MAX_THREADS);
		break;
	case HOMAD_SET_INTERFACES:
		snprintf(text, size, "a list of at most %d interface names%s",
			 HOMAD_MAX_PORTS - 1, s->max ? ", or \"auto\"" : "");
		break;
	default:
		snprintf(text, size, "a whole number from %llu to %llu",
			 (unsigned long long)s->min, (unsigned long long)s->max);
	}
}

static void list_value(const struct homad_setting *s,
		       const struct homad_config *c, char *text, size_t size)
{
	bool cores = s->type == HOMAD_SET_CORES;
	const struct homad_interfaces *in =
		(const void *)((const u8 *)c + s->offset);
	u32 i, n = cores ? c->num_cores : in->num;
	size_t used;

	if (!cores && in->automatic) {
		snprintf(text, size, "\"auto\"");
		return;
	}
	used = (size_t)snprintf(text, size, "[");
	for (i = 0; i < n && used < size; i++)
		used += cores ? (size_t)snprintf(text + used, size - used, "%s%u",
						 i ? ", " : "", c->cores[i]) :
				(size_t)snprintf(text + used, size - used,
						 "%s\"%s\"", i ? ", " : "",
						 in->names[i]);
	if (used < size)
		snprintf(text + used, size - used, "]");
}

void homad_setting_value(const struct homad_setting *s,
			 const struct homad_config *c, char *text, size_t size)
{
	const u8 *at = (const u8 *)c + s->offset;
	char number[32];
	u64 big;
	u32 value = 0;
	u16 port;

	if (homad_setting_size(s) == sizeof(value))
		memcpy(&value, at, sizeof(value));
	switch (s->type) {
	case HOMAD_SET_BOOL:
		snprintf(text, size, "%s", *at ? "true" : "false");
		break;
	case HOMAD_SET_PORT:
		memcpy(&port, at, sizeof(port));
		snprintf(text, size, "%u", port);
		break;
	case HOMAD_SET_HUNDREDTHS:
		snprintf(text, size, "%u.%02u", value / 100, value % 100);
		break;
	case HOMAD_SET_SIZE:
		memcpy(&big, at, sizeof(big));
		size_text(big, number, sizeof(number));
		snprintf(text, size, strchr(number, ' ') ? "\"%s\"" : "%s",
			 number);
		break;
	case HOMAD_SET_CHOICE:
		snprintf(text, size, "\"%s\"", s->choices[value]);
		break;
	case HOMAD_SET_STRING:
	case HOMAD_SET_USER:
	case HOMAD_SET_GROUP:
		snprintf(text, size, "\"%s\"", (const char *)at);
		break;
	case HOMAD_SET_MODE:
		snprintf(text, size, "\"%04o\"", value);
		break;
	case HOMAD_SET_CORES:
	case HOMAD_SET_INTERFACES:
		list_value(s, c, text, size);
		break;
	default:
		snprintf(text, size, "%u", value);
	}
}

static void print_table(FILE *out, const char *key, char *table, size_t size)
{
	const char *dot = strchr(key, '.');
	size_t length = (size_t)(dot - key);

	if (strlen(table) == length && !memcmp(table, key, length))
		return;
	snprintf(table, size, "%.*s", (int)length, key);
	fprintf(out, "\n[%s]\n", table);
}

bool homad_param_live(const struct homa_param_info *param)
{
	return strcmp(param->name, "max_rpcs") &&
	       strcmp(param->name, "max_peers");
}

void homad_config_help(FILE *out)
{
	struct homad_config *c = malloc(sizeof(*c));
	char value[1024], range[256], table[32] = "";
	u32 i;

	if (!c)
		return;
	homad_config_default(c);
	fprintf(out,
		"Settings of homad.toml with their defaults; * can be changed by a reload (SIGHUP).\n");
	for (i = 0; i < homad_num_settings; i++) {
		const struct homad_setting *s = &homad_settings[i];

		print_table(out, s->key, table, sizeof(table));
		homad_setting_value(s, c, value, sizeof(value));
		homad_setting_range(s, range, sizeof(range));
		fprintf(out, "%s %s = %s\n      %s; %s\n", s->live ? "*" : " ",
			strchr(s->key, '.') + 1, value, s->text, range);
	}
	fprintf(out,
		"\n[[rule]]    the first that matches decides; without user and group: everybody\n");
	for (i = 0; i < homad_num_rule_keys; i++)
		fprintf(out, "* %s\n      %s\n",
			strchr(homad_rule_keys[i][0], '.') + 1,
			homad_rule_keys[i][1]);
	fprintf(out,
		"\n[[tcp_rule]]    whose TCP connections homad takes, the first that matches decides; without one, nobody's\n");
	for (i = 0; i < homad_num_tcp_rule_keys; i++)
		fprintf(out, "* %s\n      %s\n",
			strchr(homad_tcp_rule_keys[i][0], '.') + 1,
			homad_tcp_rule_keys[i][1]);
	fprintf(out, "\n[protocol]\n");
	for (i = 0; i < homa_param_count; i++) {
		const struct homa_param_info *p = &homa_param_table[i];
		u32 now;

		memcpy(&now, (const u8 *)&c->params + p->offset, sizeof(now));
		fprintf(out, "%s %s = %u\n      %s; %s, %u to %u\n",
			homad_param_live(p) ? "*" : " ", p->name, now, p->text,
			p->unit, p->min, p->max);
	}
	free(c);
}
