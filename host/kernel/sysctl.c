// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * net.homa.*: the settings of a network namespace. There are four kinds:
 *
 *	the engine's, by the names in homa_params.def;
 *	the same by the names and units of the existing Homa module, so that its
 *	scripts work (homak_aliases);
 *	those of this host, struct homak_settings (homak_host_knobs);
 *	settings of the existing module without a meaning here (homak_ignored).
 *	They can be read and written like the others, and nothing comes of it;
 *	the table gives the reason.
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
	/* There is one interval here, before the first RESEND and between others. */
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
	{ "early_path", HOMAK_KNOB_EARLY,
	  offsetof(struct homak_settings, early_path), 1, 0, 1 },
	{ "priority_map", HOMAK_KNOB_LIST,
	  offsetof(struct homak_settings, priority_map), 1, 0, 7 },
	{ "unsched_cutoffs", HOMAK_KNOB_LIST,
	  offsetof(struct homak_settings, unsched_cutoffs), 1, 0, 0x7fffffff },
};

/*
 * IGNORED(name, what it shows at first, why nothing comes of it)
 */
#define HOMAK_IGNORED(IGNORED)                                                 \
	IGNORED(gro_policy, 0x72,                                              \
		"packets are worked off on the core that IP chose (RPS, RSS)") \
	IGNORED(max_gro_skbs, 20,                                              \
		"GRO of NAPI decides how many packets it batches")             \
	IGNORED(gro_busy_usecs, 5,                                             \
		"no core is chosen for a packet, see gro_policy")              \
	IGNORED(busy_usecs, 100,                                               \
		"no core is chosen for a packet, see gro_policy")              \
	IGNORED(reap_limit, 10,                                                \
		"a finished RPC holds no packets; its memory goes at once")    \
	IGNORED(dead_buffs_limit, 5000, "the same")                            \
	IGNORED(max_dead_buffs, 0, "the same")                                 \
	IGNORED(skb_page_frees_per_sec, 1000,                                  \
		"the kernel's page allocator has its own pools")               \
	IGNORED(skb_page_pool_min_kb, 3000, "the same")                        \
	IGNORED(tx_page_frees_per_sec, 1000, "the same")                       \
	IGNORED(tx_page_pool_min_kb, 3000, "the same")                         \
	IGNORED(timeout_resends, 5, "RPCs end by time, see timeout_us")        \
	IGNORED(peer_gc_threshold, 5000,                                       \
		"peers are forgotten by age and when there are max_peers")     \
	IGNORED(peer_idle_secs_max, 120, "the same, see peer_idle_ms")         \
	IGNORED(max_rpcs_per_peer, 1,                                          \
		"which messages of a peer get grants is the engine's choice")  \
	IGNORED(max_grantable_rpcs, 0, "there is no limit but max_rpcs")       \
	IGNORED(max_sched_prio, 0,                                             \
		"follows from the cutoffs, see unsched_cutoffs")               \
	IGNORED(cutoff_version, 1, "the engine counts versions by itself")     \
	IGNORED(max_nic_queue_ns, 2000,                                        \
		"see max_nic_backlog_us and max_nic_queue_usecs")              \
	IGNORED(flags, 0,                                                      \
		"the pacer is part of the engine; link_mbps 0 turns it off")   \
	IGNORED(freeze_type, 0,                                                \
		"there are tracepoints instead of a time trace to freeze")     \
	IGNORED(sync_freeze, 0, "the same")                                    \
	IGNORED(action, 0, "the same")                                         \
	IGNORED(verbose, 0, "the same")                                        \
	IGNORED(accept_bits, 0,                                                \
		"for debugging the existing module's receive path")            \
	IGNORED(drop_bits, 0, "the same")                                      \
	IGNORED(next_id, 0, "ids begin at random")

#define HOMAK_KEPT_LISTS 2
#define HOMAK_KEPT_MAX 64 /* numbers in one */
#define HOMAK_KEPT_TEMP 4 /* zeros that "temp" begins with */

enum {
#define IGNORED(name, shown, why) HOMAK_IGNORED_##name,
	HOMAK_IGNORED(IGNORED)
#undef IGNORED
		HOMAK_IGNORED_COUNT,
};

