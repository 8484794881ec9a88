// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The [[tcp_rule]] tables of the configuration: whose TCP connections homad takes, and how
 * much they may send. There are none by default, because what homad takes passes by the
 * kernel's packet filters.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "config_load.h"

/* The lowest and the highest rate of a limit, bit/s. */
#define LEAST_RATE 64000ull
#define MOST_RATE 100000000000ull
#define MOST_CONNECTIONS 1048576
/* The lowest rate of congestion = "constant", bytes/s. */
#define LEAST_CONSTANT 12500u

static void set_ports(struct homad_loader *l,
		      const struct homad_toml_item *item, u16 ports[2])
{
	const char *name = item->key + strlen("tcp_rule.");

	if (item->kind == HOMAD_TOML_EMPTY)
		return;
	if (item->kind != HOMAD_TOML_INTEGER || item->integer < 1 ||
	    item->integer > 65535 || item->count != 2) {
		if (item->index == 0 || item->count == 2)
			homad_complain(l, item->line,
				       "tcp_rule.%s must be [first, last] within 1 to 65535, or [] for none",
				       name);
		return;
	}
	ports[item->index] = (u16)item->integer;
	if (item->index == 1 && ports[0] > ports[1])
		homad_complain(l, item->line,
			       "tcp_rule.%s: the first port, %u, is above the last, %u",
			       name, ports[0], ports[1]);
}

/* Reads "10.0.0.0/8", "2001:db8::/32", or an address alone. */
static bool parse_prefix(const char *text, u8 ip[16], u8 *prefix)
{
	char address[64], *slash, *end;
	unsigned long bits;
	bool v4;

	if (strlen(text) >= sizeof(address))
		return false;
	memcpy(address, text, strlen(text) + 1);
	slash = strchr(address, '/');
	if (slash)
		*slash = '\0';
	memset(ip, 0, 16);
	v4 = inet_pton(AF_INET, address, ip + 12) == 1;
	if (v4)
		memset(ip + 10, 0xff, 2);
	else if (inet_pton(AF_INET6, address, ip) != 1)
		return false;
	bits = slash ? strtoul(slash + 1, &end, 10) : 128;
	if (slash &&
	    (slash[1] < '0' || slash[1] > '9' || *end || bits > (v4 ? 32 : 128)))
		return false;
	*prefix = (u8)(slash && v4 ? bits + 96 : bits);
	return true;
}

/* Reads "100 Mbit/s" or a number of bits a second, and gives bytes a second. */
static bool parse_rate(const struct homad_toml_item *item, u64 *rate)
{
	static const struct {
		/* The unit as it stands in the file. */
		const char *unit;
		/* The number of bits a second that it stands for. */
		u64 bits;
	} units[] = { { "bit/s", 1 },
		      { "kbit/s", 1000 },
		      { "Mbit/s", 1000000 },
		      { "Gbit/s", 1000000000 } };
	u64 bits = 0;
	char *end;
	u32 i;

	if (item->kind == HOMAD_TOML_INTEGER && item->integer > 0)
		bits = (u64)item->integer;
	if (item->kind == HOMAD_TOML_STRING && item->string[0] >= '0' &&
	    item->string[0] <= '9') {
		size_t digits = strspn(item->string, "0123456789.");
		double number = strtod(item->string, &end);

		/* strtod() takes hexadecimal numbers and exponents, too. */
		if (end != item->string + digits)
			return false;
		while (*end == ' ')
			end++;
		for (i = 0; i < HOMA_ARRAY_SIZE(units); i++)
			if (!strcmp(end, units[i].unit) && number <= 1e6)
				bits = (u64)(number * (double)units[i].bits + 0.5);
	}
	*rate = bits / 8;
	return !item->count && bits >= LEAST_RATE && bits <= MOST_RATE;
}

static void set_rate(struct homad_loader *l, const struct homad_toml_item *item,
		     u64 *rate)
{
	if (parse_rate(item, rate))
		return;
	*rate = 0;
	homad_complain(l, item->line,
		       "%s must be a rate such as \"100 Mbit/s\", with bit/s, kbit/s, Mbit/s or Gbit/s, from 64 kbit/s to 100 Gbit/s",
		       item->key);
}

static bool number_within(const struct homad_toml_item *item, s64 least, s64 most)
{
	return !item->count && item->kind == HOMAD_TOML_INTEGER &&
	       item->integer >= least && item->integer <= most;
}

static bool word_of(const struct homad_toml_item *item,
		    const char *const *words, u32 *number)
{
	if (item->count || item->kind != HOMAD_TOML_STRING)
		return false;
	for (*number = 0; words[*number]; ++*number)
		if (!strcmp(words[*number], item->string))
			return true;
	return false;
}

