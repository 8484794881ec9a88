// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Attaching the XDP program. It hangs on a BPF link, whose life is that of the
 * descriptors to it, so that a killed process leaves nothing on the interface.
 * One interface takes one program: a second process, on another queue, finds the
 * first one's link by id, holds it too, and adds its sockets to the same map;
 * the program then lives until the last of them ends.
 */
#include "afxdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/homa_xdp.h"
#include "bpf/nic_xdp_object.h"

_Static_assert(HOMA_XDP_QUEUES == NIC_QUEUES, "the program knows so many queues");

#define PROG_NAME "homa_xdp"
/* The size in bytes of the bits for the ports of one queue. */
#define PORTS_BYTES (HOMA_XDP_PORT_WORDS * sizeof(u64))

/* libbpf writes to stderr unless told otherwise, a library must not. */
static int silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static void forget(struct afxdp_prog *prog)
{
	memset(prog, 0, sizeof(*prog));
	prog->link_fd = prog->xsks_fd = prog->addrs_fd = prog->ports_fd = -1;
}

/* Map the bits of the ports, which the program reads, so that setting one is no system call. */
static int map_ports(struct afxdp_prog *prog)
{
	void *at = mmap(NULL, PORTS_BYTES * HOMA_XDP_QUEUES,
			PROT_READ | PROT_WRITE, MAP_SHARED, prog->ports_fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	prog->ports = at;
	return 0;
}

static u64 *port_word(const struct afxdp_prog *prog, u32 queue, u16 port)
{
	return prog->ports + (size_t)queue * HOMA_XDP_PORT_WORDS + port / 64;
}

void afxdp_prog_port(const struct afxdp_prog *prog, u32 queue, u16 port, bool on)
{
	u64 *word = port_word(prog, queue, port);
	u64 bit = 1ull << (port % 64);

	if (on)
		__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
}

bool afxdp_prog_has_port(const struct afxdp_prog *prog, u32 queue, u16 port)
{
	u64 word =
		__atomic_load_n(port_word(prog, queue, port), __ATOMIC_RELAXED);

	return word >> (port % 64) & 1;
}

static int load(struct afxdp_prog *prog)
{
	struct bpf_map *map;
	int rc;

	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = PROG_NAME);
	prog->obj =
		bpf_object__open_mem(nic_xdp_object, nic_xdp_object_len, &opts);
	if (!prog->obj)
		return -errno;
	rc = bpf_object__load(prog->obj);
	if (rc)
		goto err;
	rc = -ENOENT;
	map = bpf_object__find_map_by_name(prog->obj, "homa_xsks");
	if (!map)
		goto err;
	prog->xsks_fd = bpf_map__fd(map);
	map = bpf_object__find_map_by_name(prog->obj, "homa_addrs");
	if (!map)
		goto err;
	prog->addrs_fd = bpf_map__fd(map);
	map = bpf_object__find_map_by_name(prog->obj, "homa_ports");
	if (!map)
		goto err;
	prog->ports_fd = bpf_map__fd(map);
	rc = map_ports(prog);
	if (rc)
		goto err;
	return 0;
err:
	bpf_object__close(prog->obj);
	forget(prog);
	return rc;
}

static int attach_own(struct afxdp_prog *prog, const struct nic_netif *netif,
		      bool generic)
{
	struct bpf_program *bp;
	int rc;

	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	rc = load(prog);
	if (rc)
		return rc;
	bp = bpf_object__find_program_by_name(prog->obj, PROG_NAME);
	prog->link_fd = bpf_link_create(bpf_program__fd(bp), netif->index,
					BPF_XDP, &opts);
	if (prog->link_fd < 0) {
		rc = prog->link_fd;
		bpf_object__close(prog->obj);
		forget(prog); /* The maps were closed with the object. */
		return rc;
	}
	prog->generic = generic;
	return 0;
}

/* Find the link by the program's id, because interface indexes repeat between namespaces. */
static int find_link(u32 prog_id)
{
	u32 id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info;
		u32 len = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue;
		memset(&info, 0, sizeof(info));
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    info.type == BPF_LINK_TYPE_XDP && info.prog_id == prog_id)
			return fd;
		close(fd);
	}
	return -ENOENT;
}

static int find_maps(struct afxdp_prog *prog, u32 prog_id, char *name)
{
	struct bpf_prog_info info;
	u32 ids[8], len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(prog_id);
	int rc;

	if (fd < 0)
		return fd;
	memset(&info, 0, sizeof(info));
	info.nr_map_ids = HOMA_ARRAY_SIZE(ids);
	info.map_ids = (u64)(uintptr_t)ids;
	rc = bpf_obj_get_info_by_fd(fd, &info, &len);
	close(fd);
	if (rc)
		return rc;
	snprintf(name, BPF_OBJ_NAME_LEN, "%s", info.name);
	if (strcmp(info.name, PROG_NAME))
		return -EBUSY;
	for (u32 i = 0; i < info.nr_map_ids && i < HOMA_ARRAY_SIZE(ids); i++) {
		struct bpf_map_info map;

		fd = bpf_map_get_fd_by_id(ids[i]);
		len = sizeof(map);
		memset(&map, 0, sizeof(map));
		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &map, &len)) {
			if (fd >= 0)
				close(fd);
			continue;
		}
		if (!strcmp(map.name, "homa_xsks") && prog->xsks_fd < 0)
			prog->xsks_fd = fd;
		else if (!strcmp(map.name, "homa_addrs") && prog->addrs_fd < 0 &&
			 map.value_size == sizeof(struct homa_xdp_addrs))
			prog->addrs_fd = fd;
		else if (!strcmp(map.name, "homa_ports") &&
			 prog->ports_fd < 0 && map.value_size == PORTS_BYTES &&
			 map.max_entries == HOMA_XDP_QUEUES)
			prog->ports_fd = fd;
		else
			close(fd);
	}
	if (prog->xsks_fd < 0 || prog->addrs_fd < 0 || prog->ports_fd < 0)
		return -ESTALE;
	return map_ports(prog);
}

