// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Users. All Homa sockets of a user in a network namespace are one owner to the engine:
 * together they have a share of what RPCs there may be (engine/homa/homa_owner.c), and the
 * requests that he has begun are his own incast. Here he has a share of the ports,
 * too: as many sockets as there are client ports left.
 *
 * Who made a user namespace inside that of the network namespace answers for everybody
 * in it. His ids in there may be thousands, and each would else be a user.
 *
 * A user is there while he has sockets, so there are no more users than sockets, and
 * each is charged to the memory cgroup of who made his first one. They are found, counted
 * and let go of under homak_net.sock_lock, when sockets begin and end.
 */
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "homa_sockets.h"

#define HOMAK_CLIENT_PORTS (65536u - HOMA_MIN_CLIENT_PORT)

/*
 * struct homak_user - a user with sockets in a namespace (homak_net.sock_lock)
 * @owner: account to which the engine charges the user's RPCs.
 * @socks: number of the user's sockets.
 */
struct homak_user {
	/* links it into homak_net.users. */
	struct hlist_node node;
	struct homa_owner owner;
	/* the user. */
	kuid_t uid;
	u32 socks;
	/* By it the memory is freed when no packet for a socket of the user is on its way. */
	struct rcu_head rcu;
};

/* Returns the user to whom a socket that is made now belongs. */
static kuid_t homak_user_now(const struct net *net)
{
	const struct user_namespace *ns;

	for (ns = current_user_ns(); ns; ns = ns->parent)
		if (ns->parent == net->user_ns)
			return ns->owner;
	return current_fsuid();
}

static struct hlist_head *homak_user_bucket(struct homak_net *hnet, kuid_t uid)
{
	return &hnet->users[hash_32(__kuid_val(uid), HOMAK_USER_BITS)];
}

/* Locked. */
static struct homak_user *homak_user_find(struct homak_net *hnet, kuid_t uid)
{
	struct homak_user *user;

	hlist_for_each_entry(user, homak_user_bucket(hnet, uid), node)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

int homak_user_get(struct homak_sock *hsk)
{
	struct homak_net *hnet = hsk->hnet;
	kuid_t uid = homak_user_now(hnet->net);
	struct homak_user *user, *made;
	int err = 0;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return -ENOMEM;
	spin_lock_bh(&hnet->sock_lock);
	user = homak_user_find(hnet, uid);
	if (user && user->socks + hnet->num_socks >= HOMAK_CLIENT_PORTS) {
		err = -EADDRINUSE;
		goto out;
	}
	if (!user) {
		user = made;
		made = NULL;
		user->uid = uid;
		hlist_add_head(&user->node, homak_user_bucket(hnet, uid));
	}
	user->socks++;
	hnet->num_socks++;
	hsk->user = user;
out:
	spin_unlock_bh(&hnet->sock_lock);
	kfree(made);
	return err;
}

void homak_user_put(struct homak_sock *hsk)
{
	struct homak_user *user = hsk->user;

	hsk->user = NULL;
	spin_lock_bh(&hsk->hnet->sock_lock);
	hsk->hnet->num_socks--;
	if (--user->socks)
		user = NULL;
	else
		hlist_del(&user->node);
	spin_unlock_bh(&hsk->hnet->sock_lock);
	/* No RPC is left that could be charged to it, but perhaps a request that was received just
	 * before the end is discharged (one_packet.c). */
	kfree_rcu(user, rcu);
}

struct homa_owner *homak_user_owner(struct homak_user *user)
{
	return &user->owner;
}