/* Takes a key that says how a rule's connections are treated; false if it is no such key. */
static bool treatment(struct homad_loader *l, const struct homad_toml_item *item,
		      const char *name, struct homad_tcp_rule *rule)
{
	static const char *const controls[] = {
		"newreno",    "dctcp",	"cubic",
		"dctcp-rate", "timely", [HOMAD_TCP_CONSTANT] = "constant",
		NULL
	};
	static const char *const sums[] = { "user", "rule", NULL };
	const char *wrong = NULL;
	u32 word = 0;

	if (!strcmp(name, ".deny")) {
		rule->deny = item->kind == HOMAD_TOML_BOOL && item->boolean;
		if (item->count || item->kind != HOMAD_TOML_BOOL)
			wrong = "true or false";
	} else if (!strcmp(name, ".send")) {
		set_rate(l, item, &rule->send);
	} else if (!strcmp(name, ".receive")) {
		set_rate(l, item, &rule->receive);
	} else if (!strcmp(name, ".connections")) {
		rule->connections = (u32)item->integer;
		if (!number_within(item, 1, MOST_CONNECTIONS))
			wrong = "a whole number from 1 to 1048576";
	} else if (!strcmp(name, ".limits")) {
		if (!word_of(item, sums, &word))
			wrong = "\"user\", for each user by itself, or \"rule\", for all of them together";
		rule->together = word == 1;
	} else if (!strcmp(name, ".congestion")) {
		if (!word_of(item, controls, &word))
			wrong = "\"newreno\", \"dctcp\", \"cubic\", \"dctcp-rate\", \"timely\" or \"constant\"";
		rule->congestion = (s8)word;
	} else if (!strcmp(name, ".rate")) {
		set_rate(l, item, &rule->rate);
		if (rule->rate && rule->rate < LEAST_CONSTANT)
			wrong = "at least 100 kbit/s";
	} else if (!strcmp(name, ".dscp")) {
		rule->dscp = (u8)item->integer;
		if (!number_within(item, 0, 63))
			wrong = "a whole number from 0 to 63";
	} else {
		return false;
	}
	if (wrong)
		homad_complain(l, item->line, "%s must be %s", item->key, wrong);
	return true;
}

static bool begin(struct homad_loader *l, const struct homad_toml_item *item)
{
	if (item->table >= HOMAD_MAX_TCP_RULES) {
		if (item->table == HOMAD_MAX_TCP_RULES &&
		    item->kind == HOMAD_TOML_TABLE)
			homad_complain(l, item->line,
				       "at most %d tcp_rules are possible",
				       HOMAD_MAX_TCP_RULES);
		return false;
	}
	if (l->tcp_rule_lines[item->table])
		return true;
	if (item->kind != HOMAD_TOML_TABLE)
		homad_complain(l, item->line,
			       "TCP rules are tables: write [[tcp_rule]] on a line of its own, and below it user, group, listen, connect or to");
	l->tcp_rule_lines[item->table] = item->line;
	l->config->tcp_rules[item->table] = (struct homad_tcp_rule){
		.who.any = true,
		.congestion = -1,
	};
	l->config->num_tcp_rules = item->table + 1;
	return true;
}

bool homad_tcp_rule_item(struct homad_loader *l,
			 const struct homad_toml_item *item)
{
	const char *name = item->key + strlen("tcp_rule");
	struct homad_tcp_rule *rule;

	if (!begin(l, item) || *name == '\0')
		return true;
	rule = &l->config->tcp_rules[item->table];
	if (!strcmp(name, ".user") || !strcmp(name, ".group")) {
		homad_config_who(l, item, name[1] == 'g', &rule->who,
				 &l->tcp_who_seen[item->table]);
	} else if (!strcmp(name, ".listen")) {
		set_ports(l, item, rule->listen);
	} else if (!strcmp(name, ".connect")) {
		set_ports(l, item, rule->connect);
	} else if (!strcmp(name, ".to")) {
		if (item->count || item->kind != HOMAD_TOML_STRING ||
		    !parse_prefix(item->string, rule->ip, &rule->prefix))
			homad_complain(l, item->line,
				       "tcp_rule.to must be addresses such as \"10.0.0.0/8\" or \"2001:db8::/32\"");
	} else {
		return treatment(l, item, name, rule);
	}
	return true;
}

void homad_tcp_rules_end(struct homad_loader *l)
{
	u32 i;

	for (i = 0; i < l->config->num_tcp_rules; i++) {
		const struct homad_tcp_rule *rule = &l->config->tcp_rules[i];

		if (rule->deny &&
		    (rule->send || rule->receive || rule->connections))
			homad_complain(l, l->tcp_rule_lines[i],
				       "a tcp_rule with deny = true lets nothing through that send, receive or connections could limit");
		if (rule->congestion == HOMAD_TCP_CONSTANT && !rule->rate)
			homad_complain(l, l->tcp_rule_lines[i],
				       "a tcp_rule with congestion = \"constant\" must say the rate: rate = \"100 Mbit/s\"");
		if (rule->congestion != HOMAD_TCP_CONSTANT && rule->rate)
			homad_complain(l, l->tcp_rule_lines[i],
				       "rate is the rate of congestion = \"constant\"; a limit, which other congestion controls may stay below, is send");
		if (rule->deny && !rule->listen[0] && !rule->connect[0])
			homad_complain(l, l->tcp_rule_lines[i],
				       "a tcp_rule with deny = true must say what: listen = [1, 65535], connect = [1, 65535], or both");
	}
}

const char *homad_tcp_conflict(const struct homad_config *config)
{
	if (!config->num_tcp_rules)
		return NULL;
	if (!config->afxdp ||
	    (!config->interfaces.automatic && !config->interfaces.num))
		return "TCP comes over AF_XDP only: network.afxdp must not be off (--udp-only), and network.interfaces not empty";
	if (config->message.num)
		return "TCP comes over AF_XDP only, and the threads that serve it serve no message NIC: empty network.message (and give no --message), or have no tcp_rule";
	return NULL;
}
