// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Functions of the running kernel, by its description of itself. */
#include <fcntl.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream_rule.h"

#define BTF "/sys/kernel/btf/vmlinux"
/* The kernel's is some megabytes. */
#define BTF_MOST ((off_t)256 << 20)

/* Returns how many bytes of its own stand behind a type. */
static size_t btf_tail(const struct btf_type *type)
{
	size_t n = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case 19: /* BTF_KIND_ENUM64, which older headers lack */
		return n * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return n * 8;
	default:
		return 0;
	}
}

/* Returns the whole file, with a 0 behind it, or NULL. */
static unsigned char *btf_read(size_t *size)
{
	int fd = open(BTF, O_RDONLY | O_CLOEXEC);
	unsigned char *all = NULL;
	struct stat st;
	ssize_t n = 1;

	*size = 0;
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0 && st.st_size < BTF_MOST)
		all = malloc((size_t)st.st_size + 1);
	while (all && n > 0 && *size < (size_t)st.st_size) {
		n = read(fd, all + *size, (size_t)st.st_size - *size);
		if (n > 0)
			*size += (size_t)n;
	}
	if (all)
		all[*size] = '\0';
	if (fd >= 0)
		close(fd);
	return all;
}

/* Looks for @name among the types of @all, which has @size bytes and a 0 behind them. */
static uint32_t btf_find(const unsigned char *all, size_t size, const char *name)
{
	size_t at, end, strings;
	struct btf_header head;
	struct btf_type type;
	uint32_t id;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, all, sizeof(head));
	at = (size_t)head.hdr_len + head.type_off;
	end = at + head.type_len;
	strings = (size_t)head.hdr_len + head.str_off;
	if (head.magic != BTF_MAGIC || end > size || strings > size)
		return 0;
	for (id = 1; at + sizeof(type) <= end; id++) {
		memcpy(&type, all + at, sizeof(type));
		if (BTF_INFO_KIND(type.info) == BTF_KIND_FUNC &&
		    strings + type.name_off < size &&
		    !strcmp((const char *)all + strings + type.name_off, name))
			return id;
		at += sizeof(type) + btf_tail(&type);
	}
	return 0;
}

uint32_t btf_function(const char *name)
{
	size_t size;
	unsigned char *all = btf_read(&size);
	uint32_t id = all ? btf_find(all, size, name) : 0;

	free(all);
	return id;
}
