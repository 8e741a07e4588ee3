# SPDX-License-Identifier: MIT
"""Real tools on a real mount: what the matrix has no cells for.  Each test types what a user
would type, and looks at the result by the tool and by the bytes."""

import json
import os

import pytest

from tools import get, need, put, rejected, rows, sh

OLD = '{"Author":"Ann","Rating":4}\n'
NEW = '{"Author":"Ann","Rating":5}\n'


@pytest.fixture
def r(part):
    """A partition with one row, to be changed from OLD to NEW."""
    put(part / "r.json", OLD)
    return part


def changed(part, *others):
    assert json.loads(get(part / "r.json")) == json.loads(NEW)
    assert rows(part) == sorted(["r.json", *others])


# ---- looking


def test_ls_stat_find_du(mnt, r):
    put(r / "q.json", "{}")
    out = sh("ls; ls -la; stat r.json; find . -name '*.json' | wc -l; du -s .; df .; wc -c r.json;"
             "find . -size +1k; ls -lR /proc/self/cwd; sync r.json; sync -f r.json", cwd=r)
    assert out.stdout.startswith("q.json\nr.json\ntotal ") and "2\n" in out.stdout
    assert f"{len(OLD)} r.json" in out.stdout and out.stderr == ""
    assert len(sh("find .", cwd=mnt.path).stdout.split()) == 6


def test_cat_head_tail_less_cmp_diff_sort_sha1sum_od(r):
    put(r / "q.json", NEW)
    out = sh("cat r.json q.json; head -c 5 r.json; tail -n 1 q.json; sort q.json; cmp r.json q.json;"
             "diff r.json q.json; od -c r.json | head -1; sha1sum r.json; file -b r.json || true;"
             "md5sum < r.json; less r.json < /dev/null | cat; tac r.json; nl r.json; true", cwd=r)
    assert out.stdout.startswith(OLD + NEW)


def test_grep_r(mnt, r):
    out = sh("grep -rl Ann . ; grep -c Rating r.json; ! grep -rq nothing .", cwd=mnt / "acct1")
    assert out.stdout.startswith("./Blogs/Channel_19/r.json\n") if "Rating" in out.stdout else True
    assert sh("grep -rl Ann acct1", cwd=mnt.path).stdout == "acct1/Blogs/Channel_19/r.json\n"


def test_jq_over_a_partition(part):
    for i in range(20):
        put(part / f"{i}.json", json.dumps({"n": i}) + "\n")
    assert sh("cat *.json | jq -s 'map(.n) | add'", cwd=part).stdout == "190\n"
    assert sh("jq -n '[inputs.n] | add' *.json", cwd=part).stdout == "190\n"


def test_getfattr_and_setfattr(r):
    out = sh("getfattr -n user.rowfs.etag --only-values r.json; getfattr -d r.json", cwd=r).stdout
    assert out.startswith("W/\"datetime'")
    sh("cp r.json tmp; setfattr -n user.rowfs.if_match -v '*' tmp; mv tmp r.json", cwd=r)
    assert sh("setfattr -n user.x -v 1 r.json", cwd=r, check=False).returncode != 0


# ---- copying, moving, making, removing


def test_cp_both_ways(r, work):
    (work / "new").write_text(NEW)
    sh(f"cp {work}/new r.json && cp r.json s.json && cmp r.json s.json && cp s.json {work}/out"
       f" && cmp {work}/out {work}/new && cp -a r.json t.json && cp -rp . {work}/dir"
       f" && diff -r . {work}/dir && cp --reflink=never r.json t.json && cp -f r.json t.json"
       f" && cp -u r.json t.json && cp -b r.json t.json", cwd=r)
    changed(r, "s.json", "t.json", "t.json~")


def test_cp_a_keeps_times_both_ways(r, work):
    os.utime(r / "r.json", ns=(10**18, 10**18 + 5))
    sh(f"cp -a r.json q.json; cp -a r.json {work}/x; cp -a {work}/x y.json", cwd=r)
    for p in (r / "q.json", work / "x", r / "y.json"):
        assert os.stat(p).st_mtime_ns == 10**18 + 5, p


def test_cp_reflink_always_fails_cleanly(r):
    out = sh("cp --reflink=always r.json n.json", cwd=r, check=False)
    assert out.returncode == 1 and "failed to clone" in out.stderr
    assert get(r / "r.json").decode() == OLD


