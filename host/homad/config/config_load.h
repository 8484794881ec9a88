/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reading the configuration is spread over files; this is what they share. Written by: the one
 * thread that reads it. */
#ifndef HOMAD_CONFIG_LOAD_H
#define HOMAD_CONFIG_LOAD_H

#include "config.h"
#include "toml.h"

#define HOMAD_COMPLAINTS 64u

/**
 * struct homad_complaint - a mistake in the file
 * @line: The line of the mistake, counted from 1; 0 is the file as a whole.
 * @text: The sentence for the user.
 */
struct homad_complaint {
	u32 line;
	char text[320];
};

/**
 * struct homad_loader - a file being read
 * @config: The settings that the file is read into.
 * @complaints: The mistakes found so far.
 * @num: The number of entries of @complaints.
 * @num_rules: The number of [[rule]] tables seen so far.
 * @rule_lines: The line at which each [[rule]] begins, or 0 if it has not been seen.
 * @ports_wrong: A mistake in the ports of this [[rule]] has been complained of.
 * @who_seen: This [[rule]] has named a user or a group.
 * @rules: The rules seen so far, which take the place of the default ones at the end.
 * @tcp_rule_lines: The line at which each [[tcp_rule]] begins, or 0 if it has not been seen.
 * @tcp_who_seen: This [[tcp_rule]] has named a user or a group.
 * @lines: The line of each setting of homad_settings, or 0 if it is not in the file.
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

/** homad_complain() - note a mistake; mistakes beyond HOMAD_COMPLAINTS are dropped. */
void homad_complain(struct homad_loader *l, u32 line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** homad_rule_item() - take a value of a [[rule]]; returns false if there is no such key. */
bool homad_rule_item(struct homad_loader *l, const struct homad_toml_item *item);
/** homad_config_who() - take the user or group that a rule is for
 * @seen: The rule has named one before; set here.
 */
void homad_config_who(struct homad_loader *l, const struct homad_toml_item *item,
		      bool group, struct homad_who *who, bool *seen);
/** homad_tcp_rule_item() - take a value of a [[tcp_rule]]; false if there is no such key. */
bool homad_tcp_rule_item(struct homad_loader *l,
			 const struct homad_toml_item *item);
/** homad_tcp_rules_end() - complain of TCP rules that contradict themselves, after the whole
 *  file. */
void homad_tcp_rules_end(struct homad_loader *l);
/** homad_rules_end() - replace the default rules by those of the file, if any, after the
 * whole file. */
void homad_rules_end(struct homad_loader *l);

#endif
