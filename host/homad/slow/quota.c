// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who may do what, and how much of it. Rules decide on attaching and on ports:
 * the first that matches the user or one of its groups. Accounts are kept for
 * users, not for processes, since a user can have as many of those as it likes.
 * Both are asked anew each time, so that a new configuration holds at once for
 * whatever is asked from then on; what was given is not taken back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "attach.h"

/* An attachment gets at most 1 / RPC_SHARE of the RPCs that its user has left. */
#define RPC_SHARE 8u
#define FEW_RPCS 64u
/* The most handles of a user that can be handed over, because each takes up to 14
 * descriptors of homad. */
#define USER_KEPT 128u

/* Is there anything on the user's account, but for peers? */
static bool has_account(const struct homad_user *user)
{
	return user->fresh || user->attachments || user->records ||
	       user->bytes.shared || HOMA_READ_ONCE(user->bytes.copies) ||
	       user->listeners || user->num_tickets || user->num_passes ||
	       user->line.num || homad_throttle_counts(user) ||
	       __atomic_load_n(&user->num_parked, __ATOMIC_ACQUIRE);
}

void homad_user_put(struct homad_user *user)
{
	/* The engine does not tell when the last peer goes: homad_users_sweep() finds out. And who
	 * closes all his connections and comes back has not asked less by that. */
	if (has_account(user) || HOMA_READ_ONCE(user->owner.peers))
		return;
	homa_list_del(&user->list);
	free(user);
}

void homad_users_sweep(struct homa_list *bucket)
{
	struct homa_list *node = bucket->next;

	while (node != bucket) {
		struct homad_user *user =
			homa_container_of(node, struct homad_user, list);

		node = node->next;
		homad_user_put(user);
	}
}

void homad_users_limit(struct homad *d)
{
	struct homa_list *node;
	u32 i;

	for (i = 0; i < HOMAD_USER_BUCKETS; i++)
		homa_list_for_each(node, &homad_attach(d)->users[i])
			HOMA_WRITE_ONCE(homa_container_of(node,
							  struct homad_user, list)
						->owner.max_peers,
					d->config.quota.user_peers);
}

void homad_users_stop(struct homad *d)
{
	u32 i;

	for (i = 0; i < HOMAD_USER_BUCKETS; i++) {
		struct homa_list *bucket = &homad_attach(d)->users[i], *node;

		homa_list_for_each(node, bucket) {
			struct homad_user *user =
				homa_container_of(node, struct homad_user, list);

			user->owner.peers = 0;
			user->paid_until = 0;
		}
		homad_users_sweep(bucket);
	}
}

struct homad_user *homad_user_get(struct homad *d, uid_t uid)
{
	struct homa_list *bucket =
		&homad_attach(d)->users[uid % HOMAD_USER_BUCKETS];
	struct homa_list *node;
	struct homad_user *user;
	u32 i;

	for (node = bucket->next; node != bucket; node = node->next) {
		user = homa_container_of(node, struct homad_user, list);
		if (user->uid == uid)
			return user;
	}
	homad_users_sweep(bucket);
	user = calloc(1, sizeof(*user));
	if (user) {
		for (i = 0; i < HOMAD_MAX_THREADS; i++)
			homad_polled_init(&user->polled[i]);
		homa_list_init(&user->tickets);
		homa_list_init(&user->exports);
		homa_list_init(&user->refused);
		homa_list_init(&user->refuser);
		user->uid = uid;
		user->owner.max_peers = d->config.quota.user_peers;
		user->attach = homad_attach(d);
		homa_list_add_head(bucket, &user->list);
	}
	return user;
}

void homad_account(struct homad_user *user, u64 bytes)
{
	struct homad_bytes *of_all = &user->attach->d->bytes;

	HOMA_WRITE_ONCE(user->bytes.shared, user->bytes.shared + bytes);
	HOMA_WRITE_ONCE(of_all->shared, of_all->shared + bytes);
}

void homad_settle(struct homad_user *user, u64 bytes)
{
	homad_account(user, -bytes);
}

/* Returns what copies take of @limit: at least the part that is for them only. */
static u64 for_copies(u64 copies, u64 limit)
{
	return homa_max_u64(copies, limit / HOMAD_COPIES_PART);
}

