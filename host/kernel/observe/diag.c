// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is open now, for `homa ss` and others: sockets, RPCs, peers and devices by
 * generic netlink (homa_diag.h). inet_diag would show the sockets, but not
 * RPCs, which are what matters here; and a module may be built without it.
 *
 * A dump is resumed for each buffer that the reader brings; between two calls only
 * a place in a table is kept (homak_diag_at), so objects that come and go meanwhile
 * may be missed or seen twice, as with ss. One visit to the engine looks at no
 * more RPCs than fit the buffer, with bottom halves off for a bounded time, and at one
 * socket or device. Who dumps pays with its own time for what it is not shown, too.
 * Sockets' memory outlives an RCU read side, so their owners are read without a lock.
 */
#include <linux/capability.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "homa_diag.h"
#include "homa_net.h"

#define HOMAK_DIAG_BATCH 16u /* most RPCs or peers that one visit looks at */
#define HOMAK_DIAG_ROOM 512u /* most bytes that one object's attributes take */

/* The position of a dump, in netlink_callback.ctx. */
struct homak_diag_at {
	/* Where the engine goes on. */
	struct homa_look_cursor cursor;
	/* The number of sockets or devices that were passed. */
	u32 index;
};

/* struct homak_diag_dump - one call of a dump; it shows objects of all users if @admin */
struct homak_diag_dump {
	/* The answer that is being filled. */
	struct sk_buff *skb;
	/* The kernel's state of the dump. */
	struct netlink_callback *cb;
	/* The namespace that is shown. */
	struct homak_net *hnet;
	/* The position, which lies in @cb. */
	struct homak_diag_at *at;
	/* The user namespace in whose terms user ids are shown. */
	struct user_namespace *user_ns;
	/* The user who asks. */
	kuid_t uid;
	bool admin;
	/* What is shown, a HOMA_DIAG_CMD_* of homa_diag.h. */
	u8 command;
};

static struct genl_family homak_diag_family;

static void homak_diag_begin(struct homak_diag_dump *d, struct sk_buff *skb,
			     struct netlink_callback *cb, u8 command)
{
	struct net *net = sock_net(skb->sk);

	BUILD_BUG_ON(sizeof(struct homak_diag_at) > sizeof(cb->ctx));
	d->skb = skb;
	d->cb = cb;
	d->hnet = homak_net(net);
	d->at = (struct homak_diag_at *)cb->ctx;
	d->user_ns = sk_user_ns(NETLINK_CB(cb->skb).sk);
	d->uid = NETLINK_CREDS(cb->skb)->uid;
	d->admin = netlink_ns_capable(cb->skb, net->user_ns, CAP_NET_ADMIN);
	d->command = command;
}

static void *homak_diag_open(struct homak_diag_dump *d)
{
	return genlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid,
			   d->cb->nlh->nlmsg_seq, &homak_diag_family,
			   NLM_F_MULTI, d->command);
}

/* Ends a message; false: it did not fit. */
static bool homak_diag_close(struct homak_diag_dump *d, void *head, int err)
{
	if (err) {
		genlmsg_cancel(d->skb, head);
		return false;
	}
	genlmsg_end(d->skb, head);
	return true;
}

static int homak_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, HOMA_DIAG_A_PAD);
}

/* ---- sockets ---- */

/* struct homak_diag_owner - the owner of a socket; @known: true if the owner was found */
struct homak_diag_owner {
	/* The user. */
	kuid_t uid;
	/* The number of the socket's inode; 0: it has none. */
	u64 inode;
	bool known;
};

/* Writes the owner of @hsk to @owner. RCU read side. */
static void homak_diag_owner(struct homak_sock *hsk,
			     struct homak_diag_owner *owner)
{
	struct sock *sk = (struct sock *)hsk;

	owner->uid = READ_ONCE(sk->sk_uid);
	owner->inode = sock_i_ino(sk);
	owner->known = true;
}

static bool homak_diag_shown(const struct homak_diag_dump *d,
			     const struct homak_diag_owner *owner)
{
	return d->admin || (owner->known && uid_eq(owner->uid, d->uid));
}

