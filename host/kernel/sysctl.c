// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * net.homa.*: the settings of a network namespace. There are three kinds:
 *
 *	the engine's, by the names in homa_params.def;
 *	the same by the names and units of the existing Homa module, so that its
 *	scripts work (homak_aliases);
 *	those of this host, struct homak_settings (homak_host_knobs).
 *
 * Each does what it says. Settings of the existing module without a meaning here do not
 * exist; docs/kernel.md lists them, with the reasons.
 *
 * Every name stands once in a table of struct homak_knob; each namespace gets a
 * ctl_table made of them, because a ctl_table carries the pointer to what it
 * sets. A value is read into a copy, checked, and handed on: to the engine by
 * homak_net_set_params(), which stops it for a moment, to UDP and TCP disguise by
 * homak_encap_set(), and to the rest by a plain store.
 */
#include <linux/capability.h>
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "homa_sysctl.h"

#define ENGINE(alias, param, scale, min, max)  \
	{ alias,                               \
	  HOMAK_KNOB_ENGINE,                   \
	  offsetof(struct homa_params, param), \
	  scale,                               \
	  min,                                 \
	  max }

/* Names of the existing module for settings that the engine has under another name
 * or in another unit. Its ticks are of 1 ms. */
static const struct homak_knob homak_aliases[] = {
	ENGINE("rtt_bytes", unsched_bytes, 1, 0, 0x7fffffff),
	/* The engine has one interval, before the first RESEND and between others. */
	ENGINE("resend_ticks", resend_interval_us, 1000, 0, 10000),
	ENGINE("resend_interval", resend_interval_us, 1000, 0, 10000),
	ENGINE("timeout_ticks", timeout_us, 1000, 0, 60000),
	ENGINE("request_ack_ticks", need_ack_us, 1000, 1, 10000),
	ENGINE("bpage_lease_usecs", bpage_lease_us, 1, 1, 10000000),
	ENGINE("max_nic_est_backlog_usecs", max_nic_backlog_us, 1, 1, 1000000),
	ENGINE("throttle_min_bytes", defer_min_bytes, 1, 0, 0x7fffffff),
	ENGINE("peer_net_max", max_peers, 1, 16, 10000000),
	ENGINE("peer_idle_secs_min", peer_idle_ms, 1000, 1, 10000),
};

#define HOST(name, min, max)                                                     \
	{ #name, HOMAK_KNOB_HOST, offsetof(struct homak_settings, name), 1, min, \
	  max }

static const struct homak_knob homak_host_knobs[] = {
	HOST(poll_usecs, 0, 10000),
	HOST(wmem_max, 1, 0x7fffffff),
	HOST(max_gso_size, 0, 1 << 20),
	HOST(gso_force_software, 0, 1),
	HOST(link_mbps, 0, 100000000),
	HOST(max_nic_queue_usecs, 0, 1000000),
	HOST(homa_share, 1, 99),
	{ "hijack_tcp", HOMAK_KNOB_ENCAP,
	  offsetof(struct homak_settings, hijack_tcp), 1, 0, 1 },
	{ "hijack_udp", HOMAK_KNOB_ENCAP,
	  offsetof(struct homak_settings, hijack_udp), 1, 0, 1 },
	{ "early_path", HOMAK_KNOB_PREROUTING,
	  offsetof(struct homak_settings, early_path), 1, 0, 1 },
	{ "priority_map", HOMAK_KNOB_LIST,
	  offsetof(struct homak_settings, priority_map), 1, 0, 7 },
	{ "unsched_cutoffs", HOMAK_KNOB_LIST,
	  offsetof(struct homak_settings, unsched_cutoffs), 1, 0, 0x7fffffff },
};

/*
 * struct homak_sysctl - the tables of one namespace
 * @lock: held while a setting is written.
 * @engine: knobs made of homa_param_table.
 */
struct homak_sysctl {
	/* What the kernel made of @table when it was registered. */
	struct ctl_table_header *header;
	/* The files. */
	struct ctl_table *table;
	struct mutex lock;
	struct homak_knob *engine;
};

void homak_settings_default(struct homak_settings *settings)
{
	u32 i;

	memset(settings, 0, sizeof(*settings));
	settings->early_path = IS_ENABLED(CONFIG_HOMA_EARLY_PATH);
	settings->wmem_max = 100000000;
	settings->max_nic_queue_usecs = 40;
	settings->homa_share = 50;
	for (i = 0; i < HOMA_PRIORITIES; i++)
		settings->priority_map[i] = i;
}

static u32 *homak_knob_at(struct homak_net *hnet, const struct homak_knob *knob)
{
	if (knob->kind == HOMAK_KNOB_ENGINE)
		return (u32 *)((char *)&hnet->params + knob->offset);
	return (u32 *)((char *)&hnet->settings + knob->offset);
}