/*
 * Returns the memory that one user may still take of that of all users: as much as is left
 * to the others, as with handles (has_share() below), without the part that is kept for
 * root.
 */
static u64 left_of_all(struct homad *d, const struct homad_user *user)
{
	u64 total = d->config.quota.total_memory, left;
	u64 taken = d->bytes.shared + for_copies(homad_copies_of_all(d), total);
	u64 mine = user->bytes.shared + HOMA_READ_ONCE(user->bytes.copies);

	if (user->uid == 0)
		return total > taken ? total - taken : 0;
	taken += total / HOMAD_ROOT_PART;
	left = total > taken ? total - taken : 0;
	return left > mine ? (left - mine) / 2 : 0;
}

/* Returns the memory that a user may still take of his own. */
static u64 left_of_own(struct homad *d, const struct homad_user *user)
{
	u64 limit = d->config.quota.user_memory;
	u64 taken = user->bytes.shared +
		    for_copies(HOMA_READ_ONCE(user->bytes.copies), limit);

	return taken < limit ? limit - taken : 0;
}

u64 homad_room(struct homad *d, const struct homad_user *user)
{
	return homa_min_u64(left_of_own(d, user), left_of_all(d, user));
}

int homad_charge(struct homad *d, struct homad_user *user, u64 bytes, char *err,
		 size_t errlen)
{
	const struct homad_quota *quota = &d->config.quota;
	bool own = bytes > left_of_own(d, user);
	u64 copies = HOMA_READ_ONCE(user->bytes.copies);

	if (bytes <= homad_room(d, user)) {
		homad_account(user, bytes);
		return 0;
	}
	snprintf(err, errlen,
		 "user %u has %llu KiB of shared memory and %llu KiB of copied messages, and %llu KiB more would %s %llu KiB%s; close handles, ask for less, or raise %s",
		 (unsigned int)user->uid,
		 (unsigned long long)user->bytes.shared >> 10,
		 (unsigned long long)copies >> 10,
		 (unsigned long long)bytes >> 10,
		 own ? "pass the limit of" :
		       "leave too little for others of all users'",
		 (unsigned long long)(own ? quota->user_memory :
					    quota->total_memory) >>
			 10,
		 own ? ", a sixteenth of which is for copies" : "",
		 own ? "quota.user_memory" : "quota.total_memory");
	return -EDQUOT;
}

u32 homad_share_rpcs(struct homad *d, const struct homad_user *user)
{
	const struct homad_quota *quota = &d->config.quota;
	u64 left = quota->user_rpcs > user->rpcs ? quota->user_rpcs - user->rpcs :
						   0;

	/* This leaves something for the next attachments, and enough for each to work. */
	return homa_min_u32(quota->rpcs,
			    homa_max_u32((u32)(left / RPC_SHARE), FEW_RPCS));
}

static bool in_group(const struct homad_client *client, gid_t gid)
{
	u32 i;

	if (client->gid == gid)
		return true;
	for (i = 0; i < client->num_groups; i++)
		if (client->groups[i] == gid)
			return true;
	return false;
}

bool homad_client_is(const struct homad_client *client,
		     const struct homad_who *who)
{
	if (who->any)
		return true;
	return who->by_gid ? in_group(client, who->id) : client->uid == who->id;
}

static const struct homad_rule *find_rule(const struct homad *d,
					  const struct homad_client *client)
{
	u32 i;

	for (i = 0; i < d->config.num_rules; i++) {
		const struct homad_rule *rule = &d->config.rules[i];

		if (homad_client_is(client, &rule->who))
			return rule;
	}
	return NULL;
}

/*
 * A user may have as many handles as are left to all others (Choudhury and Hahne
 * 1998): one who takes what he can get leaves half, two leave a third. What is kept
 * for root is there when an administrator must look.
 */
static bool has_share(struct homad *d, const struct homad_client *client)
{
	u32 total = d->config.quota.total_attachments;
	u32 taken = homad_slow(d)->num_apps + total / HOMAD_ROOT_PART;

	if (client->uid == 0 || !client->user->attachments)
		return client->uid == 0 || taken < total;
	return taken < total && client->user->attachments < total - taken;
}

