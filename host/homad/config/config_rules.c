// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The [[rule]] tables of the configuration: who may attach, and which ports they
 * may bind. One rule in the file is enough for the default ones to be gone:
 * otherwise nobody could forbid anything.
 */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config_load.h"

#define LAST_PORT 32767

static bool lookup(const char *name, bool group, u32 *id)
{
	const struct passwd *user;
	const struct group *entry;

	if (group) {
		entry = getgrnam(name);
		*id = entry ? entry->gr_gid : 0;
		return entry;
	}
	user = getpwnam(name);
	*id = user ? user->pw_uid : 0;
	return user;
}

void homad_config_who(struct homad_loader *l, const struct homad_toml_item *item,
		      bool group, struct homad_who *who, bool *seen)
{
	const char *what = group ? "group" : "user";

	if (*seen)
		homad_complain(l, item->line,
			       "a rule is for a user or for a group; make two rules of this one");
	*seen = true;
	who->any = false;
	who->by_gid = group;
	if (!item->count && item->kind == HOMAD_TOML_INTEGER &&
	    item->integer >= 0 && item->integer < UINT32_MAX) {
		who->id = (u32)item->integer;
		return;
	}
	if (item->count || item->kind != HOMAD_TOML_STRING)
		homad_complain(l, item->line,
			       "%s must be the name or the number of a %s",
			       item->key, what);
	else if (!lookup(item->string, group, &who->id))
		homad_complain(l, item->line, "there is no %s %s", what,
			       item->string);
}

static void set_ports(struct homad_loader *l, const struct homad_toml_item *item)
{
	struct homad_rule *rule = &l->rules[item->table];
	bool *wrong = &l->ports_wrong[item->table];

	if (item->kind == HOMAD_TOML_EMPTY) {
		rule->port_min = rule->port_max = 0;
		return;
	}
	if (*wrong)
		return; /* the complaint was made at the first wrong element */
	if (item->kind != HOMAD_TOML_INTEGER || item->integer < 1 ||
	    item->integer > LAST_PORT || item->count != 2) {
		*wrong = true;
		homad_complain(l, item->line,
			       "rule.ports must be [first, last] within 1 to %d, or [] for none",
			       LAST_PORT);
		return;
	}
	if (item->index == 0)
		rule->port_min = (u16)item->integer;
	else
		rule->port_max = (u16)item->integer;
	if (item->index == 1 && rule->port_min > rule->port_max)
		homad_complain(l, item->line,
			       "rule.ports: the first port, %u, is above the last, %u",
			       rule->port_min, rule->port_max);
}

static void no_rule(struct homad_loader *l, const struct homad_toml_item *item)
{
	homad_complain(l, item->line,
		       "rules are tables: write [[rule]] on a line of its own, and below it user, group, allow or ports");
}

static bool begin(struct homad_loader *l, const struct homad_toml_item *item)
{
	if (item->table >= HOMAD_MAX_RULES) {
		if (item->table == HOMAD_MAX_RULES &&
		    item->kind == HOMAD_TOML_TABLE)
			homad_complain(l, item->line,
				       "at most %d rules are possible; one for a group can stand for many users",
				       HOMAD_MAX_RULES);
		return false;
	}
	if (l->rule_lines[item->table])
		return true;
	/* A [[rule]] is announced before its contents, a [rule] is not. */
	if (item->kind != HOMAD_TOML_TABLE)
		no_rule(l, item);
	l->rule_lines[item->table] = item->line;
	l->rules[item->table] = (struct homad_rule){
		.who.any = true,
		.allow = true,
		.port_min = 1024,
		.port_max = LAST_PORT,
	};
	l->num_rules = item->table + 1;
	return true;
}

bool homad_rule_item(struct homad_loader *l, const struct homad_toml_item *item)
{
	const char *name = item->key + strlen("rule");

	if (*name == '\0' && item->kind != HOMAD_TOML_TABLE) {
		homad_complain(l, item->line,
			       "rules are tables: write [[rule]] on a line of its own, and below it user, group, allow or ports");
		return true;
	}
	if (!begin(l, item) || *name == '\0')
		return true;
	if (strcmp(name, ".user") == 0) {
		homad_config_who(l, item, false, &l->rules[item->table].who,
				 &l->who_seen[item->table]);
	} else if (strcmp(name, ".group") == 0) {
		homad_config_who(l, item, true, &l->rules[item->table].who,
				 &l->who_seen[item->table]);
	} else if (strcmp(name, ".allow") == 0) {
		if (item->kind == HOMAD_TOML_BOOL && !item->count)
			l->rules[item->table].allow = item->boolean;
		else
			homad_complain(l, item->line,
				       "rule.allow must be true or false");
	} else if (strcmp(name, ".ports") == 0) {
		set_ports(l, item);
	} else {
		return false;
	}
	return true;
}

void homad_rules_end(struct homad_loader *l)
{
	if (!l->num_rules)
		return;
	memcpy(l->config->rules, l->rules, sizeof(l->rules));
	l->config->num_rules = l->num_rules;
}
