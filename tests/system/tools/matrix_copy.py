# SPDX-License-Identifier: MIT
"""The matrix's tools that copy, synchronize, archive, back up, keep versions, and look.

Most of them bring a tree that has the row's file in it, so `prepare` makes that tree, archive or
repository of $S/new.json first, out of the tool's own time.
"""

import re
import tempfile

from matrix import ERRORS, OLD, Tool

# rsync takes two files of one size and one second for the same.
TREE = "mkdir d && cp new.json d/r.json && touch -d 2001-02-03 d/r.json"
LATER = "mkdir d && cp new.json d/r.json && touch -d 2020-01-01 d/r.json"
OLD_TREE = "mkdir d && printf '%s\\n' '{\"Author\":\"Ann\",\"Rating\":4}' > d/r.json"

OTHER_TREE = "mkdir d && printf '%s\\n' '{\"Author\":\"Ann\",\"Rating\":5}' > d/r.json"

# What ends with 0 and says nothing although the row is not what it brought.
NO_CLOSE = "takes no notice of what close(2) says"
NO_WRITE = "takes no notice of what write(2) says of its standard output"

# A remote shell that reaches this machine.
PIPE = """-e "bash -c 'shift; exec \\"\\$@\\"' rsh" """


def rsync(flags, like=""):
    return Tool(name=f"rsync {flags}", kind="put", needs=("rsync",), prepare=TREE, like=like,
                script=f"rsync {flags} $S/d/ .")


def beside(name, made, script, whole, *needs):
    """Makes a file beside the row; whole: a command that succeeds if that is what it should be."""
    state = (f"if ! [ -e {made} ]; then echo none; elif {whole} >&2; then echo whole;"
             " else echo other; fi")
    return Tool(name=name, kind="beside", needs=needs, script=script, moment=made, state=state,
                out="whole")


RSYNC = [
    *(rsync(f) for f in (
        "-a", "-aHAX", "-a --inplace", "-a --delay-updates", "-a --delete-after --backup",
        "-a --fsync", "-a --preallocate")),
    *(rsync(f, like="rsync -a") for f in (
        "-a --partial", "-a --partial-dir=.rsync-partial", "-a --delete", "-a --checksum",
        "-a --no-whole-file", "-a --remove-source-files")),
    rsync("-a --inplace --no-whole-file", like="rsync -a --inplace"),
    Tool(name="rsync -a -e (over a pipe)", kind="put", needs=("rsync",), prepare=TREE,
         script=f"rsync -a {PIPE} $S/d/ host:\"$PWD\"/", shows="rsync -a -e … $S/d/ host:…"),
    # Two that leave what is there: --append looks at sizes alone.
    *(Tool(name=f"rsync {f}", kind="read", needs=("rsync",), prepare=OTHER_TREE,
           script=f"rsync {f} $S/d/ . && cat r.json") for f in (
        "-a --append", "-a --ignore-existing")),
    Tool(name="rsync -a, outwards", kind="read", needs=("rsync",),
         script="rsync -a r.json $S/out.json && cat $S/out.json"),
    Tool(name="rsync -aHAX -e, outwards", kind="read", needs=("rsync",),
         script=f"rsync -aHAX {PIPE} host:\"$PWD\"/r.json $S/out.json && cat $S/out.json",
         shows="rsync -aHAX -e … host:…/r.json $S/out.json"),
    Tool(name="rsync --delete from an empty tree", kind="remove", needs=("rsync",),
         prepare="mkdir d", script="rsync -a --delete $S/d/ ."),
    Tool(name="rsync --remove-source-files, outwards", kind="remove", needs=("rsync",),
         script="rsync -a --remove-source-files r.json $S/out.json"),
]

TAR = f"{TREE} && tar -C d -cf a.tar r.json"
TAR_LATER = f"{LATER} && tar -C d -cf a.tar r.json"
CPIO = "(cd d && echo r.json | cpio -o --quiet -H newc) > a.cpio"
ZIP = f"{TREE} && cd d && zip -q ../a.zip r.json"