u32 homak_knob_shown(const struct homak_knob *knob, u32 stored)
{
	const u32 scale = knob->scale ?: 1;

	return stored / scale + !!(stored % scale);
}

static int homak_knob_set_engine(struct homak_net *hnet,
				 const struct homak_knob *knob, u32 value)
{
	struct homa_params params;

	mutex_lock(&hnet->lock);
	params = hnet->params;
	mutex_unlock(&hnet->lock);
	*(u32 *)((char *)&params + knob->offset) = value;
	return homak_net_set_params(hnet, &params);
}

/* Sets a knob to @shown, which is in range; homak_sysctl.lock is held. */
static int homak_knob_set(struct homak_net *hnet, const struct homak_knob *knob,
			  u32 shown)
{
	const struct homak_settings *now = &hnet->settings;
	u32 *at = homak_knob_at(hnet, knob);
	const u32 value = shown * (knob->scale ?: 1);
	bool tcp, udp;
	int err = 0;

	switch (knob->kind) {
	case HOMAK_KNOB_ENGINE:
		return homak_knob_set_engine(hnet, knob, value);
	case HOMAK_KNOB_ENCAP:
		tcp = at == &now->hijack_tcp ? value : now->hijack_tcp;
		udp = at == &now->hijack_udp ? value : now->hijack_udp;
		err = homak_encap_set(hnet, udp, tcp);
		break;
	case HOMAK_KNOB_PREROUTING:
		/* Without an engine there are no packets yet; see homak_net_start(). */
		if (homak_net_engine(hnet))
			err = homak_prerouting_set(hnet, value);
		break;
	default:
		break;
	}
	if (err)
		return err;
	WRITE_ONCE(*at, value);
	if (at == &now->link_mbps)
		homak_devs_derive(hnet);
	return 0;
}

static bool homak_knob_may(const struct homak_net *hnet, int write)
{
	return !write || ns_capable(hnet->net->user_ns, CAP_NET_ADMIN);
}

static int homak_knob_value(HOMAK_CTL_CONST struct ctl_table *ctl, int write,
			    void *buffer, size_t *lenp, loff_t *ppos)
{
	const struct homak_knob *knob = ctl->extra1;
	struct homak_net *hnet = ctl->data;
	unsigned int min = knob->min, max = knob->max, value;
	struct ctl_table one = {
		.procname = knob->name,
		.data = &value,
		.maxlen = sizeof(value),
		.mode = 0644,
		.extra1 = &min,
		.extra2 = &max,
	};
	int err;

	if (!homak_knob_may(hnet, write))
		return -EPERM;
	mutex_lock(&hnet->sysctl->lock);
	value = homak_knob_shown(knob, READ_ONCE(*homak_knob_at(hnet, knob)));
	err = proc_douintvec_minmax(&one, write, buffer, lenp, ppos);
	if (!err && write)
		err = homak_knob_set(hnet, knob, value);
	mutex_unlock(&hnet->sysctl->lock);
	return err;
}

int homak_cutoffs_parse(const u32 *cutoffs, u32 *levels, u32 *sizes)
{
	u32 i, n = 0;

	*levels = 0;
	if (!memchr_inv(cutoffs, 0, HOMA_PRIORITIES * sizeof(*cutoffs)))
		return 0;
	for (i = HOMA_PRIORITIES - 1; i > 0; i--) {
		/* Levels above num_priorities have 0, because no packet uses them. */
		if (!cutoffs[i] && !n)
			continue;
		if (n && cutoffs[i] < sizes[n - 1])
			return -EINVAL;
		if (cutoffs[i] >= HOMA_MAX_MESSAGE_LENGTH)
			break;
		sizes[n++] = cutoffs[i];
	}
	*levels = n + 1;
	return 0;
}

/* Gives the engine cutoffs; before there is an engine they wait in the settings. */
static int homak_cutoffs_set(struct homak_net *hnet, const u32 *cutoffs)
{
	u32 sizes[HOMA_PRIORITIES], levels;
	int err = homak_cutoffs_parse(cutoffs, &levels, sizes);

	if (err)
		return err;
	err = homak_net_set_cutoffs(hnet, levels, sizes);
	return err == -EAGAIN ? 0 : err;
}

void homak_sysctl_started(struct homak_net *hnet)
{
	if (hnet->sysctl)
		homak_cutoffs_set(hnet, hnet->settings.unsched_cutoffs);
}

static int homak_list_set(struct homak_net *hnet, const struct homak_knob *knob,
			  const int *values)
{
	u32 *at = homak_knob_at(hnet, knob);
	int err = 0;
	u32 i;

	if (at == hnet->settings.unsched_cutoffs)
		err = homak_cutoffs_set(hnet, (const u32 *)values);
	for (i = 0; i < HOMA_PRIORITIES && !err; i++)
		WRITE_ONCE(at[i], (u32)values[i]);
	return err;
}

