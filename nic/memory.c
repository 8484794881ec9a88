// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The link in memory. One lock guards the link and all queues: it exists to
 * torment what stands above it, not to be fast. A packet is copied once when
 * sent and freed when released, so that memory checkers see any use after that.
 */
#include "nic_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nic_backend.h"

#define OVERTAKE 8 /* most packets that a reordered packet passes */

/* struct mem_packet - a copy of a packet; @rx.data points to @bytes */
struct mem_packet {
	/* The next packet in the receiver's queue. */
	struct mem_packet *next;
	struct nic_rx rx;
	u8 bytes[];
};

/**
 * struct mem - one nic
 * @nic: the part that nic.c knows.
 * @link: the link to which it is attached.
 * @next: the next nic of the link.
 * @queue: the first of the packets that were not received yet.
 * @n_queue: the number of these packets.
 * @fd: an eventfd, which is written when a packet comes while @armed.
 * @armed: true if the nic's thread may be asleep.
 */
struct mem {
	struct nic nic;
	struct nic_memory *link;
	struct mem *next;
	struct mem_packet *queue;
	u32 n_queue;
	int fd;
	bool armed;
};

/**
 * struct nic_memory - the link
 * @lock: protects all fields, and all nics of the link.
 * @config: what it does to packets.
 * @nics: the first of its nics.
 * @random: the state of the generator.
 */
struct nic_memory {
	pthread_mutex_t lock;
	struct nic_memory_config config;
	struct mem *nics;
	u64 random;
};

static struct mem *mem_of(const struct nic *nic)
{
	return (struct mem *)homa_container_of(nic, const struct mem, nic);
}

/* Draw a random number (splitmix64). */
static u64 draw(struct nic_memory *link)
{
	u64 z = link->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static bool happens(struct nic_memory *link, u32 per_million)
{
	return per_million && draw(link) % 1000000 < per_million;
}

static struct mem *find(struct nic_memory *link, const struct homa_addr *addr)
{
	struct mem *m;

	for (m = link->nics; m; m = m->next)
		if (homa_addr_equal(&m->nic.info.address, addr))
			break;
	return m;
}

static void wake(struct mem *m)
{
	u64 one = 1;

	if (!m->armed)
		return;
	m->armed = false;
	if (write(m->fd, &one, sizeof(one)) < 0)
		return; /* The counter is full, so the descriptor is readable. */
}

static void enqueue(struct nic_memory *link, struct mem *to,
		    const struct mem *from, const struct nic_tx *tx)
{
	u32 len = tx->hdr_len + tx->payload_len;
	struct mem_packet **at = &to->queue;
	struct mem_packet *pkt;
	u32 behind = to->n_queue;

	if (to->n_queue >= link->config.queue) {
		to->nic.stats.rx_dropped++;
		return;
	}
	pkt = calloc(1, sizeof(*pkt) + len);
	if (!pkt) {
		to->nic.stats.rx_dropped++;
		return;
	}
	memcpy(pkt->bytes, tx->hdr, tx->hdr_len);
	if (tx->payload_len)
		memcpy(pkt->bytes + tx->hdr_len, tx->payload, tx->payload_len);
	if (len && happens(link, link->config.corrupt)) {
		u64 bit = draw(link) % ((u64)len * 8);

		pkt->bytes[bit / 8] ^= (u8)(1 << (bit % 8));
	}
	pkt->rx.data = pkt->bytes;
	pkt->rx.len = len;
	pkt->rx.prio = tx->prio;
	pkt->rx.src = from->nic.info.address;
	pkt->rx.dst = to->nic.info.address;
	pkt->rx.token = (u64)(uintptr_t)pkt;
	if (behind && happens(link, link->config.reorder))
		behind -= (u32)(draw(link) % homa_min_u32(behind, OVERTAKE)) + 1;
	while (behind--)
		at = &(*at)->next;
	pkt->next = *at;
	*at = pkt;
	to->n_queue++;
	wake(to);
}

static void send_error(struct mem *to, const struct homa_addr *dst,
		       const u8 *hdr, u32 len, int error, u32 mtu)
{
	struct nic_error e = nic_error_for(dst, hdr, len, error, mtu);

	nic_errq_push(&to->nic.errq, &e);
	to->nic.stats.icmp_errors++;
	wake(to);
}

static u32 room_for(const struct nic_memory *link, const struct homa_addr *dst)
{
	return link->config.mtu - (homa_addr_is_v4(dst) ? 20 : 40);
}

static int mem_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	struct mem *m = mem_of(nic);
	struct nic_memory *link = m->link;

	pthread_mutex_lock(&link->lock);
	for (int i = 0; i < n; i++) {
		const struct nic_tx *tx = &pkts[i];
		u32 len = tx->hdr_len + tx->payload_len;
		struct mem *to = find(link, &tx->dst);

		if (!to || len > room_for(link, &tx->dst)) {
			send_error(m, &tx->dst, tx->hdr, tx->hdr_len,
				   to ? EMSGSIZE : EHOSTUNREACH,
				   link->config.mtu);
			nic->stats.tx_errors++;
			continue;
		}
		nic->stats.tx_packets++;
		nic->stats.tx_bytes += len;
		if (happens(link, link->config.loss))
			continue;
		enqueue(link, to, m, tx);
		if (happens(link, link->config.duplicate))
			enqueue(link, to, m, tx);
	}
	pthread_mutex_unlock(&link->lock);
	return n;
}

