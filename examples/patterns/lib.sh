# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the pattern scripts share.  begin_pattern makes a store with the account "example" in a
# directory of its own, mounts it with a REST socket (and with mount_options) and goes to the
# account's directory, where tables are directories.  At every end all of it is taken away.
#
#   show COMMAND   prints a command and runs it: what to copy is what is shown
#   rest ...       curl to the REST socket; needs no signature, since the socket is the user's own
#                  $url is the account's address
#   queue_put NAME TEXT               puts a message
#   queue_take NAME SECONDS           takes one, hidden for so long, and prints it: ID RECEIPT COUNT TEXT;
#                                     fails if there is none
#   queue_delete NAME ID RECEIPT      deletes what was taken
#                  $queues is the address of the account's queues, $blobs that of its blobs
#   change DIR     commits the change set that it reads (JSON) through DIR/.batch, all or nothing
#   expect WHAT GOT WANTED   the pattern did what it teaches, or the script ends with 1
#
# The program is $ROWFS, or the one in $ROWFS_BUILD, in PATH, or in the source tree's build.

# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck disable=SC2034 # for the scripts
here=$example # this directory
example=$(basename "$0")
url=http://localhost/example
queues=http://example.queue.localhost # the name of the host says which service it is
blobs=http://example.blob.localhost

rest() { curl -sSg --unix-socket "$work/rest.sock" -H 'Accept: application/json;odata=nometadata' "$@"; }

queue_put() {
	rest -f -o "$work/none" -X POST "$queues/$1/messages" \
		-d "<QueueMessage><MessageText>$2</MessageText></QueueMessage>"
}

queue_take() {
	local said
	said=$(rest -f "$queues/$1/messages?visibilitytimeout=$2")
	[[ $said == *"<MessageId>"* ]] || return 1
	sed -E 's|.*<MessageId>(.*)</MessageId>.*<PopReceipt>(.*)</PopReceipt>.*<DequeueCount>(.*)</DequeueCount>.*<MessageText>(.*)</MessageText>.*|\1 \2 \3 \4\n|' <<<"$said" | tail -n 2 | head -n 1
}

# A message that its taker had too long is another's now: it fails, which is no fault.
queue_delete() {
	rest -fG -X DELETE --data-urlencode "popreceipt=$3" "$queues/$1/messages/$2" 2>/dev/null
}

# cp tells what the shell's own > would not: the errno of the close, which is the commit.
change() { cp /dev/stdin "$1/.batch"; }

expect() {
	[ "$2" = "$3" ] || die "$1: expected: $3; got: $2"
}

find_rowfs() {
	local program=${ROWFS:-}
	[ -n "$program" ] || program=${ROWFS_BUILD:+$ROWFS_BUILD/src/daemon/rowfs}
	[ -n "$program" ] || program=$(command -v rowfs) || program=$top/build/src/daemon/rowfs
	[ -x "$program" ] ||
		die "no rowfs at $program: build it (meson setup build && ninja -C build), or set ROWFS"
	program=$(realpath "$program")
	PATH=$(dirname "$program"):$PATH
}

need_sdk() {
	/usr/bin/python3 -c 'import azure.data.tables' 2>/dev/null || die "needs Debian's python3-azure"
}

begin_pattern() {
	local program
	for program in jq curl getfattr setfattr; do
		command -v "$program" >/dev/null || die "needs $program"
	done
	find_rowfs
	can_mount || die "needs /dev/fuse, open to this user"
	make_work
	endpoint=127.0.0.1:0
	export PYTHONDONTWRITEBYTECODE=1
	mount_options+=("rest=unix:$work/rest.sock")
	serve_store
	export mnt store url queues blobs work here
	export -f rest change queue_put queue_take queue_delete
	cd "$mnt/example" || exit
}
