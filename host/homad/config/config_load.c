// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Reading the configuration file. Whoever writes one wants to hear of every
 * mistake at once, in the order of the lines, with what would have been right;
 * so nothing stops at the first, and complaints are collected and sorted. What is
 * possible is in config_schema.c; rules are in config_rules.c.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include "config_load.h"
#include "config_schema.h"

#define MAX_FILE ((size_t)1 << 20)

/* ---- complaints ---- */

static void complain(void *arg, u32 line, const char *what)
{
	homad_complain(arg, line, "this is not TOML: %s", what);
}

static void print_complaints(struct homad_loader *l, const char *file,
			     FILE *errors)
{
	u32 i, best, left;

	for (left = l->num; left; left--) {
		for (i = best = 0; i < l->num; i++)
			if (l->complaints[i].line < l->complaints[best].line)
				best = i;
		fprintf(errors, "%s:%u: %s\n", file, l->complaints[best].line,
			l->complaints[best].text);
		l->complaints[best].line = UINT32_MAX;
	}
	if (l->num == HOMAD_COMPLAINTS)
		fprintf(errors, "%s:0: and perhaps more\n", file);
}

/* ---- unknown names ---- */

#define NAME 63u

/* Counts the insertions, deletions, changes and swaps of neighbours that make @b of @a. */
static u32 distance(const char *a, const char *b)
{
	u32 rows[3][NAME + 2], i, j, best;
	u32 n = homa_min_u32((u32)strlen(a), NAME);
	u32 m = homa_min_u32((u32)strlen(b), NAME);

	for (j = 0; j <= m; j++)
		rows[0][j] = j;
	for (i = 1; i <= n; i++) {
		u32 *row = rows[i % 3], *up = rows[(i + 2) % 3];
		const u32 *up2 = rows[(i + 1) % 3];

		row[0] = i;
		for (j = 1; j <= m; j++) {
			best = up[j - 1] + (a[i - 1] != b[j - 1]);
			best = homa_min_u32(best, up[j] + 1);
			best = homa_min_u32(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				best = homa_min_u32(best, up2[j - 2] + 1);
			row[j] = best;
		}
	}
	return rows[n % 3][m];
}

struct guess {
	/* The key that was not found. */
	const char *key;
	/* The known key that is most like it. */
	char best[NAME + 1];
	/* How unlike the two are; less is better. */
	u32 score;
};

static void consider(struct guess *g, const char *name, const char *prefix)
{
	const char *own = strrchr(g->key, '.');
	const char *last = strrchr(name, '.');
	char full[NAME + 1];
	u32 score;

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	score = distance(g->key, full);
	/* A key with the right name in another table is a good guess, too. */
	if (strcmp(own ? own + 1 : g->key, last ? last + 1 : name) == 0)
		score = homa_min_u32(score, 1);
	if (score < g->score) {
		g->score = score;
		memcpy(g->best, full, sizeof(full));
	}
}

static void unknown(struct homad_loader *l, const struct homad_toml_item *item)
{
	struct guess g = { .key = item->key };
	u32 i;

	g.score = 2 + (u32)strlen(item->key) / 5;
	for (i = 0; i < homad_num_settings; i++)
		consider(&g, homad_settings[i].key, "");
	for (i = 0; i < homad_num_rule_keys; i++)
		consider(&g, homad_rule_keys[i][0], "");
	for (i = 0; i < homad_num_tcp_rule_keys; i++)
		consider(&g, homad_tcp_rule_keys[i][0], "");
	for (i = 0; i < homa_param_count; i++)
		consider(&g, homa_param_table[i].name, "protocol.");
	if (g.best[0])
		homad_complain(l, item->line,
			       "there is no setting %s; did you mean %s?",
			       item->key, g.best);
	else
		homad_complain(l, item->line,
			       "there is no setting %s; homad --config-help lists them all",
			       item->key);
}

/* ---- values ---- */

static bool parse_size(const struct homad_toml_item *item, u64 *out)
{
	static const char *const units[] = { "", "KIB", "MIB", "GIB" };
	char *end, unit[8] = "";
	unsigned long long value;
	u32 i, n = 0;

	if (item->kind == HOMAD_TOML_INTEGER) {
		*out = (u64)item->integer;
		return item->integer >= 0;
	}
	if (item->kind != HOMAD_TOML_STRING || item->string[0] < '0' ||
	    item->string[0] > '9')
		return false;
	errno = 0;
	value = strtoull(item->string, &end, 10);
	while (*end == ' ')
		end++;
	for (; *end && n + 1 < sizeof(unit); end++)
		unit[n++] = (char)(*end >= 'a' && *end <= 'z' ? *end - 32 : *end);
	for (i = 0; i < HOMA_ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i]) || *end || errno ||
		    value >> (54 - 10 * i) >= 256)
			continue;
		*out = (u64)value << (10 * i);
		return true;
	}
	return false;
}

