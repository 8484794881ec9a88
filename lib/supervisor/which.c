// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Does a program make system calls itself? It does if no dynamic linker loads it, for then no
 * library can be preloaded; and if Go's compiler made it, whose run-time library has calls of its
 * own, also in a program that is linked dynamically for its C parts.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "supervisor.h"

/* The most program and section headers that are looked at. */
#define MOST 512
/* The longest first line of a script. */
#define LINE 256

static bool read_at(int fd, void *to, size_t bytes, u64 at)
{
	return at < INT64_MAX &&
	       pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr one;
	int i;

	for (i = 0; i < head->e_phnum && i < MOST; i++)
		if (read_at(fd, &one, sizeof(one),
			    head->e_phoff + (u64)i * sizeof(one)) &&
		    one.p_type == PT_INTERP)
			return true;
	return false;
}

/* Go's linker leaves a note with the name "Go", also in a program without sections. */
static bool is_go(int fd, const Elf64_Ehdr *head)
{
	struct {
		/* The lengths of its parts. */
		Elf64_Nhdr head;
		/* The begin of its name. */
		char name[4];
	} note;
	Elf64_Phdr one;
	int i;

	for (i = 0; i < head->e_phnum && i < MOST; i++)
		if (read_at(fd, &one, sizeof(one),
			    head->e_phoff + (u64)i * sizeof(one)) &&
		    one.p_type == PT_NOTE &&
		    read_at(fd, &note, sizeof(note), one.p_offset) &&
		    note.head.n_namesz == 4 && !memcmp(note.name, "Go\0", 4))
			return true;
	return false;
}

static int which(const char *program, const char **why, int scripts)
{
	char line[LINE + 1], *name, *end;
	int fd = open(program, O_RDONLY | O_CLOEXEC), rc = 0;
	Elf64_Ehdr head;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, line, LINE, 0);
	line[n > 0 ? n : 0] = 0;
	*why = "a dynamic linker loads it";
	if (n > 2 && line[0] == '#' && line[1] == '!' && scripts) {
		name = line + 2 + strspn(line + 2, " \t");
		end = name + strcspn(name, " \t\n");
		*end = 0;
		rc = which(name, why, scripts - 1);
	} else if (!read_at(fd, &head, sizeof(head), 0) ||
		   memcmp(head.e_ident, ELFMAG, SELFMAG) ||
		   head.e_ident[EI_CLASS] != ELFCLASS64 ||
		   head.e_phentsize != sizeof(Elf64_Phdr)) {
		*why = "it is no ELF file of 64 bits";
	} else if (!has_interpreter(fd, &head)) {
		*why = "it is static";
		rc = 1;
	} else if (is_go(fd, &head)) {
		*why = "it was made by Go";
		rc = 1;
	}
	close(fd);
	return rc;
}

int homa_sv_which(const char *program, const char **why)
{
	return which(program, why, 1);
}
