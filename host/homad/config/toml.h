/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A TOML file as a list of scalars with their places, for C. Knows nothing of
 * what the values mean.
 *
 * Written by: the reader, one thread.
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
	HOMAD_TOML_TABLE, /* a table of an array begins, or a table is empty */
	HOMAD_TOML_EMPTY, /* an array without elements */
};

/**
 * struct homad_toml_item - a value
 * @key: Its dotted name, such as "threads.mode". In an array of tables the name does not say
 *	which of them it is.
 * @line: The line where it stands, counted from 1.
 * @table: In an array of tables, the number of the table, counted from 0.
 * @index: In an array of scalars, the number of the element, counted from 0.
 * @count: The length of that array; 0 if the value is not an element of an array.
 * @kind: Says which of the following fields holds the value.
 * @boolean: The value of HOMAD_TOML_BOOL.
 * @integer: The value of HOMAD_TOML_INTEGER.
 * @number: The value of HOMAD_TOML_FLOAT.
 * @string: The value of HOMAD_TOML_STRING, valid while the visitor is called.
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
 * @complain: Called for each line that is not TOML. The rest is read as if that line were
 *	empty, unless it opened a table.
 * Returns the number of such lines.
 */
int homad_toml_parse(const char *text, homad_toml_visitor *visit,
		     homad_toml_complain *complain, void *arg);

#ifdef __cplusplus
}
#endif

#endif