static bool parse_mode(const struct homad_toml_item *item, mode_t *mode)
{
	size_t length;

	if (item->kind != HOMAD_TOML_STRING)
		return false;
	length = strlen(item->string);
	if (length < 3 || length > 4 ||
	    strspn(item->string, "01234567") != length ||
	    (length == 4 && item->string[0] != '0'))
		return false;
	*mode = (mode_t)strtoul(item->string, NULL, 8);
	return true;
}

static bool set_text(const struct homad_setting *s,
		     const struct homad_toml_item *item, void *to)
{
	size_t length;

	if (item->kind != HOMAD_TOML_STRING)
		return false;
	length = strlen(item->string);
	if (length >= s->max)
		return false;
	if (s->type == HOMAD_SET_USER && length && !getpwnam(item->string))
		return false;
	if (s->type == HOMAD_SET_GROUP && length && !getgrnam(item->string))
		return false;
	memset(to, 0, s->max);
	memcpy(to, item->string, length);
	return true;
}

static bool set_choice(const struct homad_setting *s,
		       const struct homad_toml_item *item, void *to)
{
	u32 i;

	if (item->kind != HOMAD_TOML_STRING)
		return false;
	for (i = 0; s->choices[i]; i++) {
		if (strcmp(s->choices[i], item->string) == 0) {
			memcpy(to, &i, sizeof(i));
			return true;
		}
	}
	return false;
}

static bool set_cores(struct homad_config *c, const struct homad_toml_item *item)
{
	c->num_cores = item->index;
	if (item->kind == HOMAD_TOML_EMPTY)
		return true;
	if (!item->count || item->kind != HOMAD_TOML_INTEGER ||
	    item->index >= HOMAD_MAX_THREADS || item->integer < 0 ||
	    item->integer > 65535)
		return false;
	c->cores[c->num_cores++] = (u32)item->integer;
	return true;
}

static bool set_interfaces(struct homad_interfaces *in, bool may_be_auto,
			   const struct homad_toml_item *item)
{
	size_t length;

	in->num = item->index;
	in->automatic = may_be_auto && item->kind == HOMAD_TOML_STRING &&
			!item->count && strcmp(item->string, "auto") == 0;
	if (in->automatic || item->kind == HOMAD_TOML_EMPTY)
		return true;
	if (!item->count || item->kind != HOMAD_TOML_STRING ||
	    item->index >= HOMA_ARRAY_SIZE(in->names))
		return false;
	length = strlen(item->string);
	if (!length || length >= sizeof(in->names[0]))
		return false;
	memset(in->names[in->num], 0, sizeof(in->names[0]));
	memcpy(in->names[in->num++], item->string, length);
	return true;
}

static bool set_number(const struct homad_setting *s,
		       const struct homad_toml_item *item, void *to)
{
	double scaled;
	u32 value;
	u16 port;

	if (s->type == HOMAD_SET_HUNDREDTHS) {
		if (item->kind == HOMAD_TOML_FLOAT)
			scaled = item->number * 100 + 0.5;
		else if (item->kind == HOMAD_TOML_INTEGER)
			scaled = (double)item->integer * 100;
		else
			return false;
		if (!(scaled >= (double)s->min && scaled < (double)s->max + 1))
			return false;
		value = (u32)scaled;
		memcpy(to, &value, sizeof(value));
		return true;
	}
	if (item->kind != HOMAD_TOML_INTEGER || item->integer < (s64)s->min ||
	    item->integer > (s64)s->max)
		return false;
	value = (u32)item->integer;
	port = (u16)value;
	if (s->type == HOMAD_SET_PORT)
		memcpy(to, &port, sizeof(port));
	else
		memcpy(to, &value, sizeof(value));
	return true;
}

static bool set_value(const struct homad_setting *s,
		      const struct homad_toml_item *item, struct homad_config *c)
{
	u8 *to = (u8 *)c + s->offset;
	u64 bytes;

	if (item->kind == HOMAD_TOML_OTHER || item->kind == HOMAD_TOML_TABLE)
		return false;
	if (s->type == HOMAD_SET_CORES)
		return set_cores(c, item);
	if (s->type == HOMAD_SET_INTERFACES)
		return set_interfaces((void *)to, s->max, item);
	if (item->count)
		return false;
	switch (s->type) {
	case HOMAD_SET_BOOL:
		if (item->kind == HOMAD_TOML_BOOL)
			*(bool *)to = item->boolean;
		return item->kind == HOMAD_TOML_BOOL;
	case HOMAD_SET_SIZE:
		if (!parse_size(item, &bytes) || bytes < s->min || bytes > s->max)
			return false;
		memcpy(to, &bytes, sizeof(bytes));
		return true;
	case HOMAD_SET_MODE:
		return parse_mode(item, (mode_t *)to);
	case HOMAD_SET_CHOICE:
		return set_choice(s, item, to);
	case HOMAD_SET_STRING:
	case HOMAD_SET_USER:
	case HOMAD_SET_GROUP:
		return set_text(s, item, to);
	default:
		return set_number(s, item, to);
	}
}

