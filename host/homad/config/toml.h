/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A TOML file as a list of scalars with their places, for C. Knows nothing of
 * what the values mean.
 */
#ifndef HOMAD_TOML_H
#define HOMAD_TOML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum homad_toml_kind {
	HOMAD_TOML_BOOL,
	HOMAD_TOML_INTEGER,
	HOMAD_TOML_FLOAT,
	HOMAD_TOML_STRING,
	HOMAD_TOML_OTHER, /* date, time, nested array */
	HOMAD_TOML_TABLE, /* a table of an array begins, or an empty one */
	HOMAD_TOML_EMPTY, /* an array without elements */
};

/**
 * struct homad_toml_item - a value
 * @key: dotted, "threads.mode"; without the number in arrays of tables.
 * @line: where it is, from 1.
 * @table: which table of an array of tables it is in, from 0.
 * @index, @count: which element of an array of @count scalars; @count 0: none.
 */
struct homad_toml_item {
	const char *key;
	uint32_t line;
	uint32_t table;
	uint32_t index, count;
	enum homad_toml_kind kind;
	bool boolean;
	int64_t integer;
	double number;
	const char *string;
};

typedef void homad_toml_visitor(void *arg, const struct homad_toml_item *item);
typedef void homad_toml_complain(void *arg, uint32_t line, const char *what);

/**
 * homad_toml_parse() - visit every value of a text, tables in alphabetical order
 * @complain: told of each line that is no TOML; the rest is read as if the line
 *	were empty, as far as that makes sense.
 * Returns how often that was.
 */
int homad_toml_parse(const char *text, homad_toml_visitor *visit,
		     homad_toml_complain *complain, void *arg);

#ifdef __cplusplus
}
#endif

#endif