ARCHIVES = [
    *(Tool(name=f"tar {flags}", kind="put", needs=("tar",), prepare=TAR,
           script=f"tar {flags} $S/a.tar") for flags in (
        "-xf", "--overwrite -xf", "--unlink-first -xf", "--recursive-unlink -xf",
        "--xattrs --acls -xf", "-xpf")),
    *(Tool(name=f"tar {flags}", kind="read", needs=("tar",),
           prepare=f"{OTHER_TREE} && tar -C d -cf a.tar r.json",
           script=f"tar {flags} $S/a.tar; rc=$?; cat r.json && exit $rc") for flags in (
        "--keep-old-files -xf", "--skip-old-files -xf")),
    Tool(name="tar --keep-newer-files -xf", kind="put", needs=("tar",), prepare=TAR_LATER,
         script="tar --keep-newer-files -xf $S/a.tar"),
    Tool(name="tar -C DIR -xzf", kind="put", needs=("tar",),
         prepare=f"{TREE} && tar -C d -czf a.tgz r.json",
         script="D=$PWD; cd /; tar -C \"$D\" -xzf $S/a.tgz", shows="tar -C DIR -xzf $S/a.tgz"),
    Tool(name="tar -c", kind="read", needs=("tar",),
         script="set -o pipefail; tar -cf - r.json | tar -xOf -"),
    Tool(name="tar -c --xattrs --acls", kind="read", needs=("tar",),
         script="set -o pipefail; tar --xattrs --acls -cf - r.json | tar -xOf -"),
    Tool(name="tar -c --remove-files", kind="remove", needs=("tar",),
         script="tar -cf $S/a.tar --remove-files r.json"),
    beside("tar -c, beside", "a.tar", "tar -cf a.tar r.json", "tar -df a.tar", "tar"),
    Tool(name="cpio -idmu", kind="put", needs=("cpio",), prepare=f"{TREE} && {CPIO}",
         script="cpio -idmu --quiet < $S/a.cpio"),
    Tool(name="cpio -idm, newer", kind="put", needs=("cpio",), prepare=f"{LATER} && {CPIO}",
         script="cpio -idm --quiet < $S/a.cpio"),
    Tool(name="cpio -pdmu", kind="put", needs=("cpio",), prepare=TREE,
         script="D=$PWD; cd $S/d; echo r.json | cpio -pdmu --quiet \"$D\"",
         shows="echo r.json | cpio -pdmu --quiet DIR"),
    Tool(name="cpio -o", kind="read", needs=("cpio",),
         script="set -o pipefail; echo r.json | cpio -o --quiet -H newc"
         " | cpio -i --quiet --to-stdout"),
    Tool(name="unzip -o", kind="put", needs=("unzip", "zip"), prepare=ZIP,
         script="unzip -qo $S/a.zip", silent={"cut": NO_CLOSE}),
    Tool(name="unzip -p >", kind="put", needs=("unzip", "zip"), prepare=ZIP,
         script="unzip -p $S/a.zip > r.json",
         silent={c: NO_WRITE for c in ("invalid", "cut", "full")}),
    Tool(name="zip", kind="read", needs=("unzip", "zip"),
         script="zip $S/a.zip r.json && unzip -p $S/a.zip",
         said="zip warning.*"),
    Tool(name="zip -m", kind="remove", needs=("zip",), script="zip -m $S/a.zip r.json",
         said="zip (warning|error).*"),
    beside("zip, beside", "a.zip", "zip a.zip r.json", "unzip -p a.zip | cmp - r.json", "zip"),
    Tool(name="gunzip -f", kind="put", needs=("gzip",), prepare="gzip -c new.json > r.json.gz",
         script="cp $S/r.json.gz . && gunzip -f r.json.gz"),
    Tool(name="gunzip -c >", kind="put", needs=("gzip",), prepare="gzip -c new.json > a.gz",
         script="gunzip -c $S/a.gz > r.json"),
    Tool(name="unxz -f", kind="put", needs=("xz",), prepare="xz -c new.json > r.json.xz",
         script="cp $S/r.json.xz . && unxz -f r.json.xz"),
    Tool(name="gzip", kind="remove", needs=("gzip",), script="gzip r.json"),
    beside("gzip -k, beside", "r.json.gz", "gzip -k r.json", "zcat r.json.gz | cmp - r.json",
           "gzip"),
    beside("xz -k, beside", "r.json.xz", "xz -k r.json", "xzcat r.json.xz | cmp - r.json", "xz"),
    Tool(name="busybox tar -x", kind="put", needs=("busybox",), prepare=TAR,
         script="busybox tar -xf $S/a.tar", silent={"cut": NO_CLOSE}),
    Tool(name="busybox tar -x --overwrite", kind="put", needs=("busybox",), prepare=TAR,
         script="busybox tar -x --overwrite -f $S/a.tar", silent={"cut": NO_CLOSE}),
    Tool(name="busybox tar -c", kind="read", needs=("busybox",),
         script="set -o pipefail; busybox tar -cf - r.json | tar -xOf -"),
    Tool(name="busybox cpio -idmu", kind="put", needs=("busybox", "cpio"),
         prepare=f"{TREE} && {CPIO}", script="busybox cpio -idmu < $S/a.cpio",
         said="(?<=: )[A-Z].*", silent={"cut": NO_CLOSE}),
    Tool(name="busybox unzip -o", kind="put", needs=("busybox", "zip"), prepare=ZIP,
         script="busybox unzip -qo $S/a.zip", silent={"cut": NO_CLOSE}),
    Tool(name="busybox gunzip -f", kind="put", needs=("busybox", "gzip"),
         prepare="gzip -c new.json > r.json.gz",
         script="cp $S/r.json.gz . && busybox gunzip -f r.json.gz"),
]

