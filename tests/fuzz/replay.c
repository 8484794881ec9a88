/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A main() for fuzz targets where libFuzzer is not: runs the target on each
 * file of the given directories, and on damaged copies of them that a seed
 * determines. So every build keeps past findings fixed, with any compiler.
 *
 * usage: TARGET [-n DAMAGED_COPIES] [-s SEED] DIRECTORY...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "homa_rng.h"

#define INPUT_MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Flip, overwrite, cut or extend a few bytes; returns the new length. */
static size_t damage(struct homa_rng *rng, u8 *bytes, size_t len)
{
	static const u8 extreme[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	u32 n = 1 + homa_rng_below(rng, 4);

	while (n--) {
		u32 at = len ? homa_rng_below(rng, (u32)len) : 0;
		u32 run = 1 + homa_rng_below(rng, 4);

		switch (homa_rng_below(rng, 4)) {
		case 0:
			if (len)
				bytes[at] ^= (u8)(1u << homa_rng_below(rng, 8));
			break;
		case 1:
			for (; run-- && at < len; at++)
				bytes[at] = extreme[homa_rng_below(rng, 5)];
			break;
		case 2:
			len = at;
			break;
		case 3:
			for (; run-- && len < INPUT_MAX_BYTES; len++)
				bytes[len] = (u8)homa_rng_next(rng);
			break;
		}
	}
	return len;
}

static int replay_file(const char *path, long copies, struct homa_rng *rng)
{
	static u8 input[INPUT_MAX_BYTES], copy[INPUT_MAX_BYTES];
	FILE *file = fopen(path, "rb");
	size_t len;
	long i;

	if (!file) {
		perror(path);
		return -1;
	}
	len = fread(input, 1, sizeof(input), file);
	fclose(file);
	LLVMFuzzerTestOneInput(input, len);
	for (i = 0; i < copies; i++) {
		memcpy(copy, input, len);
		LLVMFuzzerTestOneInput(copy, damage(rng, copy, len));
	}
	return 0;
}

static long replay_directory(const char *name, long copies, struct homa_rng *rng)
{
	struct dirent **entry;
	char path[4096];
	int i, n = scandir(name, &entry, NULL, alphasort);
	long files = 0;

	if (n < 0) {
		perror(name);
		return -1;
	}
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", name, entry[i]->d_name);
		if (files >= 0 && entry[i]->d_name[0] != '.')
			files = replay_file(path, copies, rng) ? -1 : files + 1;
		free(entry[i]);
	}
	free(entry);
	return files;
}

int main(int argc, char **argv)
{
	long copies = 0, files = 0, n;
	struct homa_rng rng;
	u64 seed = 1;
	int option;

	while ((option = getopt(argc, argv, "n:s:")) != -1) {
		if (option == 'n')
			copies = atol(optarg);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	homa_rng_init(&rng, seed);
	for (; optind < argc; optind++) {
		n = replay_directory(argv[optind], copies, &rng);
		if (n < 0)
			return 1;
		files += n;
	}
	printf("%ld inputs, %ld damaged copies of each, seed %llu\n", files,
	       copies, (unsigned long long)seed);
	return files ? 0 : 1;
}
