/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A link in memory for tests: nics attach to it with an address and exchange
 * packets, which it loses, doubles, reorders and damages as told, by a seeded
 * generator. The nics of one link may be used by different threads.
 *
 * Written by: the caller of nic_memory_create(), which copies it.
 */
#ifndef HOMA_NIC_MEMORY_H
#define HOMA_NIC_MEMORY_H

#include "nic.h"

struct nic_memory;

/**
 * struct nic_memory_config - what the link does to packets
 * @seed: the generator's seed; with one thread equal seeds give equal runs.
 * @mtu: the IP MTU in bytes, 0 means 1500. Larger packets are refused with EMSGSIZE.
 * @queue: the most packets that wait for a receiver, 0 means 4096; more are lost.
 * @loss: how many packets of a million are lost.
 * @duplicate: how many packets of a million are delivered twice.
 * @reorder: how many packets of a million overtake up to 8 earlier ones.
 * @corrupt: how many packets of a million get one bit flipped.
 */
struct nic_memory_config {
	u64 seed;
	u32 mtu;
	u32 queue;
	u32 loss;
	u32 duplicate;
	u32 reorder;
	u32 corrupt;
};

/** nic_memory_create() - make a link; 0 or -ENOMEM. */
int nic_memory_create(struct nic_memory **out,
		      const struct nic_memory_config *config);

/** nic_memory_attach() - make a nic with @addr, which nic_close() closes; 0, -EADDRINUSE,
 *  -EINVAL if the address is unspecified, -ENOMEM or another errno. */
int nic_memory_attach(struct nic_memory *link, const struct homa_addr *addr,
		      struct nic **out);

/** nic_memory_configure() - change the rates from now on; seed, mtu and queue
 *  of @config are ignored. */
void nic_memory_configure(struct nic_memory *link,
			  const struct nic_memory_config *config);

/** nic_memory_destroy() - free a link all of whose nics have been closed. */
void nic_memory_destroy(struct nic_memory *link);

#endif