# $S/t is a repository of two commits: main has the row as it is, `new` has what shall be.
IDENTITY = "export GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u@e GIT_COMMITTER_NAME=u " \
    "GIT_COMMITTER_EMAIL=u@e GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null"
BASE = (f"{IDENTITY}; git init -q -b main t && cd t"
        " && printf '%s\\n' '{\"Author\":\"Ann\",\"Rating\":4}' > r.json"
        " && git add . && git commit -qm old")
BRANCH = (f"{BASE} && git checkout -qb new && cp ../new.json r.json && git commit -qam new"
          " && git checkout -q main")
HERE = f"{IDENTITY} GIT_DIR=$S/t/.git GIT_WORK_TREE=\"$PWD\""


def git(name, command, kind="put", prepare=BRANCH, **more):
    if kind == "put" and "conflict" not in name:
        more["silent"] = {"cut": f"{NO_CLOSE}; git status then shows r.json as modified"}
    return Tool(name=name, kind=kind, needs=("git",), prepare=prepare,
                script=f"{HERE}; {command}", shows=command, **more)


GIT = [
    git("git checkout BRANCH", "git checkout -q new"),
    git("git checkout BRANCH FILE", "git checkout -q new r.json"),
    git("git reset --hard", "git reset -q --hard new"),
    git("git merge", "git merge -q new"),
    git("git merge, conflict", "git merge -q new", result="old", prepare=(
        f"{IDENTITY}; git init -q -b new t && cd t && echo '{{\"Rating\":3}}' > r.json"
        " && git add . && git commit -qm base && git checkout -qb main"
        " && printf '%s\\n' '{\"Author\":\"Ann\",\"Rating\":4}' > r.json && git commit -qam ours"
        " && git checkout -q new && cp ../new.json r.json && git commit -qam theirs"
        " && git checkout -q main")),
    git("git stash", "git stash -q", prepare=(
        f"{BASE} && cp ../new.json r.json && git commit -qam new")),
    git("git stash pop", "git stash pop -q", prepare=(
        f"{BASE} && cp ../new.json r.json && git stash -q")),
    git("git clean", "git clean -qf", kind="remove",
        prepare=f"{IDENTITY}; git init -q -b main t"),
    git("git rm", "git rm -q r.json", kind="remove", prepare=BASE),
    git("git add, commit", "git add r.json && git commit -qm x && git show HEAD:r.json",
        kind="read", prepare=f"{IDENTITY}; git init -q -b main t"),
    git("git diff", "git diff --exit-code && git status --porcelain && git show :r.json",
        kind="read", prepare=BASE, said="Bus error"),
    Tool(name="git init, commit, beside", kind="beside", needs=("git",),
         skip={"killed": "writes many files, so that there is no one moment"},
         script=f"{IDENTITY}; git init -q -b main . && git add r.json && git commit -qm x",
         shows="git init . && git add r.json && git commit -m x",
         state=f"{IDENTITY}; git fsck --strict && git diff --exit-code && git rev-parse HEAD"
         " && echo whole || echo none", out="whole"),
]