static int homak_diag_put_owner(struct homak_diag_dump *d,
				const struct homak_diag_owner *owner)
{
	if (!owner->known)
		return 0;
	return nla_put_u32(d->skb, HOMA_DIAG_A_UID,
			   from_kuid_munged(d->user_ns, owner->uid)) ||
	       homak_put_u64(d->skb, HOMA_DIAG_A_INODE, owner->inode);
}

/* struct homak_diag_region - the state of a socket's receive region, from the engine */
struct homak_diag_region {
	/* Bytes of the region that are free. */
	u64 avail;
	/* The socket's Homa port. */
	u16 port;
	/* True if messages wait for pages. */
	bool starved;
};

/* Writes the state of the receive region; false: the socket is closed. RCU read side. */
static bool homak_diag_region(const struct homak_sock *hsk,
			      struct homak_diag_region *region)
{
	struct homa_sock *engine_sock = READ_ONCE(hsk->engine_sock);

	if (!engine_sock)
		return false;
	local_bh_disable();
	region->avail = homa_pool_avail(engine_sock);
	region->port = homa_sock_port(engine_sock);
	region->starved = homa_sock_starved(engine_sock);
	local_bh_enable();
	return true;
}

static bool homak_diag_sock(struct homak_diag_dump *d, struct homak_sock *hsk,
			    const struct homak_diag_owner *owner)
{
	const struct sock *sk = (const struct sock *)hsk;
	struct homak_diag_region region;
	struct sk_buff *skb = d->skb;
	void *head;
	int err;

	if (!homak_diag_region(hsk, &region))
		return true;
	head = homak_diag_open(d);
	if (!head)
		return false;
	err = homak_diag_put_owner(d, owner) ||
	      nla_put_u8(skb, HOMA_DIAG_A_FAMILY, (u8)sk->sk_family) ||
	      nla_put_u16(skb, HOMA_DIAG_A_PORT, region.port) ||
	      nla_put_u8(skb, HOMA_DIAG_A_SERVER, READ_ONCE(hsk->server)) ||
	      nla_put_u8(skb, HOMA_DIAG_A_SHUTDOWN, READ_ONCE(hsk->shutdown)) ||
	      nla_put_u16(skb, HOMA_DIAG_A_ENCAP, READ_ONCE(hsk->encap)) ||
	      homak_put_u64(skb, HOMA_DIAG_A_TX_BYTES,
			    (u64)atomic64_read(&hsk->tx_bytes)) ||
	      homak_put_u64(skb, HOMA_DIAG_A_REGION_BYTES,
			    READ_ONCE(hsk->region_size)) ||
	      homak_put_u64(skb, HOMA_DIAG_A_AVAIL_BYTES, region.avail) ||
	      nla_put_u32(skb, HOMA_DIAG_A_PARTIAL_BYTES,
			  READ_ONCE(hsk->partial_bytes)) ||
	      nla_put_u32(skb, HOMA_DIAG_A_MESSAGES,
			  skb_queue_len_lockless(&hsk->messages)) ||
	      nla_put_u8(skb, HOMA_DIAG_A_STARVED, region.starved);
	return homak_diag_close(d, head, err);
}

static int homak_diag_socks(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct homak_diag_owner owner;
	struct homak_diag_dump d;
	struct homak_sock *hsk;
	u32 index = 0;

	homak_diag_begin(&d, skb, cb, HOMA_DIAG_SOCKS);
	rcu_read_lock();
	list_for_each_entry_rcu(hsk, &d.hnet->socks, all) {
		if (index++ < d.at->index)
			continue;
		homak_diag_owner(hsk, &owner);
		if (homak_diag_shown(&d, &owner) &&
		    !homak_diag_sock(&d, hsk, &owner))
			break;
		d.at->index = index;
	}
	rcu_read_unlock();
	return skb->len;
}

/* ---- RPCs ---- */

/* Finds the owners of RPCs. It runs in the RCU read side in which the RPCs were looked
 * at. */
static void homak_diag_owners(const struct homa_rpc_look *looks,
			      struct homak_diag_owner *owners, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		homak_diag_owner(homak_sock_of((struct homa_sock *)looks[i].sock),
				 &owners[i]);
}

static int homak_diag_put_addr(struct sk_buff *skb, const struct homa_addr *addr,
			       struct homa_link *link)
{
	struct in6_addr ip;