def test_mv(r, work):
    (work / "new").write_text(NEW)
    sh(f"mv {work}/new r.json && mv r.json s.json && mv s.json r.json && mv -n r.json t.json"
       f" && mv -T t.json r.json && mv r.json {work}/out && mv {work}/out r.json"
       " && mv -b r.json u.json && mv u.json r.json", cwd=r)
    changed(r)


def test_mkdir_and_mv_of_directories(mnt):
    sh("mkdir -p acct1/Blogs/a acct1/Blogs/b && echo '{}' > acct1/Blogs/a/r.json"
       " && mv acct1/Blogs/a/r.json acct1/Blogs/b && mv acct1/Blogs/b acct1/Blogs/c"
       " && mv acct1/Blogs acct1/News && rmdir acct1/News/a && ls acct1/News/c/r.json"
       " && mkdir -m 700 acct1/News/d && rmdir -p acct1/News/d || true", cwd=mnt.path)
    assert rows(mnt / "acct1/News") == ["c"]


def test_rm_and_rm_r(mnt, r):
    put(r / "q.json", "{}")
    sh("rm q.json && ! rm q.json 2>/dev/null && rm -f q.json && cd / && rm -rf "
       f"'{mnt.path}/acct1/Blogs'", cwd=r)
    assert rows(mnt / "acct1") == []


def test_find_delete(part):
    for i in range(300):
        put(part / f"{i}.json", "{}")
    sh("find . -name '*.json' -delete; ls -A | wc -l", cwd=part)
    assert rows(part) == []


def test_install(r, work):
    (work / "new").write_text(NEW)
    sh(f"install -m 640 {work}/new r.json && install -D -m 600 r.json s.json", cwd=r)
    changed(r, "s.json")
    assert os.stat(r / "r.json").st_mode & 0o777 == 0o640


def test_touch(r):
    sh("touch r.json && touch -d 2001-02-03T04:05:06 r.json && touch -r r.json q.json"
       " && touch new.json && touch -c none.json", cwd=r)
    assert get(r / "r.json").decode() == OLD
    assert os.stat(r / "q.json").st_mtime == os.stat(r / "r.json").st_mtime == 981173106
    assert rows(r) == ["new.json", "q.json", "r.json"]


def test_truncate_and_dd(r):
    out = sh("truncate -s 3 r.json", cwd=r, check=False)
    assert out.returncode == 1 and get(r / "r.json").decode() == OLD
    out = sh("truncate -s 100000 r.json", cwd=r, check=False)
    assert out.returncode == 1 and get(r / "r.json").decode() == OLD
    sh("printf 5 | dd of=r.json bs=1 seek=25 conv=notrunc status=none", cwd=r)
    changed(r)
    sh("dd if=r.json of=s.json bs=7 status=none && cmp r.json s.json"
       " && dd if=s.json of=r.json conv=fsync status=none", cwd=r)
    changed(r, "s.json")
    out = sh("dd if=/dev/zero of=r.json bs=1 count=1 conv=notrunc", cwd=r, check=False)
    assert out.returncode == 1
    changed(r, "s.json")
    sh("truncate -s 100 file && test $(stat -c %s file) = 100", cwd=r)


def test_shred_says_that_it_cannot(r):
    """Random bytes are no row: the first fsync refuses them, and shred stops."""
    need("shred")
    assert sh("shred -n 1 -u r.json", cwd=r, check=False).returncode == 1
    assert get(r / "r.json").decode() == OLD
    sh("echo secret > file && shred -n 1 -u file", cwd=r)
    assert rows(r) == ["r.json"]


# ---- editing


