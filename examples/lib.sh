# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the examples of the client libraries share.  begin_example "$@" builds rowfs, makes a
# store with an account and serves it; afterwards there are
#   $AZURE_STORAGE_CONNECTION_STRING  what `rowfs account add` printed, for the program
#   $work   a directory of this run's own
#   $mnt    where the store is mounted too; empty where there is no /dev/fuse
# At every end all of it is taken away, and what is in workers (process ids) is killed.

example=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$example/../.." && pwd)
install=yes
work=''
mnt=''
server=''
store=''
endpoint=127.0.0.1:10002
mount_options=()
port=''
workers=()

say() { printf '\n%s\n' "$*"; }
die() {
	echo "$(basename "$example"): $*" >&2
	exit 1
}

# Prints a command, then runs it.
show() {
	printf '$ %s\n' "$1"
	bash -c "$1" </dev/null
}

clean_up() {
	local rc=$?
	trap - EXIT
	trap '' INT TERM HUP
	cd /
	[ ${#workers[@]} -eq 0 ] || kill -KILL "${workers[@]}" 2>/dev/null || true
	if [ -n "$server" ]; then
		kill -TERM "$server" 2>/dev/null || true
		wait "$server" || {
			echo "rowfs ended with $?:" >&2
			cat "$work/log" >&2
			[ "$rc" -ne 0 ] || rc=1
		}
	fi
	[ -z "$mnt" ] || fusermount3 -uz "$mnt" 2>/dev/null || true # if rowfs did not
	[ -z "$work" ] || rm -rf --one-file-system "$work"
	exit "$rc"
}

begin_example() {
	local arg
	for arg; do
		case $arg in
		--no-install) install= ;;
		*)
			echo "usage: $0 [--no-install]     --no-install: do not call apt-get and npm" >&2
			[ "$arg" = --help ] && exit 0
			exit 2
			;;
		esac
	done
	make_work
	need_packages build-essential meson ninja-build pkg-config libfuse3-dev libsqlite3-dev \
		libjansson-dev libssl-dev libmicrohttpd-dev libxml2-dev fuse3 python3
	build_rowfs
	serve_store
	say "== A store with an account, served at http://127.0.0.1:$port/example"
}

make_work() {
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	work=$(mktemp -d "${TMPDIR:-/tmp}/rowfs-example.XXXXXX")
}

# Debian packages that this example needs.
need_packages() {
	[ -n "$install" ] || return 0
	local missing=() as_root=() p
	for p; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" -eq 0 ] || as_root=(sudo)
	say "== Installing: ${missing[*]}"
	"${as_root[@]}" apt-get update -qq
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The npm packages of this example's package.json, and its program, in $work/program; the
# packages that the tests have installed will do.
need_npm() {
	mkdir "$work/program"
	cp "$example"/*.*js* "$work/program/"
	if [ -d "$top/tests/sdk/node_modules/$1" ]; then
		ln -s "$top/tests/sdk/node_modules" "$work/program/node_modules"
	elif [ -n "$install" ]; then
		command -v npm >/dev/null || need_packages nodejs npm
		(cd "$work/program" && npm install --no-audit --no-fund --silent </dev/null)
	else
		die "needs the npm package $1: npm ci --prefix tests/sdk"
	fi
	node=(node)
	# What node 18, Debian 12's, has only under this flag the library takes for granted.
	[[ $(node --version) != v18.* ]] || node+=(--experimental-global-webcrypto)
}

build_rowfs() {
	local dir=${ROWFS_BUILD:-$top/build}
	if [ ! -f "$dir/build.ninja" ]; then
		meson setup "$dir" "$top" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "meson failed"; }
	fi
	meson compile -C "$dir" rowfs >"$work/log" 2>&1 || { cat "$work/log" >&2; die "the build failed"; }
	PATH=$dir/src/daemon:$PATH
}

can_mount() {
	[ -r /dev/fuse ] && [ -w /dev/fuse ] && (: <>/dev/fuse) 2>/dev/null
}

# Port 10002 is the emulator's; if something listens there already, this example takes another one.
# The connection string names the port of the process that serves the store.
serve_store() {
	store=$work/tasks.rowfs
	: >"$work/log"
	if (: <>/dev/tcp/127.0.0.1/10002) 2>/dev/null; then
		endpoint=127.0.0.1:0
	fi
	rowfs init "$store"

	if can_mount; then
		mnt=$work/mnt
		mkdir "$mnt"
		rowfs mount "$store" "$mnt" -f -o "rest=$endpoint" "${mount_options[@]/#/-o}" >"$work/log" 2>&1 &
	else
		rowfs serve "$store" "--rest=$endpoint" >"$work/log" 2>&1 &
	fi
	server=$!
	for _ in $(seq 100); do
		port=$(sed -nE 's/.*http:\/\/127\.0\.0\.1:([0-9]+).*/\1/p' "$work/log" | head -n 1)
		[ -z "$port" ] || break
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	[ -n "$port" ] || { cat "$work/log" >&2; die "rowfs does not serve"; }
	AZURE_STORAGE_CONNECTION_STRING=$(rowfs account add "$store" example | sed -n 's/^connect *//p')
	export AZURE_STORAGE_CONNECTION_STRING
}

# The rows that the program made, as files.
show_files() {
	if [ -z "$mnt" ]; then
		say "== No /dev/fuse here: the rows are not shown as files"
		return
	fi
	say "== The same rows as files"
	cd "$mnt/example/Tasks" || return
	show "ls */*"
	show "cat home/1.json"
	cd /
}
