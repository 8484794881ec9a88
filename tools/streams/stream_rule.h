/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homa-streams: gives chosen programs stream sockets over Homa where they ask for TCP's.
 *
 * A rule says which programs. It is a small BPF program behind the kernel's hook
 * update_socket_protocol, and lasts until it is taken away or the machine starts again, because a
 * file in bpffs holds it. The name of that file says the rule, so that nothing else has to be
 * kept anywhere.
 */
#ifndef HOMA_STREAM_RULE_H
#define HOMA_STREAM_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel knows a thread by 15 characters and a 0. */
#define STREAMS_COMM 16
/* A name in bpffs, with a 0. */
#define STREAMS_NAME 256

/*
 * struct rule - which programs a rule chooses: those for which all hold that it names.
 * Written by: who reads the command line, or the name of a file; constant after that.
 * @cgroup: the id of a cgroup whose processes, and those of cgroups in it, are meant; 0: any.
 * @has_user: true if @user counts.
 * @user: the real user of the process, as the initial user namespace numbers it.
 * @program: the name that the kernel knows the thread by, filled up with 0; empty: any.
 * @cgroup_fd: the cgroup's folder, open while a rule is being made; else -1.
 */
struct rule {
	uint64_t cgroup;
	bool has_user;
	uint32_t user;
	char program[STREAMS_COMM];
	int cgroup_fd;
};

/* ---- rule.c ---- */

/** rule_init() - makes a rule that names nothing. */
void rule_init(struct rule *rule);
/** rule_cgroup() - the rule names the cgroup @path: a folder, what lies below cgroup2's, or the id
 *  of one that is gone; false: it has said why not. */
bool rule_cgroup(struct rule *rule, const char *path);
/** rule_user() - the rule names a user, by name or number; false: it has said why not. */
bool rule_user(struct rule *rule, const char *user);
/** rule_program() - the rule names a program; false: it has said why not. */
bool rule_program(struct rule *rule, const char *name);
/** rule_check() - may there be such a rule? false: it has said why not. */
bool rule_check(const struct rule *rule);
/** rule_to_name() - writes the name of the rule's file. */
void rule_to_name(const struct rule *rule, char name[STREAMS_NAME]);
/** rule_from_name() - reads it; false: no rule has that name. */
bool rule_from_name(struct rule *rule, const char *name);
/** rule_print() - says in a line what the rule chooses. */
void rule_print(const struct rule *rule);

/* ---- btf.c ---- */

/** btf_function() - returns the number by which programs for the kernel name its function @name;
 *  0: it has none of that name, or does not describe itself. */
uint32_t btf_function(const char *name);

/* ---- attach.c ---- */

/** attach_available() - can rules be made here? false: it has said why not. */
bool attach_available(void);
/** attach_rule() - makes the rule, and lets the file @path hold it; false: it has said why not. */
bool attach_rule(const struct rule *rule, const char *path);
/** attach_end() - removes the file, and returns when the rule holds no more; false: it has said
 *  why not. */
bool attach_end(const char *path);

/** complain() - writes a line to standard error, and errno's meaning if @error is not 0. */
void complain(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