static int mem_rx(struct nic *nic, struct nic_rx *pkts, int n)
{
	struct mem *m = mem_of(nic);
	int got = 0;
	u64 count;

	pthread_mutex_lock(&m->link->lock);
	m->armed = false;
	while (got < n && m->queue) {
		struct mem_packet *pkt = m->queue;

		m->queue = pkt->next;
		m->n_queue--;
		pkts[got++] = pkt->rx;
		nic->stats.rx_packets++;
		nic->stats.rx_bytes += pkt->rx.len;
	}
	if (!m->queue && read(m->fd, &count, sizeof(count)) < 0)
		count = 0; /* nothing was signalled */
	pthread_mutex_unlock(&m->link->lock);
	return got;
}

static void mem_rx_release(struct nic *nic, const struct nic_rx *pkts, int n)
{
	(void)nic;
	for (int i = 0; i < n; i++)
		free((void *)(uintptr_t)pkts[i].token);
}

static int mem_tx_room(struct nic *nic)
{
	(void)nic;
	return 1024;
}

static void mem_flush(struct nic *nic)
{
	(void)nic;
}

static int mem_errors(struct nic *nic, struct nic_error *errors, int n)
{
	struct mem *m = mem_of(nic);
	int taken;

	pthread_mutex_lock(&m->link->lock);
	taken = nic_errq_take(&nic->errq, errors, n);
	pthread_mutex_unlock(&m->link->lock);
	return taken;
}

static void mem_port_unreachable(struct nic *nic, const struct nic_rx *pkt)
{
	struct mem *m = mem_of(nic);
	struct mem *to;

	pthread_mutex_lock(&m->link->lock);
	to = find(m->link, &pkt->src);
	if (to && !happens(m->link, m->link->config.loss))
		send_error(to, &pkt->dst, pkt->data, pkt->len, ECONNREFUSED, 0);
	pthread_mutex_unlock(&m->link->lock);
}

static int mem_fd(const struct nic *nic)
{
	return mem_of(nic)->fd;
}

static bool mem_arm(struct nic *nic)
{
	struct mem *m = mem_of(nic);
	bool waiting;

	pthread_mutex_lock(&m->link->lock);
	waiting = m->queue || nic->errq.head != nic->errq.tail;
	m->armed = !waiting;
	pthread_mutex_unlock(&m->link->lock);
	return waiting;
}

static int mem_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu)
{
	struct mem *m = mem_of(nic);
	bool known;

	pthread_mutex_lock(&m->link->lock);
	known = find(m->link, dst) != NULL;
	pthread_mutex_unlock(&m->link->lock);
	if (!known)
		return -EHOSTUNREACH;
	*mtu = m->link->config.mtu;
	return 0;
}

static void mem_close(struct nic *nic)
{
	struct mem *m = mem_of(nic);
	struct mem **at;

	pthread_mutex_lock(&m->link->lock);
	for (at = &m->link->nics; *at != m;)
		at = &(*at)->next;
	*at = m->next;
	pthread_mutex_unlock(&m->link->lock);
	while (m->queue) {
		struct mem_packet *pkt = m->queue;

		m->queue = pkt->next;
		free(pkt);
	}
	close(m->fd);
	free(m);
}

static const struct nic_ops mem_ops = {
	.close = mem_close,
	.rx = mem_rx,
	.rx_release = mem_rx_release,
	.tx_room = mem_tx_room,
	.tx = mem_tx,
	.flush = mem_flush,
	.errors = mem_errors,
	.port_unreachable = mem_port_unreachable,
	.fd = mem_fd,
	.arm = mem_arm,
	.route = mem_route,
};

int nic_memory_create(struct nic_memory **out,
		      const struct nic_memory_config *config)
{
	struct nic_memory *link = calloc(1, sizeof(*link));

	*out = link;
	if (!link)
		return -ENOMEM;
	pthread_mutex_init(&link->lock, NULL);
	link->config = *config;
	link->random = config->seed;
	if (!link->config.mtu)
		link->config.mtu = 1500;
	link->config.mtu = homa_max_u32(link->config.mtu, NIC_MIN_MTU);
	if (!link->config.queue)
		link->config.queue = 4096;
	return 0;
}

void nic_memory_configure(struct nic_memory *link,
			  const struct nic_memory_config *config)
{
	pthread_mutex_lock(&link->lock);
	link->config.loss = config->loss;
	link->config.duplicate = config->duplicate;
	link->config.reorder = config->reorder;
	link->config.corrupt = config->corrupt;
	pthread_mutex_unlock(&link->lock);
}

int nic_memory_attach(struct nic_memory *link, const struct homa_addr *addr,
		      struct nic **out)
{
	static const u8 unspecified[16];
	struct mem *m;
	int rc = 0;

	*out = NULL;
	if (addr->zero || !memcmp(addr->ip, unspecified, sizeof(unspecified)))
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->nic.ops = &mem_ops;
	m->nic.info.name = "memory";
	m->nic.info.address = *addr;
	m->nic.info.mtu = link->config.mtu;
	m->nic.info.max_segs = 1;
	m->nic.info.tcp = true;
	snprintf(m->nic.info.detail, sizeof(m->nic.info.detail),
		 "a link in memory");
	m->link = link;
	m->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (m->fd < 0) {
		rc = -errno;
		free(m);
		return rc;
	}
	pthread_mutex_lock(&link->lock);
	if (find(link, addr)) {
		rc = -EADDRINUSE;
	} else {
		m->next = link->nics;
		link->nics = m;
	}
	pthread_mutex_unlock(&link->lock);
	if (rc) {
		close(m->fd);
		free(m);
		return rc;
	}
	*out = &m->nic;
	return 0;
}

void nic_memory_destroy(struct nic_memory *link)
{
	if (!link)
		return;
	pthread_mutex_destroy(&link->lock);
	free(link);
}