int homad_may_attach(struct homad *d, const struct homad_client *client,
		     char *err, size_t errlen)
{
	const struct homad_quota *quota = &d->config.quota;
	const struct homad_rule *rule = find_rule(d, client);

	if (!rule || !rule->allow) {
		snprintf(err, errlen,
			 "user %u may not attach to this homad; a [[rule]] in its configuration can allow it",
			 (unsigned int)client->uid);
		return -EACCES;
	}
	if (client->user->attachments >= quota->attachments) {
		snprintf(err, errlen,
			 "user %u has %u handles open, the limit; close some or raise quota.attachments",
			 (unsigned int)client->uid, client->user->attachments);
		return -EDQUOT;
	}
	if (homad_slow(d)->num_apps < quota->total_attachments &&
	    !has_share(d, client)) {
		snprintf(err, errlen,
			 "user %u has %u handles open, and what is left of homad's %u is for others; close some, or raise quota.total_attachments",
			 (unsigned int)client->uid, client->user->attachments,
			 quota->total_attachments);
		return -EDQUOT;
	}
	if (homad_slow(d)->num_apps >= quota->total_attachments) {
		snprintf(err, errlen,
			 "homad has %u handles open, the limit for all users; quota.total_attachments can be raised",
			 homad_slow(d)->num_apps);
		return -EUSERS;
	}
	return 0;
}

/* Returns the id that the kernel shows for users for whom homad's user namespace has no id,
 * see user_namespaces(7). */
static uid_t nobody_known(void)
{
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned int uid;
	uid_t found = f && fscanf(f, "%u", &uid) == 1 ? (uid_t)uid : 65534;

	if (f)
		fclose(f);
	return found;
}

int homad_may_share(const struct homad_client *client, const char *what,
		    char *err, size_t errlen)
{
	if (client->uid != nobody_known())
		return 0;
	snprintf(err, errlen,
		 "user %u may be several users whom this homad cannot tell apart, so %s among them",
		 (unsigned int)client->uid, what);
	return -EACCES;
}

int homad_may_keep(const struct homad_client *client, char *err, size_t errlen)
{
	if (client->user->kept < USER_KEPT)
		return 0;
	snprintf(err, errlen,
		 "user %u has %u handles open that can be handed over, the limit; open this one without HOMA_OPEN_HANDOVER",
		 (unsigned int)client->uid, client->user->kept);
	return -EDQUOT;
}

int homad_may_take_over(struct homad *d, const struct homad_client *client,
			u16 port, char *err, size_t errlen)
{
	const struct homad_rule *rule = find_rule(d, client);

	if (rule && rule->allow)
		return port < HOMA_MIN_CLIENT_PORT ?
			       homad_may_bind(d, client, port, err, errlen) :
			       0;
	snprintf(err, errlen,
		 "user %u may not attach to this homad; a [[rule]] in its configuration can allow it",
		 (unsigned int)client->uid);
	return -EACCES;
}

int homad_may_serve(struct homad *d, const struct homad_client *client,
		    u16 port, char *err, size_t errlen)
{
	const struct homad_rule *rule = find_rule(d, client);

	/* Ports that homad chose belong to nobody else, so a client that may serve at all
	 * may serve there. */
	if (port >= HOMA_MIN_CLIENT_PORT && rule && rule->allow && rule->port_min)
		return 0;
	return homad_may_bind(d, client, port, err, errlen);
}

int homad_may_bind(struct homad *d, const struct homad_client *client, u16 port,
		   char *err, size_t errlen)
{
	const struct homad_rule *rule = find_rule(d, client);

	if (rule && rule->allow && rule->port_min && port >= rule->port_min &&
	    port <= rule->port_max)
		return 0;
	if (rule && rule->allow && rule->port_min)
		snprintf(err, errlen,
			 "user %u may bind ports %u to %u, not %u; a [[rule]] in homad's configuration can allow it",
			 (unsigned int)client->uid, rule->port_min,
			 rule->port_max, port);
	else
		snprintf(err, errlen,
			 "user %u may not bind ports; a [[rule]] in homad's configuration can allow it",
			 (unsigned int)client->uid);
	return -EACCES;
}