/* Share the program that another process has attached. Returns 0, -ENOENT if it is not there any
 * more, -EBUSY if it is not Homa's, or -ESTALE if it is Homa's of another version. */
static int attach_shared(struct afxdp_prog *prog, const struct nic_netif *netif,
			 char *name, u32 *prog_id)
{
	int rc;

	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	prog->shared = true;
	rc = bpf_xdp_query(netif->index, 0, &query);
	if (rc)
		return rc;
	*prog_id = query.skb_prog_id ? query.skb_prog_id : query.drv_prog_id;
	if (!*prog_id)
		*prog_id = query.prog_id;
	if (!*prog_id)
		return -ENOENT;
	prog->generic = query.attach_mode == XDP_ATTACHED_SKB;
	rc = find_maps(prog, *prog_id, name);
	if (rc)
		return rc;
	prog->link_fd = find_link(*prog_id);
	return prog->link_fd < 0 ? -ENOENT : 0;
}

static int explain(int rc, const struct nic_netif *netif, bool generic,
		   const char *name, u32 prog_id, char *err, size_t errlen)
{
	switch (rc) {
	case -EPERM:
	case -EACCES:
		return nic_fail(err, errlen, -EPERM,
				"loading an XDP program needs root (CAP_BPF and CAP_NET_ADMIN); run as root or use UDP (HOMA_VIA=udp)");
	case -EBUSY:
	case -EEXIST:
	case -ENOENT:
		return nic_fail(err, errlen, -EBUSY,
				"another XDP program (%s, id %u) is on %s; remove it (ip link set dev %s xdp off) or use UDP (HOMA_VIA=udp)",
				name[0] ? name : "unnamed", prog_id,
				netif->name, netif->name);
	case -ESTALE:
		return nic_fail(err, errlen, -EBUSY,
				"%s is served by a Homa process of another version (XDP program id %u); end that process, or use UDP (HOMA_VIA=udp)",
				netif->name, prog_id);
	case -EINVAL:
	case -EOPNOTSUPP:
		return nic_fail(err, errlen, -EOPNOTSUPP,
				"%s takes no %s XDP program (%s); %s",
				netif->name, generic ? "generic" : "native",
				strerror(-rc),
				generic ? "use UDP (HOMA_VIA=udp)" :
					  "try generic mode or use UDP");
	default:
		return nic_fail(err, errlen, rc,
				"cannot attach the XDP program to %s: %s",
				netif->name, strerror(-rc));
	}
}

int afxdp_prog_attach(struct afxdp_prog *prog, const struct nic_netif *netif,
		      bool generic, char *err, size_t errlen)
{
	libbpf_print_fn_t old = libbpf_set_print(silent);
	char name[BPF_OBJ_NAME_LEN] = "";
	u32 prog_id = 0;
	int rc = -EBUSY;

	/* The owner of a program may go away between our two looks at it. */
	for (int attempt = 0; attempt < 3; attempt++) {
		forget(prog);
		rc = attach_own(prog, netif, generic);
		if (rc != -EBUSY && rc != -EEXIST)
			break;
		rc = attach_shared(prog, netif, name, &prog_id);
		if (!rc)
			break;
		afxdp_prog_detach(prog);
		if (rc != -ENOENT)
			break;
	}
	libbpf_set_print(old);
	return rc ? explain(rc, netif, generic, name, prog_id, err, errlen) : 0;
}

void afxdp_prog_detach(struct afxdp_prog *prog)
{
	if (prog->link_fd >= 0)
		close(prog->link_fd);
	if (prog->ports)
		munmap(prog->ports, PORTS_BYTES * HOMA_XDP_QUEUES);
	if (prog->obj) {
		bpf_object__close(prog->obj);
	} else if (prog->shared) {
		if (prog->xsks_fd >= 0)
			close(prog->xsks_fd);
		if (prog->addrs_fd >= 0)
			close(prog->addrs_fd);
		if (prog->ports_fd >= 0)
			close(prog->ports_fd);
	}
	forget(prog);
}

int afxdp_prog_add(const struct afxdp_prog *prog, u32 queue, int fd)
{
	if (queue >= HOMA_XDP_QUEUES)
		return -E2BIG;
	/* The process that had the queue before may have been killed, and left its ports. */
	memset(port_word(prog, queue, 0), 0, PORTS_BYTES);
	return bpf_map_update_elem(prog->xsks_fd, &queue, &fd, 0);
}

int afxdp_prog_addresses(const struct afxdp_prog *prog,
			 const struct nic_netif *netif)
{
	struct homa_xdp_addrs addrs;
	u32 zero = 0;

	memset(&addrs, 0, sizeof(addrs));
	for (u32 i = 0; i < netif->n_addrs; i++) {
		const u8 *ip = netif->addrs[i].ip;

		if (homa_addr_is_v4(&netif->addrs[i])) {
			if (addrs.n4 < HOMA_XDP_ADDRS)
				memcpy(&addrs.v4[addrs.n4++], ip + 12, 4);
			else
				addrs.any = 1;
		} else {
			if (addrs.n6 < HOMA_XDP_ADDRS)
				memcpy(addrs.v6[addrs.n6++], ip, 16);
			else
				addrs.any = 1;
		}
	}
	return bpf_map_update_elem(prog->addrs_fd, &zero, &addrs, 0);
}