static const struct homak_knob homak_ignored[] = {
#define IGNORED(name, shown, why) \
	{ #name, HOMAK_KNOB_IGNORED, HOMAK_IGNORED_##name, 1, 0, U32_MAX },
	HOMAK_IGNORED(IGNORED)
#undef IGNORED
	/* Lists of numbers, which read back as they were written. */
	{ "gen3_softirq_cores", HOMAK_KNOB_KEPT, 0, 1, 0, 0 },
	{ "temp", HOMAK_KNOB_KEPT, 1, 1, 0, 0 },
};

static const u32 homak_ignored_shown[] = {
#define IGNORED(name, shown, why) shown,
	HOMAK_IGNORED(IGNORED)
#undef IGNORED
};

/*
 * struct homak_sysctl - the tables of one namespace
 * @lock: one write at a time.
 * @engine: knobs made of homa_param_table.
 * @kept: the lists of HOMAK_KNOB_KEPT, of which @num_kept numbers were written.
 */
struct homak_sysctl {
	struct ctl_table_header *header;
	struct ctl_table *table;
	struct mutex lock;
	struct homak_knob *engine;
	u32 ignored[HOMAK_IGNORED_COUNT];
	int kept[HOMAK_KEPT_LISTS][HOMAK_KEPT_MAX];
	u32 num_kept[HOMAK_KEPT_LISTS];
};

void homak_settings_default(struct homak_settings *settings)
{
	u32 i;

	memset(settings, 0, sizeof(*settings));
	settings->poll_usecs = 50;
	settings->early_path = 1;
	settings->wmem_max = 100000000;
	settings->max_nic_queue_usecs = 40;
	settings->homa_share = 50;
	for (i = 0; i < HOMA_PRIORITIES; i++)
		settings->priority_map[i] = i;
}

static u32 *homak_knob_at(struct homak_net *hnet, const struct homak_knob *knob)
{
	switch (knob->kind) {
	case HOMAK_KNOB_ENGINE:
		return (u32 *)((char *)&hnet->params + knob->offset);
	case HOMAK_KNOB_IGNORED:
		return &hnet->sysctl->ignored[knob->offset];
	default:
		return (u32 *)((char *)&hnet->settings + knob->offset);
	}
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

/* @shown is in range. Under homak_sysctl.lock. */
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
	case HOMAK_KNOB_EARLY:
		/* Without an engine there are no packets yet; see homak_net_start(). */
		if (homak_net_engine(hnet))
			err = homak_early_set(hnet, value);
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

static int homak_knob_kept(HOMAK_CTL_CONST struct ctl_table *ctl, int write,
			   void *buffer, size_t *lenp, loff_t *ppos)
{
	const struct homak_knob *knob = ctl->extra1;
	struct homak_net *hnet = ctl->data;
	struct homak_sysctl *s = hnet->sysctl;
	u32 i, *num = &s->num_kept[knob->offset];
	int values[HOMAK_KEPT_MAX], err;
	struct ctl_table list = {
		.procname = knob->name,
		.data = values,
		.maxlen = sizeof(values),
		.mode = 0644,
	};

	if (!homak_knob_may(hnet, write))
		return -EPERM;
	mutex_lock(&s->lock);
	/* What is not written stays this, which tells how many were. */
	for (i = 0; i < HOMAK_KEPT_MAX; i++)
		values[i] = write ? INT_MIN : s->kept[knob->offset][i];
	if (!write)
		list.maxlen = *num * sizeof(int);
	err = proc_dointvec(&list, write, buffer, lenp, ppos);
	if (!err && write) {
		for (i = 0; i < HOMAK_KEPT_MAX && values[i] != INT_MIN; i++)
			s->kept[knob->offset][i] = values[i];
		*num = i;
	}
	mutex_unlock(&s->lock);
	return err;
}

int homak_cutoffs_parse(const u32 *cutoffs, u32 *levels, u32 *sizes)
{
	u32 i, n = 0;

	*levels = 0;
	if (!memchr_inv(cutoffs, 0, HOMA_PRIORITIES * sizeof(*cutoffs)))
		return 0;
	for (i = HOMA_PRIORITIES - 1; i > 0; i--) {
		/* Levels above num_priorities have 0: nothing goes there. */
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

/* Before there is an engine they wait in the settings. */
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

	/* Those in force, whoever chose them. */
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
	if (i < ARRAY_SIZE(homak_host_knobs))
		return &homak_host_knobs[i];
	i -= ARRAY_SIZE(homak_host_knobs);
	return i < ARRAY_SIZE(homak_ignored) ? &homak_ignored[i] : NULL;
}

static void homak_table_add(struct homak_net *hnet, struct ctl_table *ctl,
			    const struct homak_knob *knob)
{
	ctl->procname = knob->name;
	ctl->data = hnet;
	ctl->maxlen = sizeof(u32);
	ctl->mode = 0644;
	ctl->extra1 = (void *)knob;
	switch (knob->kind) {
	case HOMAK_KNOB_LIST:
		ctl->maxlen = HOMA_PRIORITIES * sizeof(u32);
		ctl->proc_handler = homak_knob_list;
		break;
	case HOMAK_KNOB_KEPT:
		ctl->maxlen = HOMAK_KEPT_MAX * sizeof(int);
		ctl->proc_handler = homak_knob_kept;
		break;
	default:
		ctl->proc_handler = homak_knob_value;
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
			  ARRAY_SIZE(homak_host_knobs) +
			  ARRAY_SIZE(homak_ignored);
	struct homak_sysctl *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return -ENOMEM;
	hnet->sysctl = s;
	mutex_init(&s->lock);
	memcpy(s->ignored, homak_ignored_shown, sizeof(s->ignored));
	s->num_kept[1] = HOMAK_KEPT_TEMP;
	s->engine = kcalloc(homa_param_count, sizeof(*s->engine), GFP_KERNEL);
	/* One more, of zeros: some kernels look for it. */
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
