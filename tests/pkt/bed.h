/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host with one TCP engine, sockets and a clock that its user moves: what packet
 * scripts run against (lab/pkt calls it by ctypes). All times are virtual, in ns; errors
 * are negative errno values, and -EAGAIN says that the call would wait.
 */
#ifndef HOMA_PKT_BED_H
#define HOMA_PKT_BED_H

#include <stdint.h>

struct pkt_bed;

struct pkt_bed *pkt_bed_new(uint32_t mtu, int family, const void *local_ip,
			    uint64_t seed);
void pkt_bed_free(struct pkt_bed *bed);
/*
 * A setting of the engine, or "rcvbuf" and "rcvbuf_max", bytes of a receive buffer and
 * to how many it may grow, or "ended", connections in TIME_WAIT that are remembered in
 * less memory, no more than at first; -ENOENT: unknown.
 */
int pkt_bed_set(struct pkt_bed *bed, const char *parameter, int64_t value);
void pkt_bed_in(struct pkt_bed *bed, const void *ip_packet, uint32_t length);
/* The next packet that was sent, its length; 0: none. */
int pkt_bed_out(struct pkt_bed *bed, void *ip_packet, uint32_t room);
void pkt_bed_run(struct pkt_bed *bed, uint64_t now);
uint64_t pkt_bed_next(struct pkt_bed *bed);
int pkt_bed_socket(struct pkt_bed *bed);
int pkt_bed_bind(struct pkt_bed *bed, int fd, const void *ip, uint16_t port);
int pkt_bed_listen(struct pkt_bed *bed, int fd, int backlog);
int pkt_bed_connect(struct pkt_bed *bed, int fd, const void *ip, uint16_t port);
int pkt_bed_accept(struct pkt_bed *bed, int fd);
int pkt_bed_write(struct pkt_bed *bed, int fd, uint32_t length, int flags);
int pkt_bed_read(struct pkt_bed *bed, int fd, uint32_t length, int flags);
int pkt_bed_close(struct pkt_bed *bed, int fd);
int pkt_bed_shutdown(struct pkt_bed *bed, int fd, int how);
int pkt_bed_setsockopt(struct pkt_bed *bed, int fd, int level, int name,
		       const void *value, uint32_t length);
int pkt_bed_getsockopt(struct pkt_bed *bed, int fd, int level, int name,
		       void *value, uint32_t room);
int pkt_bed_poll(struct pkt_bed *bed, int fd);
int pkt_bed_info(struct pkt_bed *bed, int fd, const char *field, uint64_t *value);
/* A counter of the engine; -ENOENT: unknown. */
int pkt_bed_metric(struct pkt_bed *bed, const char *name, uint64_t *value);

#endif
