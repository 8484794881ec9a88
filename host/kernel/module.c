// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Loading and unloading. What others can call is registered last and taken
 * away first; sockets hold a reference to the module, so unloading waits for
 * none: it is refused while there are any.
 */
#include <linux/module.h>

#include "homa_kernel.h"
#include "homa_net.h"

struct lock_class_key homa_plat_lock_keys[HOMA_LOCK_CLASSES];
const char *const homa_plat_lock_names[HOMA_LOCK_CLASSES] = {
	[HOMA_LOCK_SHARD] = "homa_shard",
	[HOMA_LOCK_SOCK_TABLE] = "homa_sock_table",
	[HOMA_LOCK_SOCK] = "homa_sock",
	[HOMA_LOCK_PEER_TABLE] = "homa_peer_table",
	[HOMA_LOCK_PEER] = "homa_peer",
	[HOMA_LOCK_GRANT] = "homa_grant",
	[HOMA_LOCK_LINK] = "homa_link",
	[HOMA_LOCK_ONCE] = "homa_once",
};

struct homa_step {
	const char *name;
	int (*init)(void);
	void (*exit)(void);
};

static const struct homa_step homa_steps[] = {
	{ "memory", homa_memory_init, homa_memory_exit },
	{ "namespaces", homa_nets_init, homa_nets_exit },
	{ "devices", homa_dev_init, homa_dev_exit },
	{ "qdisc", homa_qdisc_init, homa_qdisc_exit },
	{ "diag", homa_diag_init, homa_diag_exit },
	{ "protocol", homa_rx_init, homa_rx_exit },
	{ "sockets", homa_sockets_init, homa_sockets_exit },
};

static void homa_undo(size_t n)
{
	while (n--)
		homa_steps[n].exit();
}

static int __init homa_load(void)
{
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(homa_steps); i++) {
		err = homa_steps[i].init();
		if (err) {
			pr_err("homa: cannot set up %s: %d\n",
			       homa_steps[i].name, err);
			homa_undo(i);
			return err;
		}
	}
	return 0;
}

static void __exit homa_unload(void)
{
	homa_undo(ARRAY_SIZE(homa_steps));
}

module_init(homa_load);
module_exit(homa_unload);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("Homa transport protocol (IP protocol 146)");
MODULE_VERSION("0.5");