	homak_addr_get_v6(addr, &ip);
	return nla_put_in6_addr(skb, HOMA_DIAG_A_PEER, &ip) ||
	       nla_put_u16(skb, HOMA_DIAG_A_ENCAP, addr->encap) ||
	       nla_put_u32(skb, HOMA_DIAG_A_IFINDEX,
			   (u32)READ_ONCE(homak_dev_of(link)->ifindex));
}

static int homak_diag_put_lengths(struct sk_buff *skb,
				  const struct homa_rpc_look *look)
{
	return nla_put_u32(skb, HOMA_DIAG_A_TX_LENGTH, look->tx_length) ||
	       nla_put_u32(skb, HOMA_DIAG_A_TX_SENT, look->tx_sent) ||
	       nla_put_u32(skb, HOMA_DIAG_A_TX_GRANTED, look->tx_granted) ||
	       nla_put_u32(skb, HOMA_DIAG_A_RX_LENGTH, look->rx_length) ||
	       nla_put_u32(skb, HOMA_DIAG_A_RX_RECEIVED, look->rx_received) ||
	       nla_put_u32(skb, HOMA_DIAG_A_RX_GRANTED, look->rx_granted) ||
	       nla_put_u32(skb, HOMA_DIAG_A_RX_GAPS, look->rx_gaps) ||
	       nla_put_u32(skb, HOMA_DIAG_A_RX_GAP_BYTES, look->rx_gap_bytes);
}

/* Returns the phase to show: for the engine a message comes in until recvmsg() has copied
 * it. */
static u8 homak_diag_phase(const struct homa_rpc_look *look)
{
	if (look->phase == HOMA_LOOK_INCOMING && look->rx_length &&
	    look->rx_received == look->rx_length)
		return HOMA_LOOK_READY;
	return look->phase;
}

static bool homak_diag_rpc(struct homak_diag_dump *d,
			   const struct homa_rpc_look *look,
			   const struct homak_diag_owner *owner, u64 now)
{
	struct sk_buff *skb = d->skb;
	void *head = homak_diag_open(d);
	int err;

	if (!head)
		return false;
	err = homak_diag_put_owner(d, owner) ||
	      (d->admin && homak_put_u64(skb, HOMA_DIAG_A_ID, look->handle.id)) ||
	      homak_put_u64(skb, HOMA_DIAG_A_COOKIE, look->cookie) ||
	      nla_put_u8(skb, HOMA_DIAG_A_CLIENT, look->client) ||
	      nla_put_u8(skb, HOMA_DIAG_A_PRIVATE, look->is_private) ||
	      nla_put_u8(skb, HOMA_DIAG_A_PHASE, homak_diag_phase(look)) ||
	      nla_put_u8(skb, HOMA_DIAG_A_PROBES, look->probes) ||
	      nla_put_s32(skb, HOMA_DIAG_A_ERROR, look->error) ||
	      nla_put_u16(skb, HOMA_DIAG_A_PORT, look->port) ||
	      nla_put_u16(skb, HOMA_DIAG_A_PEER_PORT, look->peer_port) ||
	      homak_diag_put_addr(skb, &look->peer,
				  (struct homa_link *)look->link) ||
	      homak_put_u64(skb, HOMA_DIAG_A_AGE_NS,
			    homa_since(now, look->birth)) ||
	      homak_put_u64(skb, HOMA_DIAG_A_SILENT_NS,
			    homa_since(now, look->heard_at)) ||
	      homak_diag_put_lengths(skb, look);
	return homak_diag_close(d, head, err);
}

/* Returns the number of objects of a visit that surely fit the buffer. */
static u32 homak_diag_fit(const struct sk_buff *skb)
{
	return min_t(u32, HOMAK_DIAG_BATCH, skb_tailroom(skb) / HOMAK_DIAG_ROOM);
}

/* struct homak_diag_rpcs - the RPCs that one visit found, which is too much for the
 * stack */
struct homak_diag_rpcs {
	/* The RPCs. */
	struct homa_rpc_look looks[HOMAK_DIAG_BATCH];
	/* The owner of each one's socket. */
	struct homak_diag_owner owners[HOMAK_DIAG_BATCH];
};

