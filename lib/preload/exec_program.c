// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Will a program that is about to run load this library, too? Only the obvious reasons why not
 * are looked for: its environment does not name us, it is static, or it gets the rights of
 * another user. If one is missed the connections end a little later, by homad's time limit.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "exec.h"
#include "real.h"

#define SCRIPTS 4 /* the kernel follows as many interpreters of scripts */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Does the value of LD_PRELOAD name us? */
static bool names_us(const char *value)
{
	const char *own;
	size_t length;
	Dl_info info;

	if (!dladdr((void *)names_us, &info) || !info.dli_fname)
		return true;
	own = base_name(info.dli_fname);
	while (*(value += strspn(value, " :"))) {
		length = strcspn(value, " :");
		if (length >= strlen(own) &&
		    !strncmp(value + length - strlen(own), own, strlen(own)))
			return true;
		value += length;
	}
	return false;
}

/* True if this library was loaded by LD_PRELOAD. */
static bool by_environment;

__attribute__((constructor)) static void remember(void)
{
	const char *value = getenv("LD_PRELOAD");

	by_environment = value && names_us(value);
}

static const char *value_of(char *const *env, const char *name)
{
	size_t length = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

/* Write the path of the first program of that name in PATH to @path. */
static void search(const char *name, char path[PATH_MAX])
{
	const char *at = getenv("PATH");

	snprintf(path, PATH_MAX, "%s", name);
	if (strchr(name, '/'))
		return;
	for (at = at ? at : "/bin:/usr/bin"; *at; at += *at == ':') {
		size_t length = strcspn(at, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, name);
		if (!access(path, X_OK))
			return;
		at += length;
	}
}

/* Has the program, of 32 or 64 bits, a header that names an interpreter? */
static bool has_interpreter(int fd, const unsigned char *begin, size_t got)
{
	const Elf64_Ehdr *wide = (const void *)begin;
	const Elf32_Ehdr *narrow = (const void *)begin;
	bool is_wide = begin[EI_CLASS] == ELFCLASS64;
	off_t at = is_wide ? (off_t)wide->e_phoff : (off_t)narrow->e_phoff;
	size_t size = is_wide ? wide->e_phentsize : narrow->e_phentsize;
	unsigned int i, num = is_wide ? wide->e_phnum : narrow->e_phnum;

	if (got < sizeof(*wide))
		return true;
	for (i = 0; i < num; i++) {
		Elf64_Word type; /* comes first in both */

		if (pread(fd, &type, sizeof(type), at + (off_t)(i * size)) !=
		    sizeof(type))
			return true;
		if (type == PT_INTERP)
			return true;
	}
	return false;
}

/* Look at the program at @path. If it is a script, its interpreter is written to @path and 1 is
 * returned; else 0, and @why is set if there is a reason against it. */
static int look(char path[PATH_MAX], const char **why)
{
	union {
		/* The first bytes of the file. */
		unsigned char bytes[256];
		/* The same bytes, if the file is an ELF program. */
		Elf64_Ehdr header;
	} begin = { .bytes = { 0 } };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat file;
	char *word;
	ssize_t got;

	if (fd < 0)
		return 0;
	got = pread(fd, begin.bytes, sizeof(begin.bytes) - 1, 0);
	if (got > 4 && !memcmp(begin.bytes, "#!", 2)) {
		HOMA_PL_REAL(close)(fd);
		word = (char *)begin.bytes + 2;
		word += strspn(word, " \t");
		word[strcspn(word, " \t\n")] = '\0';
		snprintf(path, PATH_MAX, "%s", word);
		return 1;
	}
	if (!fstat(fd, &file) &&
	    (((file.st_mode & S_ISUID) && file.st_uid != geteuid()) ||
	     ((file.st_mode & S_ISGID) && file.st_gid != getegid())))
		*why = "it has the rights of another user";
	else if (got > (ssize_t)sizeof(Elf32_Ehdr) &&
		 !memcmp(begin.bytes, ELFMAG, SELFMAG) &&
		 !has_interpreter(fd, begin.bytes, (size_t)got))
		*why = "it is a static program";
	HOMA_PL_REAL(close)(fd);
	return 0;
}

const char *homa_pl_exec_refuses(const char *path, char *const *env, bool searches)
{
	const char *value = value_of(env, "LD_PRELOAD"), *why = NULL;
	char file[PATH_MAX];
	int i;

	/* If this library was loaded in another way, the program may load it that way, too. */
	if (by_environment && (!value || !names_us(value)))
		return "its environment has not this library in LD_PRELOAD";
	if (!path)
		return NULL;
	if (searches)
		search(path, file);
	else
		snprintf(file, sizeof(file), "%s", path);
	for (i = 0; i < SCRIPTS && look(file, &why); i++)
		;
	return why;
}