# Those that write in place or copy the mode; others make a new file on any file system, and are in
# the matrix.
KEEPS_MODE = {
    "sed -i": "sed -i s/4/5/ r.json",
    "sed -i.bak": "sed -i.bak s/4/5/ r.json && rm r.json.bak",
    "sed -i -s over many": "cp r.json q.json && sed -i s/4/5/ *.json && rm q.json",
    "perl -pi": "perl -pi -e s/4/5/ r.json",
    "perl -pi.orig": "perl -pi.orig -e s/4/5/ r.json && rm r.json.orig",
    "gawk -i inplace": "gawk -i inplace '{sub(4,5)} 1' r.json",
    "jq | sponge": "jq '.Rating += 1' r.json | sponge r.json",
    "jq | tee": "jq '.Rating += 1' r.json | tee r.json > /dev/null",
    "jq > itself": "jq '.Rating += 1' r.json > r.json",
    "echo >": "echo '{\"Author\":\"Ann\",\"Rating\":5}' > r.json",
    "printf in pieces >": "{ printf '{\"Author\":'; printf '\"Ann\",'; echo '\"Rating\":5}'; } > r.json",
    "cat heredoc": "cat > r.json <<X\n{\"Author\":\"Ann\",\n\"Rating\":5}\nX",
    "ed": "printf '%s\\n' s/4/5/ w q | ed -s r.json",
    "ex": "vim -u NONE -es -c '%s/4/5/' -c wq r.json < /dev/null",
    "vim, default backup": "vim -u NONE -N -es -c 'set nobackup writebackup backupskip= "
                           "backupcopy=auto' -c '%s/4/5/' -c wq r.json < /dev/null",
    "vim, backupcopy=yes": "vim -u NONE -N -es -c 'set writebackup backupskip= backupcopy=yes'"
                           " -c '%s/4/5/' -c wq r.json < /dev/null",
    "vim, backupcopy=no": "vim -u NONE -N -es -c 'set writebackup backupskip= backupcopy=no'"
                          " -c '%s/4/5/' -c wq r.json < /dev/null",
    "vim, swap file": "vim -u NONE -N -es -c 'set swapfile directory=. updatecount=1'"
                      " -c '%s/4/5/' -c wq r.json < /dev/null",
    "vim, backup kept": "vim -u NONE -N -es -c 'set backup backupskip= backupdir=.'"
                        " -c '%s/4/5/' -c wq r.json < /dev/null && rm r.json~",
    "emacs": "emacs -Q --batch r.json --eval '(while (search-forward \"4\" nil t)"
             " (replace-match \"5\"))' -f save-buffer; rm -f r.json~",
    "sort -o": "sed -i s/4/5/ r.json && sort -o r.json r.json",
    "python w": """/usr/bin/python3 -c 'import json
d=json.load(open("r.json")); d["Rating"]=5
with open("r.json","w") as f: json.dump(d,f,indent=2)'""",
    "python r+": """/usr/bin/python3 -c 'import json
with open("r.json","r+") as f:
    d=json.load(f); d["Rating"]=5; f.seek(0); f.truncate(); json.dump(d,f)'""",
    "python r+ in place": """/usr/bin/python3 -c '
with open("r.json","r+b",0) as f:
    f.seek(25); f.write(b"5")'""",
    "python pathlib, shutil": """/usr/bin/python3 -c 'import pathlib,shutil
p=pathlib.Path("r.json"); p.write_text(p.read_text().replace("4","5"))
shutil.copy2("r.json","s.json"); shutil.move("s.json","r.json")'""",
}


@pytest.mark.parametrize("how", KEEPS_MODE)
def test_edit_keeps_the_mode(r, how):
    for tool in ("emacs", "gawk", "vim", "ed", "patch", "sponge", "perl"):
        if tool in KEEPS_MODE[how].split() or f"{tool} " in how:
            need(tool)
    os.chmod(r / "r.json", 0o640)
    sh(KEEPS_MODE[how], cwd=r)
    changed(r)
    assert os.stat(r / "r.json").st_mode & 0o777 == 0o640


def test_dev_stdout(r):
    """A second open of the descriptor that the shell has."""
    sh("{ sed s/4/5/ r.json > t; cat t > /dev/stdout; } > r.json; rm t", cwd=r)
    changed(r)


# ---- what is no row: an error that they show, the row as it was


def test_a_truncated_document_by_cp(mnt, r, work):
    (work / "half").write_text('{"Author":"A')
    out = sh(f"cp {work}/half r.json", cwd=r, check=False)
    assert out.returncode == 1 and "Invalid argument" in out.stderr
    assert get(r / "r.json").decode() == OLD


def test_tools_that_unlink_first_leave_the_bytes_in_rejected(mnt, r, work):
    """tar, cpio and unzip remove the row before they write the new one: the removal was
    asked for; what they then wrote is kept."""
    (work / "d").mkdir()
    (work / "d/r.json").write_text("{bad}")
    sh(f"tar -C {work}/d -cf {work}/a.tar r.json")
    out = sh(f"tar xf {work}/a.tar", cwd=r, check=False)
    assert out.returncode == 2 and "Invalid argument" in out.stderr
    assert b"{bad}" in rejected(mnt).values()


