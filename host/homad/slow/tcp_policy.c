// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What [[tcp_rule]] tables say about an attachment: which are for its user, and the limits
 * that they share with other attachments, of the same user or, for a rule with limits =
 * "rule", of all. When the rules change each attachment gets a new policy, and its streams
 * are counted anew; what is open stays open.
 */
#include <stdlib.h>
#include <string.h>
#include "tcp_homes.h"
#include "tcp_slow.h"

static struct homad_limit *find(const struct homad_tcp_ports *tcp, u32 rule,
				u32 uid, bool together)
{
	struct homa_list *node;

	homa_list_for_each(node, &tcp->limits) {
		struct homad_limit *limit =
			homa_container_of(node, struct homad_limit, of);

		if (limit->generation == tcp->generation &&
		    limit->rule == rule && limit->together == together &&
		    (together || limit->uid == uid))
			return limit;
	}
	return NULL;
}

static struct homad_limit *limit_of(struct homad_tcp_ports *tcp,
				    const struct homad_tcp_rule *rule,
				    u32 number, u32 uid)
{
	struct homad_limit *limit = find(tcp, number, uid, rule->together);

	if (limit) {
		limit->refs++;
		return limit;
	}
	limit = calloc(1, sizeof(*limit));
	if (!limit)
		return NULL;
	homad_limit_init(limit, rule->send, rule->receive, rule->connections);
	limit->generation = tcp->generation;
	limit->rule = number;
	limit->uid = uid;
	limit->together = rule->together;
	limit->refs = 1;
	homa_list_add_tail(&tcp->limits, &limit->of);
	return limit;
}

struct homad_policy *homad_policy_new(struct homad *d,
				      const struct homad_client *client)
{
	struct homad_policy *policy = calloc(1, sizeof(*policy));
	u32 i;

	for (i = 0; policy && i < d->config.num_tcp_rules; i++) {
		const struct homad_tcp_rule *rule = &d->config.tcp_rules[i];
		struct homad_limit *limit = NULL;

		if (!homad_client_is(client, &rule->who))
			continue;
		if (rule->send || rule->receive || rule->connections) {
			limit = limit_of(homad_slow(d)->tcp, rule, i,
					 client->uid);
			if (!limit) {
				homad_policy_put(policy);
				return NULL;
			}
		}
		policy->part[policy->num].rule = *rule;
		policy->part[policy->num].number = (u8)(i + 1);
		policy->part[policy->num++].limit = limit;
	}
	return policy;
}

void homad_policy_put(struct homad_policy *policy)
{
	u32 i;

	for (i = 0; policy && i < policy->num; i++) {
		struct homad_limit *limit = policy->part[i].limit;

		if (!limit || --limit->refs)
			continue;
		homa_list_del(&limit->of);
		free(limit);
	}
	free(policy);
}

static struct homad_policy *policy_of(struct homad *d, struct homad_attachment *a)
{
	struct homad_client gone = { .uid = a->app.uid,
				     .gid = a->app.gid,
				     .num_groups = a->num_groups };

	if (a->client)
		return homad_policy_new(d, a->client);
	/* Its program has ended, and what it wrote is still being sent. */
	memcpy(gone.groups, a->groups, sizeof(gone.groups));
	return homad_policy_new(d, &gone);
}

void homad_policies_change(struct homad *d)
{
	struct homad_limits_change change;
	struct homa_list *node;

	if (!homad_slow(d)->tcp)
		return;
	homad_slow(d)->tcp->generation++;
	homa_list_for_each(node, &homad_slow(d)->apps) {
		struct homad_app *app =
			homa_container_of(node, struct homad_attached, list)->app;

		if (!app->streams)
			continue;
		change.app = app;
		change.policy = policy_of(d, homad_attachment(app));
		if (!change.policy)
			/* out of memory: the rules of this attachment stay as they were */
			continue;
		homad_streams_call(app->streams, homad_limits_change, &change);
		homad_policy_put(change.policy);
	}
}
