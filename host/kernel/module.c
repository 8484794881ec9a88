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

struct homak_step {
	/* What is set up, for messages. */
	const char *name;
	/* Sets it up; 0 or -errno. */
	int (*init)(void);
	/* Takes it down. */
	void (*exit)(void);
};

static const struct homak_step homak_steps[] = {
	{ "memory", homak_memory_init, homak_memory_exit },
	{ "turns", homak_laters_init, homak_laters_exit },
	{ "namespaces", homak_nets_init, homak_nets_exit },
	{ "devices", homak_dev_init, homak_dev_exit },
	{ "qdisc", homak_qdisc_init, homak_qdisc_exit },
	{ "diag", homak_diag_init, homak_diag_exit },
	{ "protocol", homak_rx_init, homak_rx_exit },
	{ "sockets", homak_sockets_init, homak_sockets_exit },
	{ "streams", homak_streams_init, homak_streams_exit },
};

static void homak_undo(size_t n)
{
	while (n--)
		homak_steps[n].exit();
}

static int __init homak_load(void)
{
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(homak_steps); i++) {
		err = homak_steps[i].init();
		if (err) {
			pr_err("homa: cannot set up %s: %d\n",
			       homak_steps[i].name, err);
			homak_undo(i);
			return err;
		}
	}
	return 0;
}

static void __exit homak_unload(void)
{
	homak_undo(ARRAY_SIZE(homak_steps));
}

module_init(homak_load);
module_exit(homak_unload);
/* What is generated for the loader names these two, which a compiler that takes our files for the
 * whole program does not know. */
int init_module(void) __visible;
void cleanup_module(void) __visible;

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("Homa transport protocol (IP protocol 146)");
MODULE_VERSION("0.5");