# ---- archives and synchronization


def tree(table, n=30):
    for p in ("a", "b c", "%_"):
        (table / p).mkdir()
        for i in range(n):
            path = table / p / f"k {i}.json"
            put(path, json.dumps({"n": i, "s": "x" * i * 50}, indent=i % 3) + "\n" * (i % 2))
            os.utime(path, ns=(10**18 + i, 10**18 + i * 1001))
        put(table / p / "notes.txt", "beside")


def listing(top):
    found = {}
    for d, _, names in os.walk(top):
        for n in names:
            p = os.path.join(d, n)
            found[os.path.relpath(p, top)] = (get(p), os.stat(p).st_mtime_ns)
    return found


RSYNC = ["-a", "-aHAX", "-a --inplace", "-a --partial", "-a --delay-updates", "-a --checksum",
         "-a --delete", "-a --fsync", "-rlt --no-whole-file", "-a --partial-dir=.rsync-partial",
         "-a --delete-after --backup", "-a --preallocate"]


@pytest.mark.parametrize("flags", RSYNC)
def test_rsync_both_ways(account, table, work, flags):
    need("rsync")
    (account / "Copy").mkdir()
    tree(table)
    stats = " --stats --out-format='SENT %n' "
    for source, target in ((table, work / "out"), (work / "out", account / "Copy")):
        first = sh(f"rsync {flags} {stats} '{source}/' '{target}/'")
        said = [x for x in first.stderr.splitlines() if "do_fallocate" not in x]
        assert not said and "SENT" in first.stdout
        assert listing(source) == listing(target)
        again = sh(f"rsync {flags} {stats} '{source}/' '{target}/'")
        assert "files transferred: 0" in again.stdout, again.stdout
        assert "SENT" not in again.stdout.replace("SENT ./\n", ""), again.stdout
    put(table / "a" / "k 3.json", '{"changed":true}')
    os.unlink(table / "a" / "k 4.json")
    sh(f"rsync {flags} '{table}/' '{account}/Copy/'")
    assert get(account / "Copy/a/k 3.json") == b'{"changed":true}'
    assert (account / "Copy/a/k 4.json").exists() == ("--delete" not in flags)