# Repositories with a password derive a key slowly, on purpose: each is made once for a document.
KEPT = tempfile.TemporaryDirectory(prefix="rowfs-test-")


def kept(name, make):
    return (f"k={KEPT.name}/{name}-$(cat new.json d/r.json 2>/dev/null | cksum | cut -d' ' -f1);"
            f" [ -d $k ] || ({make}; cp -a $S/repo $k); [ -d repo ] || cp -a $k repo")


RESTIC = "export RESTIC_PASSWORD=x RESTIC_REPOSITORY=$S/repo; restic -q --no-cache"
BORG = ("export BORG_BASE_DIR=$S/b BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes"
        " BORG_RELOCATED_REPO_ACCESS_IS_OK=yes; borg")
RCLONE = "rclone --config /dev/null --cache-dir $S/c"

BACKUP = [
    Tool(name="restic backup", kind="read", needs=("restic",),
         prepare=kept("restic", f"{RESTIC} init"),
         script=f"{RESTIC} backup r.json && restic -q --no-cache dump latest /r.json",
         shows="restic backup r.json && restic dump latest /r.json"),
    Tool(name="restic restore", kind="put", needs=("restic",),
         prepare=f"{TREE}; " + kept(
             "restic-row", f"{RESTIC} init && cd d && restic -q --no-cache backup r.json"),
         script=f"{RESTIC} restore latest --target .", shows="restic restore latest --target ."),
    Tool(name="borg create", kind="read", needs=("borg",),
         prepare=kept("borg", f"{BORG} init -e none repo"),
         script=f"{BORG} create $S/repo::one r.json && borg extract --stdout $S/repo::one",
         shows="borg create REPO::one r.json && borg extract --stdout REPO::one"),
    Tool(name="borg extract", kind="put", needs=("borg",),
         prepare=f"{TREE}; " + kept(
             "borg-row", f"{BORG} init -e none repo && cd d && borg create $S/repo::one r.json"),
         script=f"{BORG} extract $S/repo::one", shows="borg extract REPO::one",
         said="|".join(ERRORS)),
    Tool(name="rclone copy", kind="put", needs=("rclone",), prepare=TREE,
         script=f"{RCLONE} copy $S/d .", shows="rclone copy $S/d ."),
    Tool(name="rclone sync", kind="put", needs=("rclone",), prepare=TREE,
         script=f"{RCLONE} sync $S/d .", shows="rclone sync $S/d ."),
    Tool(name="rclone move", kind="put", needs=("rclone",), prepare=TREE,
         script=f"{RCLONE} move $S/d .", shows="rclone move $S/d ."),
    Tool(name="rclone check", kind="read", needs=("rclone",), prepare=OLD_TREE,
         script=f"{RCLONE} check . $S/d 2>&1", shows="rclone check . $S/d",
         out="1 matching files", said="(?i)" + "|".join(ERRORS)),
    Tool(name="rclone copy, outwards", kind="read", needs=("rclone",),
         script=f"{RCLONE} copy . $S/out && cat $S/out/r.json", shows="rclone copy . $S/out"),
    Tool(name="rclone move, outwards", kind="remove", needs=("rclone",),
         script=f"{RCLONE} move . $S/out", shows="rclone move . $S/out",
         said="Attempt ./3 succeeded|[Rr]ead-only file system|[Tt]ransport endpoint .*connected"
         "|[Ss]oftware caused connection abort"),
]

LOCKED = "flock r.json bash -c 'jq -c \".Rating = $V\" r.json > tmp && mv tmp r.json'"
CONDITION = 'setfattr -n user.rowfs.if_match -v "$(getfattr --absolute-names --only-values' \
    ' -n user.rowfs.etag r.json)" tmp'

CONDITIONAL = [
    Tool(name="flock, jq, mv", kind="edit", needs=("flock", "jq"), script=LOCKED),
    Tool(name="setfattr if_match, mv", kind="put", needs=("setfattr",),
         script=f"cp $S/new.json tmp && {CONDITION} && mv tmp r.json"),
]

# A server of sftp without the ssh: sshfs talks to it by its standard input and output.
SFTP = "/usr/lib/openssh/sftp-server"


