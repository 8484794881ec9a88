// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Devices and the engine's links: loopback and each device that packets leave the machine
 * by are paced apart. Devices above one of these (VLAN, macvlan, bond, bridge: lower.c)
 * give their packets to its link, by homak_dev.link, so that nothing is looked for when a
 * packet is sent or comes. What was begun on another link before stays there.
 *
 * A link is made when the first packet meets its device and lives as long as the
 * namespace, because peers and RPCs point to it; only the device goes away. If it comes
 * back (from another namespace) it gets its link again, and a new device takes over the
 * link of one that is gone: so there are never more links than devices at a time. What
 * old RPCs still send through such a link goes where routing says, as ever.
 * The rate of real hardware is asked from the driver, later and in a work item
 * since that takes the RTNL; virtual devices tell fictions (veth: 10 Gbit/s)
 * and are paced only if link_mbps says so.
 */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "homa_dst.h"
#include "homa_net.h"
#include "homa_transmit.h"

#define HOMAK_CTRL_SLOTS 128u
/* most links without a device that are looked at for a new one */
#define HOMAK_DEV_LOOKS 8

static struct hlist_head *homak_dev_bucket(struct homak_net *hnet, int ifindex)
{
	return &hnet->devs[(u32)ifindex % HOMAK_DEV_BUCKETS];
}

static struct homak_dev *homak_dev_find(struct homak_net *hnet, int ifindex)
{
	struct homak_dev *hdev;

	hlist_for_each_entry_rcu(hdev, homak_dev_bucket(hnet, ifindex), node,
				 lockdep_is_held(&hnet->dev_lock))
		if (READ_ONCE(hdev->ifindex) == ifindex)
			return hdev;
	return NULL;
}

/* ---- pulling again ---- */

static void homak_dev_pull(struct homak_dev *hdev)
{
	struct homak_cpu *cpu = homak_enter(hdev->hnet);

	if (unlikely(!cpu)) {
		/* Settings are being changed. Nobody else would ask for this device's
		 * packets, so the timer does. */
		hrtimer_start(&hdev->timer, ms_to_ktime(1),
			      HRTIMER_MODE_REL_SOFT);
		return;
	}
	homak_xmit(cpu, hdev);
	homak_leave(cpu);
}

static void homak_dev_again(struct homak_later *later)
{
	homak_dev_pull(container_of(later, struct homak_dev, again));
}

static enum hrtimer_restart homak_dev_timer(struct hrtimer *timer)
{
	/* This may start the timer again. */
	homak_dev_pull(container_of(timer, struct homak_dev, timer));
	return HRTIMER_NORESTART;
}

/* ---- rates ---- */