/* ---- items ---- */

static void protocol(struct homad_loader *l, const struct homad_toml_item *item)
{
	const char *name = item->key + strlen("protocol.");
	const struct homa_param_info *p;
	u32 i;

	for (i = 0; i < homa_param_count; i++) {
		p = &homa_param_table[i];
		if (strcmp(p->name, name))
			continue;
		if (item->kind == HOMAD_TOML_INTEGER && !item->count &&
		    item->integer >= p->min && item->integer <= p->max &&
		    !homa_param_set(&l->config->params, name, (u32)item->integer))
			return;
		homad_complain(l, item->line,
			       "%s must be a whole number from %u to %u (%s): %s",
			       item->key, p->min, p->max, p->unit, p->text);
		return;
	}
	unknown(l, item);
}

static bool is_table(const char *key)
{
	size_t length = strlen(key);
	u32 i;

	if (strcmp(key, "protocol") == 0)
		return true;
	for (i = 0; i < homad_num_settings; i++)
		if (!strncmp(homad_settings[i].key, key, length) &&
		    homad_settings[i].key[length] == '.')
			return true;
	return false;
}

static void visit(void *arg, const struct homad_toml_item *item)
{
	struct homad_loader *l = arg;
	char range[256];
	u32 i;

	if (strncmp(item->key, "rule", 4) == 0 &&
	    (item->key[4] == '.' || item->key[4] == '\0')) {
		if (!homad_rule_item(l, item))
			unknown(l, item);
		return;
	}
	if (strncmp(item->key, "tcp_rule", 8) == 0 &&
	    (item->key[8] == '.' || item->key[8] == '\0')) {
		if (!homad_tcp_rule_item(l, item))
			unknown(l, item);
		return;
	}
	if (strncmp(item->key, "protocol.", 9) == 0) {
		protocol(l, item);
		return;
	}
	for (i = 0; i < homad_num_settings; i++) {
		const struct homad_setting *s = &homad_settings[i];

		if (strcmp(s->key, item->key))
			continue;
		l->lines[i] = item->line;
		if (set_value(s, item, l->config))
			return;
		homad_setting_range(s, range, sizeof(range));
		homad_complain(l, item->line, "%s must be %s: %s", s->key,
			       range, s->text);
		return;
	}
	if (item->kind != HOMAD_TOML_TABLE || !is_table(item->key))
		unknown(l, item);
}

/* ---- what must fit together ---- */

static u32 line_of(const struct homad_loader *l, const char *key)
{
	u32 i;

	for (i = 0; i < homad_num_settings; i++)
		if (strcmp(homad_settings[i].key, key) == 0)
			return l->lines[i];
	return 0;
}

static void together(struct homad_loader *l, bool wrong, const char *a,
		     const char *b, const char *what)
{
	u32 line = homa_max_u32(line_of(l, a), line_of(l, b));

	/* If neither setting is in the file, both have their defaults, which fit
	 * together. */
	if (wrong && line)
		homad_complain(l, line, "%s", what);
}

/* Lower defaults that the file does not name to limits that it names. */
static void follow(struct homad_loader *l)
{
	struct homad_config *c = l->config;

	if (!line_of(l, "threads.spin_min_us"))
		c->spin_min_us = homa_min_u32(c->spin_min_us, c->spin_us);
	if (!line_of(l, "quota.rcvbuf_default"))
		c->quota.rcvbuf_default = homa_min_u64(c->quota.rcvbuf_default,
						       c->quota.rcvbuf_max);
}

bool homad_names(const struct homad_interfaces *in, const char *name)
{
	for (u32 i = 0; i < in->num; i++)
		if (!strcmp(in->names[i], name))
			return true;
	return false;
}

static bool names_twice(const struct homad_interfaces *in)
{
	u32 i, j;

	for (i = 0; i < in->num; i++)
		for (j = 0; j < i; j++)
			if (!strcmp(in->names[i], in->names[j]))
				return true;
	return false;
}

