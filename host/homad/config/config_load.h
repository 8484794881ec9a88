/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the reader of the configuration and that of its rules share. */
#ifndef HOMAD_CONFIG_LOAD_H
#define HOMAD_CONFIG_LOAD_H

#include "config.h"
#include "toml.h"

#define HOMAD_COMPLAINTS 64u

struct homad_complaint {
	u32 line;
	char text[320];
};

/**
 * struct homad_loader - a file being read
 * @rule_lines: of each rule, 0: none seen. @ports_wrong: that was said.
 * @who_seen: it has user or group. @tcp_rule_lines, @tcp_who_seen: the same of TCP rules.
 * @lines: where each setting of homad_settings stands, 0: not in the file.
 */
struct homad_loader {
	struct homad_config *config;
	struct homad_complaint complaints[HOMAD_COMPLAINTS];
	u32 num;
	u32 num_rules;
	u32 rule_lines[HOMAD_MAX_RULES];
	bool ports_wrong[HOMAD_MAX_RULES];
	bool who_seen[HOMAD_MAX_RULES];
	struct homad_rule rules[HOMAD_MAX_RULES];
	u32 tcp_rule_lines[HOMAD_MAX_TCP_RULES];
	bool tcp_who_seen[HOMAD_MAX_TCP_RULES];
	u32 lines[];
};

void homad_complain(struct homad_loader *l, u32 line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** homad_rule_item() - something of a [[rule]]; false: no such key. */
bool homad_rule_item(struct homad_loader *l, const struct homad_toml_item *item);
/** homad_config_who() - the user or group that a rule is for; @seen: it has one already. */
void homad_config_who(struct homad_loader *l, const struct homad_toml_item *item,
		      bool group, struct homad_who *who, bool *seen);
/** homad_tcp_rule_item() - something of a [[tcp_rule]]; false: no such key. */
bool homad_tcp_rule_item(struct homad_loader *l,
			 const struct homad_toml_item *item);
/** homad_tcp_rules_end() - all were seen: do their keys fit together? */
void homad_tcp_rules_end(struct homad_loader *l);
/** homad_rules_end() - all were seen: they take the place of the default ones. */
void homad_rules_end(struct homad_loader *l);

#endif
