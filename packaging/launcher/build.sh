# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck shell=sh
#
# Builds the programs that demo, bench and targets run into build/ (or
# $HOMA_BUILD), without the tests, which have build directories of their own.
# Sourced by ./homa.

# build [-v]: up to date afterwards, or exits. Quiet unless something is wrong.
build() {
	build_verbose=0
	[ "${1:-}" = -v ] && build_verbose=1

	if ! mkdir -p "$HOMA_BUILD" 2>/dev/null || ! [ -w "$HOMA_BUILD" ]; then
		if [ -e "$HOMA_BUILD/.built" ]; then
			say "note: $HOMA_BUILD is not yours to write; using it as it is"
			return 0
		fi
		die "cannot write to $HOMA_BUILD; choose another place: HOMA_BUILD=DIR ./homa ..."
	fi
	exec 9>"$HOMA_BUILD/.lock"
	flock -n 9 || {
		say "waiting for another build in $HOMA_BUILD"
		flock 9
	}
	build_log=$HOMA_BUILD/build.log
	if [ "$(cat "$HOMA_BUILD/.source" 2>/dev/null)" != "$HOMA_ROOT" ]; then
		rm -rf "$HOMA_BUILD/build.ninja" "$HOMA_BUILD/meson-private" \
			"$HOMA_BUILD/meson-info"
	fi
	if ! [ -e "$HOMA_BUILD/build.ninja" ]; then
		say "configuring $HOMA_BUILD"
		build_run meson setup --buildtype=debugoptimized -Dtests=false \
			"$HOMA_BUILD" "$HOMA_ROOT"
		echo "$HOMA_ROOT" >"$HOMA_BUILD/.source"
	fi
	if ! [ -e "$HOMA_BUILD/.built" ]; then
		say "building (the first time takes half a minute)"
	fi
	build_run ninja -C "$HOMA_BUILD"
	: >"$HOMA_BUILD/.built"
	exec 9>&-
}

build_run() {
	if [ "$build_verbose" = 1 ]; then
		"$@" >&2 9>&- || die "the build failed"
	elif ! "$@" >"$build_log" 2>&1 9>&-; then
		grep -A 8 -E '(^|[^Ww])error:|ERROR|undefined reference' "$build_log" |
			head -n 40 >&2
		die "the build failed (whole log: $build_log)"
	fi
}
