// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Reading the configuration again. The new one is read whole into memory of its
 * own; if anything is wrong with it, nothing happens but a line in the log for
 * each mistake. Else what the table of settings calls live is taken over one by
 * one and the rest is said to need a restart, so that nobody believes a change
 * that has not happened. Rules and quotas hold for whatever is asked from now on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "admin.h"
#include "config_schema.h"
#include "copies.h"
#include "homa_clock.h"
#include "log.h"
#include "notify.h"
#include "homad_options.h"
#include "reload.h"
#include "tcp_slow.h"

/* The settings as they were read; in homad.config, homad_start() fills in what it finds. */
static struct homad_config *loaded;

void homad_reload_init(const struct homad *d)
{
	loaded = malloc(sizeof(*loaded));
	if (loaded)
		*loaded = d->config;
}

void homad_reload_free(void)
{
	free(loaded);
	loaded = NULL;
}

static bool differs(const struct homad_setting *s, const struct homad_config *a,
		    const struct homad_config *b)
{
	char left[1024], right[1024];

	/* The values are compared as text, for bytes behind the end of a string do not
	 * count. */
	homad_setting_value(s, a, left, sizeof(left));
	homad_setting_value(s, b, right, sizeof(right));
	return strcmp(left, right) != 0;
}

static void take_settings(struct homad *d, const struct homad_config *new)
{
	char value[1024];
	u32 i;

	for (i = 0; i < homad_num_settings; i++) {
		const struct homad_setting *s = &homad_settings[i];

		if (!differs(s, loaded, new))
			continue;
		homad_setting_value(s, new, value, sizeof(value));
		if (!s->live) {
			homad_log(HOMAD_WARNING,
				  "a setting has changed in the file and needs a restart\tsetting=%s value=%s",
				  s->key, value);
			continue;
		}
		memcpy((u8 *)&d->config + s->offset,
		       (const u8 *)new + s->offset, homad_setting_size(s));
		memcpy((u8 *)loaded + s->offset, (const u8 *)new + s->offset,
		       homad_setting_size(s));
		homad_log(HOMAD_INFO, "setting changed\tsetting=%s value=%s",
			  s->key, value);
	}
}

static void take_rules(struct homad *d, const struct homad_config *new)
{
	if (loaded->num_rules == new->num_rules &&
	    !memcmp(loaded->rules, new->rules,
		    new->num_rules * sizeof(*new->rules)))
		return;
	memcpy(d->config.rules, new->rules, sizeof(new->rules));
	memcpy(loaded->rules, new->rules, sizeof(new->rules));
	d->config.num_rules = loaded->num_rules = new->num_rules;
	homad_log(HOMAD_INFO, "rules changed\trules=%u", new->num_rules);
}

/* Takes new TCP rules; open connections stay open, under the limits that they have now. */
static void take_tcp_rules(struct homad *d, const struct homad_config *new)
{
	if (loaded->num_tcp_rules == new->num_tcp_rules &&
	    !memcmp(loaded->tcp_rules, new->tcp_rules,
		    new->num_tcp_rules * sizeof(*new->tcp_rules)))
		return;
	if (!d->config.num_tcp_rules) {
		homad_log(HOMAD_WARNING,
			  "the first TCP rules in the file need a restart\ttcp_rules=%u",
			  new->num_tcp_rules);
		return;
	}
	memcpy(d->config.tcp_rules, new->tcp_rules, sizeof(new->tcp_rules));
	memcpy(loaded->tcp_rules, new->tcp_rules, sizeof(new->tcp_rules));
	d->config.num_tcp_rules = loaded->num_tcp_rules = new->num_tcp_rules;
	homad_policies_change(d);
	homad_log(HOMAD_INFO, "TCP rules changed\ttcp_rules=%u",
		  new->num_tcp_rules);
}

static int respin(struct homad_thread *t, void *arg)
{
	const struct homad_config *c = arg;

	homa_spin_init(&t->spin, c->spin_min_us * 1000ull, c->spin_us * 1000ull,
		       t->ctx.now);
	return 0;
}

/* Tells the threads, each of which has a copy of the polling times. */
static void take_spin(struct homad *d, u32 spin_us, u32 spin_min_us)
{
	u32 i;

	if (d->config.spin_us == spin_us && d->config.spin_min_us == spin_min_us)
		return;
	for (i = 0; i < d->num_threads; i++)
		homad_call(d->threads[i], respin, &d->config);
}

/* Tells the links, each of which has a copy of TCP's share. */
static void take_share(struct homad *d, u32 share)
{
	u32 i;

	for (i = 0; d->config.tcp_share != share && i < d->num_threads; i++)
		homad_call(d->threads[i], homad_egress_share, NULL);
}

static u32 *param(struct homad_config *c, const struct homa_param_info *info)
{
	return (u32 *)((u8 *)&c->params + info->offset);
}

static void take_params(struct homad *d, struct homad_config *new)
{
	bool changed = false;
	u32 i;
	int rc;

	for (i = 0; i < homa_param_count; i++) {
		const struct homa_param_info *p = &homa_param_table[i];
		u32 value = *param(new, p);

		if (*param(loaded, p) == value)
			continue;
		if (!homad_param_live(p)) {
			homad_log(HOMAD_WARNING,
				  "a setting has changed in the file and needs a restart\tsetting=protocol.%s value=%u",
				  p->name, value);
			*param(new, p) = *param(loaded, p);
			continue;
		}
		changed = true;
		homad_log(HOMAD_INFO,
			  "setting changed\tsetting=protocol.%s value=%u",
			  p->name, value);
	}
	if (!changed)
		return;
	/* Settings are read everywhere in the engine. */
	rc = homad_call_alone(d, homad_set_params, &new->params);
	if (rc) {
		homad_log(HOMAD_ERROR,
			  "the engine refuses the settings of the protocol together; they stay as they were\terror=%d",
			  -rc);
		return;
	}
	loaded->params = d->config.params = new->params;
}

static bool read_again(struct homad_config *new, int argc, char **argv)
{
	char *text = NULL, *line, *save = NULL;
	size_t size = 0;
	FILE *errors = open_memstream(&text, &size);
	int rc = errors ? homad_options_again(new, argc, argv, errors) : -1;

	if (errors)
		fclose(errors);
	for (line = rc && text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		homad_log(HOMAD_ERROR, "%s", line);
	free(text);
	return rc == 0;
}

/* Takes the new settings; this runs on the control thread, which uses them. */
static void take(struct homad *d, void *arg)
{
	u32 spin_us = d->config.spin_us, spin_min_us = d->config.spin_min_us;
	u32 share = d->config.tcp_share;
	struct homad_config *new = arg;

	take_settings(d, new);
	homad_copies_limit(d);
	homad_users_limit(d);
	take_spin(d, spin_us, spin_min_us);
	take_share(d, share);
	take_rules(d, new);
	take_tcp_rules(d, new);
	take_params(d, new);
	homad_log_init(d->config.log_level, d->config.log_format);
}

void homad_reload(struct homad *d, int argc, char **argv)
{
	struct homad_config *new = malloc(sizeof(*new));
	char text[96];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)(homa_clock_ns() / 1000));
	homad_notify(text);
	if (!new || !loaded || !read_again(new, argc, argv)) {
		homad_log(HOMAD_ERROR,
			  "the configuration stays as it was; mend the file and send SIGHUP again");
	} else {
		homad_control(d, take, new);
		homad_log(HOMAD_INFO, "configuration read again\tfile=%s",
			  new->file[0] ? new->file : "none");
	}
	free(new);
	homad_notify("READY=1");
}