def sshfs(name, command, **more):
    return Tool(name=f"sshfs, {name}", kind="put", needs=("sshfs", SFTP, "fusermount3"), prepare=(
        f"mkdir far && printf '#!/bin/sh\\nexec {SFTP}\\n' > ssh && chmod +x ssh"), script=(
        'sshfs -o ssh_command=$S/ssh host:"$PWD" $S/far || exit; (cd $S/far && ' + command + "); rc=$?;"
        " fusermount3 -u $S/far; exit $rc"), shows=f"in a mount by sshfs: {command}", **more)


FAR = [
    sshfs("cp", "cp $S/new.json r.json", silent={
        "cut": "sshfs does not wait for the answer to its close"}),
    sshfs("dd conv=fsync", "dd if=$S/new.json of=r.json conv=fsync status=none"),
    sshfs("cp, mv", "cp $S/new.json tmp && mv tmp r.json"),
]


WHOLE = re.escape(OLD.strip())


def look(name, script, out=WHOLE, needs=(), **more):
    return Tool(name=name, kind="read", script=script, out=out,
                needs=needs or (name.split()[0],), **more)


NAMES_ONLY = {c: "looks at names and attributes alone" for c in ("meanwhile", "killed")}


def glance(name, script, out=WHOLE, **more):
    return look(name, script, out, skip=NAMES_ONLY, **more)


# These read the row.
READERS = [
    look("grep -r", "grep -r Ann .", r'\./r\.json:\{"Author":"Ann","Rating":4\}'),
    look("find -exec cat", "find . -name '*.json' -exec cat {} +"),
    look("wc", "wc r.json", " 1  1 28 r.json"),
    look("cmp", "cmp r.json $S/d/r.json && echo same", "same", prepare=OLD_TREE),
    look("diff -r", "diff -r . $S/d && echo same", "same", prepare=OLD_TREE),
    look("sha256sum", "sha256sum r.json",
         "6110c8e2a9180a900458da900659837fcf1f357617931cb0b5b09b198e6e3f12"),
    look("file", "file r.json", "JSON", said=r"cannot read.*"),
    look("less", "less r.json | cat", said="read error"),
    look("head", "head -n 1 r.json"),
    look("tail -f", "tail -n +1 -s 0.01 --pid=$(bash -c 'echo $$') -f r.json"),
    look("sort", "sort r.json"),
    look("jq", "jq -c . r.json"),
    look("od", "od -c r.json", r'"   R   a   t   i   n   g'),
    look("flock -s, cat", "flock -s r.json cat r.json", needs=("flock",)),
    look("busybox cat", "busybox cat r.json"),
]

# These look at names and attributes alone.
LOOKERS = [
    glance("ls -l", "ls -l", "28 .* r.json"),
    glance("stat", "stat -c '%n %s %h %F' r.json", "r.json 28 1 regular file"),
    glance("du -b", "du -ab r.json", "28\tr.json"),
    glance("df", "df --output=fstype . | tail -n 1", "fuse.rowfs"),
    glance("find -size -newer", "find . -name r.json -size -2k -newermt 2000-01-01 -print",
         r"\./r.json"),
    glance("tree", "tree -s .", "28.*r.json"),
    glance("ncdu", "ncdu -0xo- .", '"name":"r.json","asize":28'),
    glance("getfattr", "getfattr -n user.rowfs.etag r.json", "user.rowfs.etag=\"W/"),
    glance("getfattr -d", "getfattr -d -m - r.json; echo none", "^none$"),
    glance("setfattr", "setfattr -n user.color -v red r.json"),
    glance("getfacl", "getfacl r.json", "user::rw-"),
    glance("setfacl", "setfacl -m u:1:r r.json"),
    glance("lsattr", "lsattr r.json"),
    glance("chattr", "chattr +i r.json"),
    glance("fuser", "exec 3< r.json; fuser r.json 2>&1", r"r.json: +\d+"),
    glance("lsof", "exec 3< r.json; lsof r.json; true", r"REG .* r.json"),
]

REMOVERS = [
    Tool(name="find -delete", kind="remove", script="find . -name '*.json' -delete"),
]

TOOLS = [*RSYNC, *ARCHIVES, *GIT, *BACKUP, *FAR, *CONDITIONAL, *READERS, *LOOKERS, *REMOVERS]
