/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A link in memory for tests: nics attach to it with an address and exchange
 * packets, which it loses, doubles, reorders and damages as told, by a seeded
 * generator. The nics of one link may be used by different threads.
 */
#ifndef HOMA_NIC_MEMORY_H
#define HOMA_NIC_MEMORY_H

#include "nic.h"

struct nic_memory;

/**
 * struct nic_memory_config - what the link does to packets
 * @seed: of the generator; with one thread equal seeds give equal runs.
 * @mtu: IP MTU, 0 means 1500. Larger packets are refused with EMSGSIZE.
 * @queue: packets that wait for a receiver at most, 0 means 4096; more are lost.
 * @loss: packets lost, of a million.
 * @duplicate: packets delivered twice, of a million.
 * @reorder: packets that overtake up to 8 earlier ones, of a million.
 * @corrupt: packets with one bit flipped, of a million.
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

/** nic_memory_create() - 0 or -ENOMEM. */
int nic_memory_create(struct nic_memory **out,
		      const struct nic_memory_config *config);

/** nic_memory_attach() - a nic with @addr; 0, -EADDRINUSE, -EINVAL (an
 *  unspecified address), -ENOMEM or another errno. Closed by nic_close(). */
int nic_memory_attach(struct nic_memory *link, const struct homa_addr *addr,
		      struct nic **out);

/** nic_memory_configure() - change the rates from now on; seed, mtu and queue
 *  of @config are ignored. */
void nic_memory_configure(struct nic_memory *link,
			  const struct nic_memory_config *config);

/** nic_memory_destroy() - after all its nics have been closed. */
void nic_memory_destroy(struct nic_memory *link);

#endif
