/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Every setting of the file, once: what it is called, what it may be, where it
 * goes and what it does. The reader of the file, --config-help, the manual page
 * and reloading all go by this table.
 *
 * Written by: nobody; the table is a constant.
 */
#ifndef HOMAD_CONFIG_SCHEMA_H
#define HOMAD_CONFIG_SCHEMA_H

#include "config.h"

enum homad_setting_type {
	HOMAD_SET_BOOL,	      /* bool */
	HOMAD_SET_NUMBER,     /* u32 */
	HOMAD_SET_PORT,	      /* u16 */
	HOMAD_SET_HUNDREDTHS, /* u32: a number with a fraction, times 100 */
	HOMAD_SET_SIZE,	      /* u64: bytes, or "8 MiB" */
	HOMAD_SET_CHOICE,     /* int: index of a word in @choices */
	HOMAD_SET_STRING,     /* char[@max] */
	HOMAD_SET_MODE,	      /* mode_t: "0660" */
	HOMAD_SET_USER,	      /* char[@max]: a user that exists, or "" */
	HOMAD_SET_GROUP,      /* char[@max]: a group that exists, or "" */
	HOMAD_SET_CORES,      /* homad_config.cores */
	HOMAD_SET_INTERFACES, /* struct homad_interfaces; @max is 1 if it may be automatic */
};

/**
 * struct homad_setting - a setting of the file
 * @key: Its name in the file, "table.name".
 * @type: What it may be, and of what type its field is.
 * @offset: The offset of its field in struct homad_config, bytes.
 * @min: The lowest value of a number.
 * @max: The highest value of a number; the size of the field of a string, bytes.
 * @choices: The words that stand for 0, 1 and so on, with NULL at the end.
 * @live: A reload changes it in a running homad.
 * @text: What it does, for the help and for complaints.
 */
struct homad_setting {
	const char *key;
	enum homad_setting_type type;
	size_t offset;
	u64 min, max;
	const char *const *choices;
	bool live;
	const char *text;
};

extern const struct homad_setting homad_settings[];
extern const u32 homad_num_settings;

/* The keys of a [[rule]], each with what it does, for suggestions and help. */
extern const char *const homad_rule_keys[][2];
extern const u32 homad_num_rule_keys;
/* The keys of a [[tcp_rule]], in the same form. */
extern const char *const homad_tcp_rule_keys[][2];
extern const u32 homad_num_tcp_rule_keys;

/**
 * homad_setting_size() - return the size of the setting's field in struct homad_config,
 * bytes.
 */
size_t homad_setting_size(const struct homad_setting *setting);
/**
 * homad_setting_range() - write what the value may be, such as "a whole number from 0 to
 * 100".
 */
void homad_setting_range(const struct homad_setting *setting, char *text,
			 size_t size);
/**
 * homad_setting_value() - write the setting's value in @config as it would stand in the
 * file.
 */
void homad_setting_value(const struct homad_setting *setting,
			 const struct homad_config *config, char *text,
			 size_t size);
/** homad_param_live() - can this setting of the protocol change while homad serves? The
 *  limits of RPCs and peers cannot, because memory for them is made at the start. */
bool homad_param_live(const struct homa_param_info *param);
/** homad_config_help() - write all settings with their defaults, for people. */
void homad_config_help(FILE *out);

#endif
