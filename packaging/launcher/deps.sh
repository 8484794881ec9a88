# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck shell=sh
#
# Finds what is missing from packaging/dependencies and installs it with apt.
# Sourced by ./homa. Nothing is asked of apt when nothing is missing, so an
# offline machine that has everything never notices this file.

deps_list=$HOMA_ROOT/packaging/dependencies

# deps_read SECTION: "packages probe" lines of a section
deps_read() {
	awk -v want="[$1]" '
		{ sub(/#.*/, "") }
		/^\[/ { inside = ($1 == want); next }
		inside && NF >= 2 { print $1, $2 }' "$deps_list"
}

# deps_probe PROBE: true if it is there (py: is answered in one go elsewhere)
deps_probe() {
	case $1 in
	cmd:*) command -v "${1#cmd:}" >/dev/null 2>&1 ;;
	pc:*) command -v pkg-config >/dev/null 2>&1 &&
		pkg-config --exists "${1#pc:}" ;;
	py:*) /usr/bin/python3 -c 'import importlib.util as u, sys
sys.exit(u.find_spec(sys.argv[1]) is None)' "${1#py:}" 2>/dev/null ;;
	rt:*) command -v clang >/dev/null 2>&1 &&
		ls "$(clang --print-resource-dir)"/lib/*/libclang_rt."${1#rt:}"*.a \
			>/dev/null 2>&1 ;;
	file:*)
		for deps_file in ${1#file:}; do
			[ -e "$deps_file" ] && return 0
		done
		return 1 ;;
	*) die "packaging/dependencies: unknown probe $1" ;;
	esac
}

# deps_missing SECTION...: package fields whose probe fails
deps_missing() {
	for deps_section in "$@"; do
		deps_read "$deps_section" | while read -r deps_pkg deps_how; do
			deps_probe "$deps_how" || echo "$deps_pkg"
		done
	done
}

# deps_choose FIELD...: for each field the first package that apt knows
deps_choose() {
	deps_clang=$(apt-cache depends clang 2>/dev/null |
		sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
	for deps_field in "$@"; do
		deps_names=$(echo "$deps_field" | sed "s/{clang}/$deps_clang/g; s/|/ /g")
		deps_found=
		for deps_pkg in $deps_names; do
			if apt-cache show "$deps_pkg" >/dev/null 2>&1; then
				deps_found=$deps_pkg
				break
			fi
		done
		# Without package lists the first name is as good a guess as any,
		# unless it hangs on the unknown version of clang.
		case $deps_found/${deps_known_only:-0}/$deps_clang/$deps_field in
		/0//*'{clang}'*) ;;
		/0/*) echo "${deps_names%% *}" ;;
		/1/*) ;;
		*) echo "$deps_found" ;;
		esac
	done
}

# How to become root: "" (is root), "sudo", or fails.
deps_root() {
	[ "$(id -u)" = 0 ] && return 0
	command -v sudo >/dev/null 2>&1 || return 1
	sudo -n true 2>/dev/null || [ -t 0 ] || return 1
	echo sudo
}

deps_apt() {
	# The lock makes two launchers wait for each other instead of failing.
	$deps_sudo env DEBIAN_FRONTEND=noninteractive flock /var/lib/apt/lists \
		apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 \
		-o Dpkg::Use-Pty=0 "$@"
}

# need SECTION...: all packages of the sections are there, or exit 3
need() {
	deps_want=$(deps_missing "$@")
	[ -z "$deps_want" ] && return 0

	if ! command -v apt-get >/dev/null 2>&1; then
		say "this needs what Debian calls:"
		echo "$deps_want" | sed 's/^/  /' >&2
		say "there is no apt-get here: please install them with your own package manager"
		exit 3
	fi
	if ! deps_sudo=$(deps_root); then
		# Word splitting is wanted: one argument per package.
		# shellcheck disable=SC2046,SC2086
		set -- $(deps_choose $deps_want)
		say "some packages are missing and installing them needs root. Please run:"
		echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $*" >&2
		exit 3
	fi

	deps_log=$(mktemp "${TMPDIR:-/tmp}/homa-apt.XXXXXX")
	say "reading the package lists (apt-get update)"
	if ! deps_apt update >"$deps_log" 2>&1; then
		tail -n 5 "$deps_log" >&2
		say "apt-get update failed; trying with the lists that are there"
	fi
	deps_extra=
	case " $* " in
	*" test "*) deps_extra=$(deps_missing optional) ;;
	esac
	# shellcheck disable=SC2046,SC2086
	set -- "$@" -- $(deps_choose $deps_want) \
		$(deps_known_only=1; deps_choose $deps_extra)
	deps_sections=
	while [ "$1" != -- ]; do
		deps_sections="$deps_sections $1"
		shift
	done
	shift
	say "installing: $*"
	if ! deps_apt install --no-install-recommends "$@" >"$deps_log" 2>&1; then
		tail -n 20 "$deps_log" >&2
		die "apt-get install failed (whole log: $deps_log)" 3
	fi
	rm -f "$deps_log"
	# What meson did not find before may be there now; it would not look again.
	rm -f "$HOMA_BUILD/.source"
	# shellcheck disable=SC2086
	deps_want=$(deps_missing $deps_sections)
	[ -z "$deps_want" ] ||
		die "still missing after the installation: $(echo "$deps_want" | tr "\n" " ")" 3
}
