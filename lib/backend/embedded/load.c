// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The embedded host is a plug-in beside libhoma, opened the first time it is
 * needed, and never closed: its threads and thread-local data may outlive any
 * handle. The static variant of the library has it linked in.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "libhoma_impl.h"

#ifdef HOMA_STATIC_HOST

const struct homa_backend_ops *homa_load_embedded(char *err, size_t errlen)
{
	(void)err;
	(void)errlen;
	return homa_backend_get();
}

#else

#define PLUGIN "libhoma-embedded.so.0"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct homa_backend_ops *loaded;

static void *open_plugin(void)
{
	char path[4096];
	const char *slash;
	void *plugin;
	Dl_info info;

	/* First beside this library, wherever that is. */
	if (dladdr((void *)homa_load_embedded, &info) && info.dli_fname) {
		slash = strrchr(info.dli_fname, '/');
		if (slash) {
			snprintf(path, sizeof(path), "%.*s/" PLUGIN,
				 (int)(slash - info.dli_fname), info.dli_fname);
			plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
			if (plugin)
				return plugin;
		}
	}
	return dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
}

const struct homa_backend_ops *homa_load_embedded(char *err, size_t errlen)
{
	const struct homa_backend_ops *(*get)(void);
	void *plugin;

	pthread_mutex_lock(&lock);
	if (loaded)
		goto out;
	plugin = open_plugin();
	if (!plugin) {
		snprintf(err, errlen, "cannot load the embedded host: %s",
			 dlerror());
		goto out;
	}
	*(void **)&get = dlsym(plugin, "homa_backend_get");
	if (!get || get()->abi != HOMA_BACKEND_ABI) {
		snprintf(err, errlen,
			 PLUGIN
			 " belongs to another version of libhoma; install both from the same build");
		dlclose(plugin);
		goto out;
	}
	loaded = get();
out:
	pthread_mutex_unlock(&lock);
	return loaded;
}

#endif
