// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The [[tcp_rule]] tables of the configuration: whose TCP connections homad takes. There
 * are none by default, because what homad takes passes by the kernel's packet filters.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config_load.h"

static void set_ports(struct homad_loader *l, const struct homad_toml_item *item,
		      u16 ports[2])
{
	const char *name = item->key + strlen("tcp_rule.");

	if (item->kind == HOMAD_TOML_EMPTY)
		return;
	if (item->kind != HOMAD_TOML_INTEGER || item->integer < 1 || item->integer > 65535 ||
	    item->count != 2) {
		if (item->index == 0 || item->count == 2)
			homad_complain(l, item->line,
				       "tcp_rule.%s must be [first, last] within 1 to 65535, or [] for none",
				       name);
		return;
	}
	ports[item->index] = (u16)item->integer;
	if (item->index == 1 && ports[0] > ports[1])
		homad_complain(l, item->line,
			       "tcp_rule.%s: the first port, %u, is above the last, %u", name,
			       ports[0], ports[1]);
}

/* "10.0.0.0/8", "2001:db8::/32", or an address alone. */
static bool parse_prefix(const char *text, u8 ip[16], u8 *prefix)
{
	char address[64], *slash, *end;
	unsigned long bits;
	bool v4;

	snprintf(address, sizeof(address), "%s", text);
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
	if (slash && (slash[1] < '0' || slash[1] > '9' || *end || bits > (v4 ? 32 : 128)))
		return false;
	*prefix = (u8)(slash && v4 ? bits + 96 : bits);
	return true;
}

static bool begin(struct homad_loader *l, const struct homad_toml_item *item)
{
	if (item->table >= HOMAD_MAX_TCP_RULES) {
		if (item->table == HOMAD_MAX_TCP_RULES && item->kind == HOMAD_TOML_TABLE)
			homad_complain(l, item->line, "at most %d tcp_rules are possible",
				       HOMAD_MAX_TCP_RULES);
		return false;
	}
	if (l->tcp_rule_lines[item->table])
		return true;
	if (item->kind != HOMAD_TOML_TABLE)
		homad_complain(l, item->line,
			       "TCP rules are tables: write [[tcp_rule]] on a line of its own, and below it user, group, listen, connect or to");
	l->tcp_rule_lines[item->table] = item->line;
	l->config->tcp_rules[item->table] = (struct homad_tcp_rule){ .who.any = true };
	l->config->num_tcp_rules = item->table + 1;
	return true;
}

bool homad_tcp_rule_item(struct homad_loader *l, const struct homad_toml_item *item)
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
		return false;
	}
	return true;
}