const char *homad_interfaces_conflict(const struct homad_config *config)
{
	if (!config->interfaces.automatic && names_twice(&config->interfaces))
		return "an interface is named twice in network.interfaces";
	return NULL;
}

const char *homad_message_conflict(const struct homad_config *config)
{
	const struct homad_interfaces *in = &config->message;
	u32 i;

	for (i = 0; i < in->num; i++) {
		if (!config->interfaces.automatic &&
		    homad_names(&config->interfaces, in->names[i]))
			return "an interface is in network.interfaces, for AF_XDP, and in network.message: name it in one of them";
	}
	if (names_twice(in))
		return "an interface is named twice in network.message";
	if (in->num > 1 && config->address[0])
		return "network.address is the address of one interface, and network.message has several";
	return NULL;
}

static void check_together(struct homad_loader *l)
{
	const struct homad_config *c = l->config;
	const struct homad_quota *q = &c->quota;

	together(l, c->spin_min_us > c->spin_us, "threads.spin_us",
		 "threads.spin_min_us",
		 "threads.spin_min_us must not be above threads.spin_us");
	together(l, c->scale_busy >= c->scale_idle, "threads.scale_idle",
		 "threads.scale_busy",
		 "threads.scale_busy must be below threads.scale_idle");
	together(l, q->rcvbuf_default > q->rcvbuf_max, "quota.rcvbuf_default",
		 "quota.rcvbuf_max",
		 "quota.rcvbuf_default must not be above quota.rcvbuf_max");
	together(l, q->rcvbuf_default % 65536 != 0, "quota.rcvbuf_default",
		 "quota.rcvbuf_default",
		 "quota.rcvbuf_default must be a multiple of 64 KiB");
	together(l, q->rcvbuf_max % 65536 != 0, "quota.rcvbuf_max",
		 "quota.rcvbuf_max",
		 "quota.rcvbuf_max must be a multiple of 64 KiB");
	together(l, c->socket[0] == '\0', "attach.socket", "attach.socket",
		 "attach.socket must be a path");
	together(l,
		 !c->udp && !c->message.num &&
			 (c->afxdp == 0 ||
			  (!c->interfaces.automatic && !c->interfaces.num)),
		 "network.udp", "network.afxdp",
		 "without network.udp there must be an interface for AF_XDP or a message NIC: set network.udp = true, or network.afxdp and network.interfaces, or network.message");
	if (homad_tcp_conflict(c))
		homad_complain(l, l->tcp_rule_lines[0], "%s",
			       homad_tcp_conflict(c));
	together(l, homad_interfaces_conflict(c) != NULL, "network.interfaces",
		 "network.interfaces", homad_interfaces_conflict(c));
	together(l, homad_message_conflict(c) != NULL, "network.message",
		 c->message.num > 1 ? "network.address" : "network.interfaces",
		 homad_message_conflict(c));
	together(l, c->mode == HOMAD_DEDICATED && !c->num_cores, "threads.mode",
		 "threads.cores",
		 "threads.mode = \"dedicated\" needs CPUs of its own in threads.cores");
}

/* ---- the file ---- */

static char *read_file(const char *file, FILE *errors)
{
	FILE *in = fopen(file, "re");
	char *text = in ? malloc(MAX_FILE + 1) : NULL;
	size_t n = text ? fread(text, 1, MAX_FILE + 1, in) : 0;
	const char *why = NULL;

	if (!in || (text && ferror(in)))
		why = strerror(errno);
	else if (!text)
		why = "out of memory";
	else if (n > MAX_FILE)
		why = "it is larger than 1 MiB";
	else if (memchr(text, '\0', n))
		why = "it is no text";
	if (in)
		fclose(in);
	if (!why) {
		text[n] = '\0';
		return text;
	}
	fprintf(errors, "%s:0: cannot read the configuration: %s\n", file, why);
	free(text);
	return NULL;
}

int homad_config_load(struct homad_config *config, const char *file, FILE *errors)
{
	struct homad_loader *l;
	char *text;
	int rc;

	text = read_file(file, errors);
	if (!text)
		return 1;
	l = calloc(1, sizeof(*l) + homad_num_settings * sizeof(*l->lines));
	if (!l) {
		free(text);
		fprintf(errors, "%s:0: out of memory\n", file);
		return 1;
	}
	l->config = config;
	homad_toml_parse(text, visit, complain, l);
	homad_rules_end(l);
	homad_tcp_rules_end(l);
	follow(l);
	if (!l->num)
		check_together(l);
	print_complaints(l, file, errors);
	snprintf(config->file, sizeof(config->file), "%s", file);
	rc = (int)l->num;
	free(l);
	free(text);
	return rc;
}