static int homak_diag_rpcs_visit(struct homak_diag_dump *d,
				 struct homak_diag_rpcs *found, u32 max)
{
	struct homak_cpu *cpu = homak_enter_wait(d->hnet);
	u64 now;
	u32 n, i;

	if (!cpu) {
		d->at->cursor.end = true;
		return 0;
	}
	now = cpu->ctx.now;
	rcu_read_lock();
	n = homa_rpcs_look(&cpu->ctx, &d->at->cursor, NULL, found->looks, max);
	homak_diag_owners(found->looks, found->owners, n);
	rcu_read_unlock();
	homak_leave(cpu);
	for (i = 0; i < n; i++)
		if (homak_diag_shown(d, &found->owners[i]) &&
		    WARN_ON_ONCE(!homak_diag_rpc(d, &found->looks[i],
						 &found->owners[i], now)))
			return -EMSGSIZE;
	return 0;
}

static int homak_diag_rpcs(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct homak_diag_rpcs *found;
	struct homak_diag_dump d;
	int err = 0;
	u32 max;

	homak_diag_begin(&d, skb, cb, HOMA_DIAG_RPCS);
	found = kmalloc(sizeof(*found), GFP_KERNEL);
	if (!found)
		return -ENOMEM;
	while (!err && !d.at->cursor.end) {
		max = homak_diag_fit(skb);
		if (!max)
			break;
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		err = homak_diag_rpcs_visit(&d, found, max);
		cond_resched();
	}
	kfree(found);
	return err ?: skb->len;
}

/* ---- peers ---- */

static bool homak_diag_peer(struct homak_diag_dump *d,
			    const struct homa_peer_look *look)
{
	struct sk_buff *skb = d->skb;
	void *head = homak_diag_open(d);
	int err;

	if (!head)
		return false;
	err = homak_diag_put_addr(skb, &look->addr,
				  (struct homa_link *)look->link) ||
	      nla_put_u32(skb, HOMA_DIAG_A_NUM_RPCS, look->rpcs) ||
	      nla_put_u32(skb, HOMA_DIAG_A_SERVER_RPCS, look->server_rpcs) ||
	      nla_put_u32(skb, HOMA_DIAG_A_IDLE_MS, look->idle_ms) ||
	      nla_put_u16(skb, HOMA_DIAG_A_SEG_SIZE, look->seg_size) ||
	      nla_put_u16(skb, HOMA_DIAG_A_CUTOFF_VERSION, look->cutoff_version) ||
	      nla_put(skb, HOMA_DIAG_A_CUTOFFS, sizeof(look->cutoffs),
		      look->cutoffs) ||
	      nla_put_u8(skb, HOMA_DIAG_A_ACKS_OWED, look->acks_owed) ||
	      nla_put_u8(skb, HOMA_DIAG_A_PROBES, look->probes);
	return homak_diag_close(d, head, err);
}

static int homak_diag_peers_visit(struct homak_diag_dump *d,
				  struct homa_peer_look *looks, u32 max)
{
	struct homak_cpu *cpu = homak_enter_wait(d->hnet);
	u32 n, i;

	if (!cpu) {
		d->at->cursor.end = true;
		return 0;
	}
	n = homa_peers_look(&cpu->ctx, &d->at->cursor, looks, max);
	homak_leave(cpu);
	for (i = 0; i < n; i++)
		if (WARN_ON_ONCE(!homak_diag_peer(d, &looks[i])))
			return -EMSGSIZE;
	return 0;
}

static int homak_diag_peers(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct homa_peer_look *looks;
	struct homak_diag_dump d;
	int err = 0;
	u32 max;

	homak_diag_begin(&d, skb, cb, HOMA_DIAG_PEERS);
	looks = kmalloc_array(HOMAK_DIAG_BATCH, sizeof(*looks), GFP_KERNEL);
	if (!looks)
		return -ENOMEM;
	while (!err && !d.at->cursor.end) {
		max = homak_diag_fit(skb);
		if (!max)
			break;
		err = homak_diag_peers_visit(&d, looks, max);
		cond_resched();
	}
	kfree(looks);
	return err ?: skb->len;
}

/* ---- devices ---- */