@pytest.mark.parametrize("pack,unpack", [
    ("tar -cf - . ", "tar -xf -"),
    ("tar --xattrs --acls -cf - .", "tar --xattrs --acls -xf -"),
    ("tar -cf - .", "tar --overwrite -xf -"),
    ("tar -czf - .", "tar -xzf -"),
    ("find . -depth | cpio -o --quiet -H newc", "cpio -idmu --quiet --no-absolute-filenames"),
    ("busybox tar -cf - .", "busybox tar -xf -"),
])
def test_archives_both_ways(account, table, work, pack, unpack):
    need(pack.split()[0] if "cpio" not in pack else "cpio")
    (account / "Copy").mkdir()
    (work / "out").mkdir()
    tree(table)
    want = {k: (v[0], v[1] // 10**9) for k, v in listing(table).items()}
    for source, target in ((table, work / "out"), (work / "out", account / "Copy"),
                           (table, account / "Copy")):  # the last one over what is there
        sh(f"set -o pipefail; cd '{source}' && {pack} | (cd '{target}' && {unpack})")
        assert {k: (v[0], v[1] // 10**9) for k, v in listing(target).items()} == want


def test_zip_and_unzip(account, table, work):
    need("zip", "unzip")
    (account / "Copy").mkdir()
    tree(table)
    sh(f"cd '{table}' && zip -qr {work}/a.zip . && cd '{account}/Copy' && unzip -qo {work}/a.zip"
       f" && unzip -qo {work}/a.zip")
    assert {k: v[0] for k, v in listing(account / "Copy").items()} == {
        k: v[0] for k, v in listing(table).items()}


def test_zip_gzip_beside_the_rows(r):
    need("zip", "gzip")
    sh("zip -q x.zip r.json && unzip -p x.zip r.json | cmp - r.json && gzip -k r.json"
       " && zcat r.json.gz | cmp - r.json && rm x.zip r.json.gz", cwd=r)
    assert rows(r) == ["r.json"]


def test_a_git_work_tree(account, table, work):
    need("git")
    tree(table, 10)
    git = (f"git -c user.name=u -c user.email=u@e -c core.quotePath=false --git-dir={work}/g "
           f"--work-tree='{table}'")
    sh(f"git init -q --bare {work}/g && git --git-dir={work}/g config core.bare false")
    sh(f"{git} add -A && {git} commit -qm one && {git} status --porcelain", cwd=table)
    before = {k: v[0] for k, v in listing(table).items()}
    put(table / "a" / "k 1.json", '{"changed":1}')
    os.unlink(table / "a" / "k 2.json")
    put(table / "a" / "new.json", "{}")
    out = sh(f"{git} status --porcelain", cwd=table).stdout.split("\n")
    assert sorted(x[:2] for x in out if x) == [" D", " M", "??"]
    sh(f"{git} checkout -q -- . && {git} clean -qfd && {git} status --porcelain", cwd=table)
    assert {k: v[0] for k, v in listing(table).items()} == before
    sh(f"{git} fsck --strict && {git} diff --exit-code", cwd=table)


def test_busybox_applets(r):
    need("busybox")
    sh("busybox ls -l && busybox cat r.json && busybox cp r.json s.json && busybox mv s.json t.json"
       " && busybox find . && busybox grep -r Ann . && busybox rm t.json && busybox touch u"
       " && busybox rm u && busybox stat r.json", cwd=r)
    assert rows(r) == ["r.json"]


def test_flock_between_processes(r):
    sh("flock r.json -c 'flock -n r.json true && exit 9; exit 0'", cwd=r)
    sh("touch lock && flock lock true", cwd=r)


def test_xargs_in_parallel(part):
    sh("seq 400 | xargs -P 4 -I{} sh -c 'echo \"{\\\"n\\\":{}}\" > t{} && mv t{} {}.json'", cwd=part)
    assert len(rows(part)) == 400
    assert sh("cat *.json | jq -s 'map(.n) | add'", cwd=part).stdout == "80200\n"


def test_inotifywait_like_watch_on_the_directory(r):
    """tail -F of the log, as people do; it must not end in an error."""
    out = sh("timeout 1 tail -n +1 -f r.json; test $? = 124", cwd=r)
    assert out.stdout == OLD


def test_restic(account, table, work):
    need("restic")
    tree(table)
    restic = f"RESTIC_PASSWORD=x restic -q --no-cache -r {work}/repo"
    sh(f"{restic} init && {restic} backup '{table}' && {restic} backup '{table}'"
       f" && {restic} check --read-data")
    sh(f"{restic} restore latest --target {work}/out")
    assert listing(f"{work}/out{table}") == listing(table)
    want = listing(table)
    for d in ("a", "b c"):
        for name in os.listdir(table / d):
            os.unlink(table / d / name)
    sh(f"{restic} restore latest --target /  --include '{table}'")  # back into the mount
    assert listing(table) == want


def test_borg(table, work):
    need("borg")
    tree(table)
    borg = f"BORG_BASE_DIR={work}/b BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes borg"
    sh(f"{borg} init -e none {work}/repo && {borg} create {work}/repo::one '{table}'"
       f" && {borg} create --list --filter=AM {work}/repo::two '{table}' 2>{work}/log"
       f" && {borg} check {work}/repo")
    # borg never trusts its cache for the youngest file.
    again = (work / "log").read_text().splitlines()
    assert len(again) <= 1, "the second backup found changed files"
    want = listing(table)
    for name in os.listdir(table / "a"):
        os.unlink(table / "a" / name)
    sh(f"cd / && {borg} extract {work}/repo::one")
    assert listing(table) == want


def test_rclone(account, table, work):
    need("rclone")
    (account / "Copy").mkdir()
    tree(table)
    rclone = f"rclone --config /dev/null --cache-dir {work}/c"
    for source, target in ((table, work / "out"), (work / "out", account / "Copy")):
        sh(f"{rclone} sync '{source}' '{target}' && {rclone} check '{source}' '{target}'")
        assert listing(source) == listing(target)
        again = sh(f"{rclone} -v sync '{source}' '{target}'")
        assert "nothing to transfer" in again.stderr


def test_nano(r):
    """Replace all (^\\), write out (^O), exit (^X)."""
    need("nano", "script")
    keys = "".join(f"sleep 0.3; printf '{k}'; " for k in ("\\034", "4\\r", "5\\r", "A", "\\017", "\\r",
                                                         "\\030"))
    sh(f"({keys}) | TERM=vt100 timeout 20 script -qec 'nano -I r.json' /dev/null > /dev/null",
       cwd=r)
    changed(r)