static void homak_list_get(struct homak_net *hnet,
			   const struct homak_knob *knob, int *values)
{
	const struct homa_engine *engine = homak_net_engine(hnet);
	const u32 *at = homak_knob_at(hnet, knob);
	u32 i;

	/* The cutoffs in use are shown, whoever chose them. */
	if (at == hnet->settings.unsched_cutoffs && engine) {
		homa_engine_cutoffs(engine, (u32 *)values);
		return;
	}
	for (i = 0; i < HOMA_PRIORITIES; i++)
		values[i] = (int)READ_ONCE(at[i]);
}

static int homak_knob_list(HOMAK_CTL_CONST struct ctl_table *ctl, int write,
			   void *buffer, size_t *lenp, loff_t *ppos)
{
	const struct homak_knob *knob = ctl->extra1;
	struct homak_net *hnet = ctl->data;
	int values[HOMA_PRIORITIES], min = knob->min, max = knob->max, err;
	struct ctl_table one = {
		.procname = knob->name,
		.data = values,
		.maxlen = sizeof(values),
		.mode = 0644,
		.extra1 = &min,
		.extra2 = &max,
	};

	if (!homak_knob_may(hnet, write))
		return -EPERM;
	mutex_lock(&hnet->sysctl->lock);
	homak_list_get(hnet, knob, values);
	err = proc_dointvec_minmax(&one, write, buffer, lenp, ppos);
	if (!err && write)
		err = homak_list_set(hnet, knob, values);
	mutex_unlock(&hnet->sysctl->lock);
	return err;
}

/* ---- tables ---- */

const struct homak_knob *homak_knob_next(u32 *index)
{
	u32 i = (*index)++;

	if (i < ARRAY_SIZE(homak_aliases))
		return &homak_aliases[i];
	i -= ARRAY_SIZE(homak_aliases);
	return i < ARRAY_SIZE(homak_host_knobs) ? &homak_host_knobs[i] : NULL;
}

static void homak_table_add(struct homak_net *hnet, struct ctl_table *ctl,
			    const struct homak_knob *knob)
{
	ctl->procname = knob->name;
	ctl->data = hnet;
	ctl->maxlen = sizeof(u32);
	ctl->mode = 0644;
	ctl->extra1 = (void *)knob;
	ctl->proc_handler = homak_knob_value;
	if (knob->kind == HOMAK_KNOB_LIST) {
		ctl->maxlen = HOMA_PRIORITIES * sizeof(u32);
		ctl->proc_handler = homak_knob_list;
	}
}

static void homak_table_fill(struct homak_net *hnet, struct ctl_table *table)
{
	struct homak_knob *engine = hnet->sysctl->engine;
	const struct homak_knob *knob;
	u32 i, n = 0;

	for (i = 0; i < homa_param_count; i++) {
		const struct homa_param_info *info = &homa_param_table[i];

		engine[i] = (struct homak_knob){
			.name = info->name,
			.kind = HOMAK_KNOB_ENGINE,
			.offset = info->offset,
			.scale = 1,
			.min = info->min,
			.max = info->max,
		};
		homak_table_add(hnet, &table[n++], &engine[i]);
	}
	i = 0;
	while ((knob = homak_knob_next(&i)))
		homak_table_add(hnet, &table[n++], knob);
}

int homak_sysctl_init(struct homak_net *hnet)
{
	const u32 count = homa_param_count + ARRAY_SIZE(homak_aliases) +
			  ARRAY_SIZE(homak_host_knobs);
	struct homak_sysctl *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return -ENOMEM;
	hnet->sysctl = s;
	mutex_init(&s->lock);
	s->engine = kcalloc(homa_param_count, sizeof(*s->engine), GFP_KERNEL);
	/* The table has one more entry, of zeros, which some kernels expect. */
	s->table = kcalloc(count + 1, sizeof(*s->table), GFP_KERNEL);
	if (!s->engine || !s->table)
		goto fail;
	homak_table_fill(hnet, s->table);
	s->header = homak_register_sysctl(hnet->net, "net/homa", s->table, count);
	if (!s->header)
		goto fail;
	return 0;
fail:
	homak_sysctl_free(hnet);
	return -ENOMEM;
}

void homak_sysctl_free(struct homak_net *hnet)
{
	struct homak_sysctl *s = hnet->sysctl;

	if (!s)
		return;
	/* Waits for those who are in a handler. */
	if (s->header)
		unregister_net_sysctl_table(s->header);
	hnet->sysctl = NULL;
	kfree(s->table);
	kfree(s->engine);
	mutex_destroy(&s->lock);
	kfree(s);
}