static int homak_diag_put_device(struct sk_buff *skb, struct homak_dev *hdev)
{
	const struct net_device *dev = rcu_dereference(hdev->dev);

	if (!dev)
		return 0;
	return nla_put_string(skb, HOMA_DIAG_A_IFNAME, dev->name) ||
	       nla_put_u32(skb, HOMA_DIAG_A_MTU, READ_ONCE(dev->mtu));
}

/* Writes a device. RCU read side. */
static bool homak_diag_dev(struct homak_diag_dump *d, struct homak_dev *hdev)
{
	struct homak_cpu *cpu = homak_enter(d->hnet);
	struct homa_link_state s;
	struct homa_link *link;
	struct sk_buff *skb = d->skb;
	void *head;
	int err;

	/* Settings are being changed, so this device is left out. */
	if (!cpu)
		return true;
	link = homak_dev_link(hdev);
	homa_link_state(&cpu->ctx, link, &s);
	homak_leave(cpu);
	head = homak_diag_open(d);
	if (!head)
		return false;
	err = nla_put_u32(skb, HOMA_DIAG_A_IFINDEX,
			  (u32)READ_ONCE(hdev->ifindex)) ||
	      homak_diag_put_device(skb, hdev) ||
	      nla_put_u32(skb, HOMA_DIAG_A_RTT_BYTES, s.rtt_bytes) ||
	      nla_put_u32(skb, HOMA_DIAG_A_MAX_INCOMING, s.max_incoming) ||
	      nla_put_u32(skb, HOMA_DIAG_A_RESEND_US, s.resend_us) ||
	      nla_put_u32(skb, HOMA_DIAG_A_TIMEOUT_US, s.timeout_us) ||
	      nla_put_u32(skb, HOMA_DIAG_A_RTT_US, s.rtt_us) ||
	      nla_put_u32(skb, HOMA_DIAG_A_SENDING, s.sending) ||
	      nla_put_u32(skb, HOMA_DIAG_A_GRANTING, s.granting) ||
	      nla_put_u32(skb, HOMA_DIAG_A_WAITING, s.waiting) ||
	      nla_put_u32(skb, HOMA_DIAG_A_WITHHELD, homa_link_withheld(link)) ||
	      nla_put_u32(skb, HOMA_DIAG_A_LINK,
			  (u32)READ_ONCE(homak_dev_of(link)->ifindex)) ||
	      homak_put_u64(skb, HOMA_DIAG_A_BACKLOG_NS, s.backlog_ns);
	return homak_diag_close(d, head, err);
}

static int homak_diag_devs(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct homak_diag_dump d;
	struct homak_dev *hdev;
	u32 i, index = 0;
	bool told;

	homak_diag_begin(&d, skb, cb, HOMA_DIAG_DEVS);
	rcu_read_lock();
	for (i = 0; i < HOMAK_DEV_BUCKETS; i++) {
		hlist_for_each_entry_rcu(hdev, &d.hnet->devs[i], node) {
			if (index++ < d.at->index)
				continue;
			/* The engine's locks are those of softirqs, too. */
			local_bh_disable();
			told = homak_diag_dev(&d, hdev);
			local_bh_enable();
			if (!told)
				goto out;
			d.at->index = index;
		}
	}
out:
	rcu_read_unlock();
	return skb->len;
}

/* ---- the family ---- */

static const struct genl_ops homak_diag_ops[] = {
	{ .cmd = HOMA_DIAG_SOCKS, .dumpit = homak_diag_socks },
	{ .cmd = HOMA_DIAG_RPCS, .dumpit = homak_diag_rpcs },
	{ .cmd = HOMA_DIAG_PEERS, .dumpit = homak_diag_peers },
	{ .cmd = HOMA_DIAG_DEVS, .dumpit = homak_diag_devs },
};

/* There are no attributes to ask with yet, so maxattr is 0. */
static struct genl_family homak_diag_family = {
	.name = HOMA_DIAG_FAMILY,
	.version = HOMA_DIAG_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = homak_diag_ops,
	.n_ops = ARRAY_SIZE(homak_diag_ops),
	.resv_start_op = HOMA_DIAG_DEVS + 1,
};

int __init homak_diag_init(void)
{
	return genl_register_family(&homak_diag_family);
}

void homak_diag_exit(void)
{
	genl_unregister_family(&homak_diag_family);
}
