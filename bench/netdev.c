/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the network devices of this namespace carried and dropped during the
 * measured window: the transport's true cost on the wire, with everything that
 * it adds to the payload. Read from /proc/net/dev, which belongs to the
 * reader's namespace.
 */
#include <stdio.h>
#include <string.h>

#include "bench_stats.h"

void bench_netdevs_now(struct bench_netdevs *devs)
{
	FILE *file = fopen("/proc/net/dev", "re");
	char line[512];

	devs->count = 0;
	if (!file)
		return;
	while (devs->count < BENCH_NETDEVS && fgets(line, sizeof(line), file)) {
		struct bench_netdev *dev = &devs->list[devs->count];
		unsigned long long v[12];

		if (sscanf(line,
			   " %15[^:]: %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu",
			   dev->name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
			   &v[6], &v[7], &v[8], &v[9], &v[10], &v[11]) != 13)
			continue;
		dev->rx_bytes = v[0];
		dev->rx_packets = v[1];
		dev->rx_dropped = v[3];
		dev->tx_bytes = v[8];
		dev->tx_packets = v[9];
		dev->tx_dropped = v[11];
		devs->count++;
	}
	fclose(file);
}

const struct bench_netdev *bench_netdev_find(const struct bench_netdevs *devs,
					     const char *name)
{
	uint32_t i;

	for (i = 0; i < devs->count; i++)
		if (strcmp(devs->list[i].name, name) == 0)
			return &devs->list[i];
	return NULL;
}