static u32 homak_dev_speed(struct net_device *dev)
{
	struct ethtool_link_ksettings settings;

	if (!dev->dev.parent || __ethtool_get_link_ksettings(dev, &settings) ||
	    settings.base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return settings.base.speed;
}

/* Asks the device for its rate. RTNL is held. */
static void homak_dev_measure(struct homak_dev *hdev, struct net_device *dev)
{
	u32 mbps = homak_dev_speed(dev);

	if (!mbps && !(dev->flags & IFF_LOOPBACK))
		mbps = READ_ONCE(hdev->hnet->settings.link_mbps);
	WRITE_ONCE(hdev->rate_mbps, mbps);
	homa_link_set(homak_dev_own(hdev), mbps, READ_ONCE(dev->mtu));
}

/* Computes the values of all links anew, because settings have changed. No thread is in the
 * engine. */
void homak_devs_derive(struct homak_net *hnet)
{
	struct homak_dev *hdev;
	int i;

	spin_lock_bh(&hnet->dev_lock);
	for (i = 0; i < HOMAK_DEV_BUCKETS; i++)
		hlist_for_each_entry(hdev, &hnet->devs[i], node)
			homak_dev_look(hdev);
	spin_unlock_bh(&hnet->dev_lock);
}

static void homak_dev_share(struct homak_dev *hdev, struct net_device *dev);

static void homak_dev_work(struct work_struct *work)
{
	struct homak_dev *hdev = container_of(work, struct homak_dev, measure);
	struct net_device *dev;

	rtnl_lock();
	dev = rtnl_dereference(hdev->dev);
	if (dev) {
		homak_dev_measure(hdev, dev);
		spin_lock_bh(&hdev->hnet->dev_lock);
		if (rcu_access_pointer(hdev->dev) == dev)
			homak_dev_share(hdev, dev);
		spin_unlock_bh(&hdev->hnet->dev_lock);
	}
	rtnl_unlock();
}

/* ---- coming and going ---- */

static struct homak_dev *homak_dev_make(struct homak_net *hnet)
{
	size_t size = HOMAK_DEV_LINK + homa_link_size(HOMAK_CTRL_SLOTS);
	struct homak_dev *hdev = kzalloc(size, GFP_ATOMIC | __GFP_NOWARN);

	if (!hdev)
		return NULL;
	hdev->hnet = hnet;
	hdev->link = homak_dev_own(hdev);
	homa_link_init(hdev->link, hnet->engine, 0, ETH_DATA_LEN,
		       HOMAK_CTRL_SLOTS);
	homak_hrtimer_setup(&hdev->timer, homak_dev_timer, HRTIMER_MODE_ABS_SOFT);
	homak_later_init(&hdev->again, homak_dev_again);
	INIT_WORK(&hdev->measure, homak_dev_work);
	INIT_LIST_HEAD(&hdev->left);
	return hdev;
}

/* Finds a link that no device and no qdisc has, if there is one among the first that have no
 * device. homak_net.dev_lock is held. */
static struct homak_dev *homak_dev_left(struct homak_net *hnet)
{
	struct homak_dev *hdev;
	int looks;

	for (looks = 0; looks < HOMAK_DEV_LOOKS; looks++) {
		hdev = list_first_entry_or_null(&hnet->devs_left,
						struct homak_dev, left);
		if (!hdev)
			return NULL;
		if (!atomic_read(&hdev->q_limits) && !atomic_read(&hdev->q_bytes))
			return hdev;
		/* Packets of its last device still leave, and the others are looked at
		 * first the next time. */
		list_move_tail(&hdev->left, &hnet->devs_left);
	}
	return NULL;
}

/* Lets packets of @hdev's device go by the link of @to, which may be @hdev.
 * homak_net.dev_lock is held. */
static void homak_dev_use(struct homak_dev *hdev, struct homak_dev *to)
{
	if (!hlist_unhashed(&hdev->shares))
		hlist_del_init(&hdev->shares);
	if (to != hdev)
		hlist_add_head(&hdev->shares, &to->sharers);
	WRITE_ONCE(hdev->link, homak_dev_own(to));
}

/* Makes a link for a device that is new here, or gives it the link of one that is gone;
 * homak_net.dev_lock is held. A reader of the lists may miss some meanwhile, and then looks
 * again under the lock. */
static struct homak_dev *homak_dev_new(struct homak_net *hnet,
				       struct net_device *dev)
{
	struct homak_dev *hdev = homak_dev_left(hnet);

	if (hdev)
		hlist_del_rcu(&hdev->node);
	else
		hdev = homak_dev_make(hnet);
	if (!hdev)
		return NULL;
	WRITE_ONCE(hdev->ifindex, dev->ifindex);
	hlist_add_head_rcu(&hdev->node, homak_dev_bucket(hnet, dev->ifindex));
	return hdev;
}

/*
 * Returns the struct of @dev, which is made if need be; homak_net.dev_lock is held. A device
 * on its way out, or to another namespace, is down before the notifier says so: it gets no
 * struct then, because nothing would take that away.
 */
static struct homak_dev *homak_dev_take(struct homak_net *hnet,
					struct net_device *dev)
{
	struct homak_dev *hdev = homak_dev_find(hnet, dev->ifindex);

	if (dev->reg_state != NETREG_REGISTERED || !netif_running(dev) ||
	    !net_eq(dev_net(dev), hnet->net))
		return hdev;
	if (!hdev)
		hdev = homak_dev_new(hnet, dev);
	if (hdev && rcu_access_pointer(hdev->dev) != dev) {
		/* The rate is asked for soon; packets need a size at once. */
		homa_link_set(homak_dev_own(hdev), 0, READ_ONCE(dev->mtu));
		homak_dev_use(hdev, hdev);
		list_del_init(&hdev->left);
		rcu_assign_pointer(hdev->dev, dev);
		homak_dev_look(hdev);
	}
	return hdev;
}

/* Chooses the link for packets of @dev, whose struct is @hdev: that of the device by which they
 * leave, if it can be had. homak_net.dev_lock is held. */
static void homak_dev_share(struct homak_dev *hdev, struct net_device *dev)
{
	struct homak_dev *to = NULL;
	struct net_device *end;

	rcu_read_lock();
	end = atomic_read(&hdev->q_limits) ? dev : homak_lower(dev);
	if (end != dev)
		to = homak_dev_take(hdev->hnet, end);
	if (!to || rcu_access_pointer(to->dev) != end)
		to = hdev;
	homak_dev_use(hdev, to);
	rcu_read_unlock();
}

static noinline struct homak_dev *homak_dev_attach(struct homak_net *hnet,
						   struct net_device *dev)
{
	struct homak_dev *hdev;

	spin_lock_bh(&hnet->dev_lock);
	hdev = homak_dev_take(hnet, dev);
	if (hdev && rcu_access_pointer(hdev->dev) == dev)
		homak_dev_share(hdev, dev);
	spin_unlock_bh(&hnet->dev_lock);
	return hdev;
}

struct homak_dev *homak_dev_get(struct homak_net *hnet, struct net_device *dev)
{
	struct homak_dev *hdev = homak_dev_find(hnet, dev->ifindex);

	if (likely(hdev && rcu_access_pointer(hdev->dev) == dev))
		return hdev;
	return homak_dev_attach(hnet, dev);
}

HOMAK_HOT struct homak_dev *homak_dev_out(struct homak_cpu *cpu,
					  struct homak_sock *hsk,
					  const struct homa_addr *to, u32 *mtu,
					  struct in6_addr *local,
					  struct homak_route **way)
{
	struct homak_route *route = NULL;
	struct homak_dev *hdev;
	struct dst_entry *dst;

	homak_rcu_begin();
	dst = homak_route_get(cpu, NULL, to, &hsk->bound,
			      (const struct sock *)hsk, &route);
	if (IS_ERR(dst)) {
		hdev = ERR_CAST(dst);
	} else {
		hdev = homak_dev_get(cpu->hnet, homak_dst_dev(dst));
		*mtu = homak_route_mtu(route, dst);
		if (likely(homak_route_v4(route)))
			ipv6_addr_set_v4mapped(route->v4.saddr, local);
		else
			*local = route->v6.saddr;
		if (unlikely(!hdev))
			hdev = ERR_PTR(-ENETDOWN);
	}
	homak_rcu_end();
	*way = route;
	return hdev;
}

/* @hdev has no device any more, and another one may get its link: the devices that share it get
 * their own again. homak_net.dev_lock is held. */
static void homak_dev_leave(struct homak_net *hnet, struct homak_dev *hdev)
{
	struct hlist_node *tmp;
	struct homak_dev *above;

	RCU_INIT_POINTER(hdev->dev, NULL);
	homak_dev_use(hdev, hdev);
	hlist_for_each_entry_safe(above, tmp, &hdev->sharers, shares)
		homak_dev_use(above, above);
	list_move_tail(&hdev->left, &hnet->devs_left);
}

static void homak_dev_gone(struct homak_net *hnet, struct net_device *dev)
{
	struct homak_dev *hdev;

	spin_lock_bh(&hnet->dev_lock);
	hdev = homak_dev_find(hnet, dev->ifindex);
	if (hdev)
		homak_dev_leave(hnet, hdev);
	spin_unlock_bh(&hnet->dev_lock);
	homak_routes_flush(hnet);
}

/* Has @dev looked at again if its namespace knows it. RCU read side. */
static int homak_dev_again_above(struct net_device *dev,
				 struct netdev_nested_priv *priv)
{
	struct homak_net *hnet = homak_net(dev_net(dev));
	struct homak_dev *hdev;

	if (!homak_net_engine(hnet))
		return 0;
	hdev = homak_dev_find(hnet, dev->ifindex);
	/* The device may be back from another namespace. */
	if (hdev && rcu_access_pointer(hdev->dev) != dev)
		homak_dev_attach(hnet, dev);
	else if (hdev)
		homak_dev_look(hdev);
	return 0;
}

/* Something about @dev has changed: it and the devices above it are looked at again. Drivers
 * may sleep when they are asked, and want other locks than those held here. */
static void homak_dev_changed(struct net_device *dev)
{
	rcu_read_lock();
	homak_dev_again_above(dev, NULL);
	netdev_walk_all_upper_dev_rcu(dev, homak_dev_again_above, NULL);
	rcu_read_unlock();
}

static int homak_dev_event(struct notifier_block *nb, unsigned long event,
			   void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct netdev_notifier_changeupper_info *above = ptr;
	struct homak_net *hnet = homak_net(dev_net(dev));

	if (!homak_net_engine(hnet))
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UNREGISTER:
		homak_dev_gone(hnet, dev);
		break;
	case NETDEV_CHANGEUPPER:
		/* The device is no longer below the other one, or just came there. */
		homak_dev_changed(above->upper_dev);
		fallthrough;
	case NETDEV_CHANGE:
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGELOWERSTATE:
	case NETDEV_BONDING_FAILOVER:
		homak_dev_changed(dev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block homak_dev_notifier = {
	.notifier_call = homak_dev_event,
};

int __init homak_dev_init(void)
{
	return register_netdevice_notifier(&homak_dev_notifier);
}

void homak_dev_exit(void)
{
	unregister_netdevice_notifier(&homak_dev_notifier);
}

void homak_devs_stop(struct homak_net *hnet)
{
	struct homak_dev *hdev;
	int i;

	for (i = 0; i < HOMAK_DEV_BUCKETS; i++) {
		hlist_for_each_entry(hdev, &hnet->devs[i], node) {
			cancel_work_sync(&hdev->measure);
			hrtimer_cancel(&hdev->timer);
			homak_later_wait(&hdev->again);
		}
	}
	/* The last pulls end, which may have started timers and have asked for another turn. */
	synchronize_net();
	for (i = 0; i < HOMAK_DEV_BUCKETS; i++) {
		hlist_for_each_entry(hdev, &hnet->devs[i], node) {
			hrtimer_cancel(&hdev->timer);
			homak_later_wait(&hdev->again);
		}
	}
	/* A turn that was waited for may still run, and has nothing to send. */
	synchronize_net();
}

void homak_devs_free(struct homak_net *hnet)
{
	struct homak_dev *hdev;
	struct hlist_node *tmp;
	int i;

	for (i = 0; i < HOMAK_DEV_BUCKETS; i++)
		hlist_for_each_entry_safe(hdev, tmp, &hnet->devs[i], node)
			kfree(hdev);
}
