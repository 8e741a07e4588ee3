# SPDX-License-Identifier: MIT
"""Every line of docs/recipes.md is typed, and does what the page says.

A table of the page is a test: its lines run one after the other, with bash, where the
table's heading says.  CHECKS has for each line what it must print, and a command that must
succeed afterwards.  A line without a check is a failure, and a check without its line too."""

import contextlib
import re
import shlex
import socket
import subprocess

import pytest

from conftest import TOP
from tools import need, sh

PAGE = (TOP / "docs/recipes.md").read_text(encoding="utf-8")
TABLES = {title: (place, rows.strip().split("\n")) for title, place, rows in re.findall(
    r"^## (.+)\n(?:\n|[^#|\n].*\n)*\| to \| do, (.*?) \|\n\| --- \| --- \|\n((?:\|.*\n)+)", PAGE, re.M)}
BY_HAND = "*(by hand)*"

POSTS = """\
{"PartitionKey":"Football","RowKey":"1","Text":"Hi","Rating":5}
{"PartitionKey":"Football","RowKey":"2","Text":"Kick-off moved","Rating":3}
{"PartitionKey":"Football","RowKey":"50%","Text":"it's on","Rating":2}
{"PartitionKey":"Chess","RowKey":"1","Text":"e4","Rating":4}
{"PartitionKey":"Links","RowKey":"1","Url":"http://example.org/50%"}
"""
SET = """[{"insert": {"RowKey": "8", "Text": "Half-time"}},
 {"merge": {"RowKey": "1", "Rating": 8}}]
"""

NOTHING = r"\A\Z"
# What a line prints (a regular expression), and then maybe what holds afterwards.
CHECKS = {
    "Begin": {
        "make a store": (r"", "test $(stat -c %a blogs.rowfs) = 600"),
        "add an account": (r"AccountKey=", "rowfs account list blogs.rowfs | grep -q myblogs"),
        "mount": (NOTHING, "test -d mnt/myblogs"),
        "add an account where it is mounted": (NOTHING, "rowfs account list blogs.rowfs | grep -q shop"),
        "make a table and a partition": (NOTHING, "test -d mnt/shop/Orders/2026"),
        "fill a table": (r"5 rows imported", "test -f mnt/myblogs/Posts/Football/1.json"),
        "see what there is": (r"(?s)mnt/myblogs/Posts\n.*largest partitions\n *3  myblogs/Posts/Football",),
        "make it read-only for a while, through the mount and REST alike": (
            NOTHING, "! mkdir mnt/more 2>/dev/null && ! rowfs account add blogs.rowfs more 2>/dev/null"),
        "make it writable again": (NOTHING, "mkdir mnt/shop/More && rmdir mnt/shop/More"),
        "unmount": (r"", "! mountpoint -q mnt"),
        "mount read-only": (NOTHING, "! mkdir mnt/more 2>/dev/null"),
    },
    "Read": {
        "read a row": (r'{"Text":"Hi","Rating":5}\n',),
        "see the rows of a partition, one a line": (r"(?s)\A(\{[^\n]*\}\n){3}\Z",),
        "see keys and a property": (r"Football/2.json\t3\n",),
        "select by a property": (r'\A{"Text":"e4","Rating":4}\n{"Text":"Hi","Rating":5}\n\Z',),
        "find rows by text": (r"\A./Football/1.json\n\Z",),
        "find rows by when they changed": (r"(?s)\./Chess/1.json\n.*\./Football/50%25.json\n",),
        "see the latest ten changes": (r"(?m)^20\d\d-.* \./Football/1\.json$",),
        "count the rows of each partition": (r"\A1 Chess/\n3 Football/\n1 Links/\n\Z",),
        "read a whole table, a partition, with the keys": (
            r'(?s)\A(\{"PartitionKey[^\n]*\n){5}RowKey|PartitionKey,RowKey',),
        "see many rows, with their keys": (r'\A{"PartitionKey":"Chess".*\n{"Part.*"Hi".*\n\Z',),
        "add up by a key": (r'(?m)^{"key":"Football","sum":10}$',),
        "learn a row's ETag": (r"W/\"datetime'20",),
        "learn the key behind a file name": (r"\A50%\Z",),
    },
    "Ask": {
        "ask for rows": (r'\AChess\nFootball\n"e4"\n"Hi"\n\Z',),
        "ask for the first ten of a partition, two properties": (
            r"\APartitionKey,RowKey,Text,.*\nFootball,1,Hi,(?s:.*)50%",),
        "ask for a range of keys": (r"\A2.json\n50%25.json\n\Z",),
        "ask for keys that begin so": (r"\AFootball\n\Z",),
        "count them": (r"\A2\n\Z",),
        "see what it costs": (r'"plan":"table scan"',),
        "work on the rows of a query with any tool": (NOTHING, None, 1),
        "change all rows of a query": (
            NOTHING, "grep -q '\"Rating\":4' Football/2.json Football/50%25.json Chess/1.json"
                     " && grep -q '\"Rating\":5' Football/1.json"),
        "ask for a value with a slash or a percent sign": (r'\A{"PartitionKey":"Links".*\n\Z',),
        "ask for a name with a quote": (r"\A{\"PartitionKey\":\"Football\",\"RowKey\":\"50%\"",),
    },
    "Change": {
        "write a row": (NOTHING, "test $(jq .Count Football/3.json) = 2"),
        "give a type": (NOTHING, "grep -q 'Edm.Int64' Football/3.json"),
        "change a property": (NOTHING, "test $(jq .Rating Football/1.json) = 6"),
        "take a property away": (NOTHING, "! grep -q Rating Football/3.json"),
        "change all rows of a partition": (NOTHING, "test $(grep -l Seen Football/*.json | wc -l) = 4"),
        "change text in place": (NOTHING, "grep -q delayed Football/2.json"),
        "see a change before it is made": (r'(?m)^> .*"Rating":1,',),
        "copy a row": (NOTHING, "cmp Football/1.json Football/4.json"),
        "change a row's key": (NOTHING, "test ! -e Football/4.json -a -e Football/5.json"),
        "move a row to another partition": (NOTHING, "test ! -e Football/5.json -a -e Chess/5.json"),
        "swap two partitions": (NOTHING, "test -e Football/5.json -a -e Chess/50%25.json"),
        "change the PartitionKey of all rows": (NOTHING, "test -e Draughts/50%25.json -a ! -e Chess"),
        "delete a row": (NOTHING, "test ! -e Draughts/1.json -a -e Draughts/2.json"),
        "delete a partition": (NOTHING, "test ! -e Draughts"),
        "delete the rows of a query": (NOTHING, "test -e Football/5.json"),
        "use a key with a percent sign: write it as `%25`": (
            NOTHING, "getfattr --only-values -n user.rowfs.row_key Football/60%25.json | grep -qx 60%"),
        "use a key with a leading dot": (
            NOTHING, "getfattr --only-values -n user.rowfs.row_key Football/%2Eprofile.json"
                     " | grep -qx .profile"),
        "use the empty key": (NOTHING, "ls '%_/%_.json'"),
        "keep a file beside the rows": (NOTHING, "cmp ~/photo.jpg Football/1.jpg"),
        "load rows; it stops at the first bad line and says which": (
            NOTHING, "test $(ls Football/*.json | wc -l) -ge 5 -a -e Links/1.json"),
        "be sure that it is on the disk": (NOTHING,),
        "write a row in a script, and hear of every refusal": (
            NOTHING, "test $(jq -r .Item Football/6.json) = tea &&"
                     " ! printf '{\"Item\":' 2>&1 | cat 2>/dev/null > Football/6.json"),
    },
    "Change together": {
        "change several rows of a partition, or none": (
            NOTHING, "test -e Football/7.json && grep -q '\"Rating\":4' Football/1.json"),
        "see whether that would work": (NOTHING, "test ! -e Football/8.json"),
        "commit a change set and have its result, whoever else writes": (
            r'"committed": ?true', "test -e Football/8.json"),
        "delete the rows of a partition, all or none (up to 100)": (
            NOTHING, "test ! -e Chess/1.json"),
    },
    "Not to lose a change": {
        "change a row only if it is still as it was (else ESTALE)": (
            NOTHING, "test $(jq .Rating Football/1.json) = 9"),
        "set the condition, and take it back": (
            NOTHING, "! getfattr -n user.rowfs.if_match Football/1.json 2>/dev/null"),
        "never overwrite": (r"", "test -e Football/2.json && grep -q Hi Football/1.json"),
        "count up from many shells at once": (NOTHING, "test $(jq .Rating Football/1.json) = 10"),
        "change what was read, if it is still that (else ESTALE)": (
            NOTHING, "test $(jq .Rating Football/1.json) = 11"),
        "let one job run at a time": (NOTHING,),
    },
    "Watch": {
        "wait for the next change of a partition": (NOTHING,),
        "see what the daemon does": (r'"operations"',),
        "see the busiest partitions": (r"(?s)myblogs/Posts/Football.*hottest partitions",),
        "see the slowest operations": (r'"p99_us"',),
        "give the figures to Prometheus, from a timer; here `metrics` is the node exporter's directory":
            (NOTHING, "grep -q '^# HELP' metrics/rowfs.prom"),
    },
    "When something was refused": {
        "learn why": (r"cannot be an object or array \(line 1, column",),
        "see the latest refusals": (r'"code": "',),
        "find the refused bytes": (r"-1\.json",),
        "mend them, and try again": (NOTHING, "grep -q '\"Tags\":\"a\"' mnt/myblogs/Posts/Football/1.json"),
        "learn why an import stopped": (r"line 2",),
        "learn why a query is refused": (r"(?i)filter|option|position",),
        "get back a row that was removed, also by a tool that failed then (install, mv, tar)": (
            NOTHING, "grep -q moved mnt/myblogs/Posts/Football/2.json"),
        "empty the trash": (NOTHING, "test -z \"$(ls mnt/.rowfs/trash)\""),
        "mount again after the daemon was killed": (r"", "grep -q moved mnt/myblogs/Posts/Football/2.json"),
        "verify the whole store": (r": clean\n",),
    },
    "Back up, and bring back": {
        "back up a table as files; the second time only what changed": (
            NOTHING, "diff -r mnt/myblogs/Posts backup && rm mnt/myblogs/Posts/Chess/1.json"),
        "restore it": (NOTHING, "diff -r mnt/myblogs/Posts backup"),
        "back up everything as of one moment": (
            NOTHING, "diff -r mnt all && test -z \"$(ls mnt/.rowfs/snapshots)\""),
        "let a snapshot go by itself, should that script die": (NOTHING, "test -d mnt/.rowfs/snapshots/n"),
        "see what changed since a snapshot": (NOTHING,),
        "let a snapshot go": (NOTHING, "test ! -e mnt/.rowfs/snapshots/n"),
        "restore everything into a new store": (
            r"", "rowfs export new.rowfs myblogs/Posts | jq -c 'del(.Timestamp)' > a"
                 "; rowfs export blogs.rowfs myblogs/Posts | jq -c 'del(.Timestamp)' | cmp - a"),
        "keep the keys of an account, too": (
            r"AccountKey=", "rowfs account keys blogs.rowfs myblogs | grep '^key1' > a;"
                            " rowfs account keys keyed.rowfs myblogs | grep '^key1' | cmp - a"),
        "one archive": (NOTHING, "tar -tzf posts.tar.gz | grep -q Posts/Football/1.json"
                                 " && rm mnt/myblogs/Posts/Chess/1.json"),
        "the rows of an archive back": (NOTHING, "diff -r mnt/myblogs/Posts backup"),
        "one archive of all, with every time to the nanosecond": (
            NOTHING, "tar -df all.tar -C mnt && rm all.tar"),
        "restic": (r"", "rm mnt/myblogs/Posts/Chess/1.json"),
        "and back": (r"", "diff -r mnt/myblogs/Posts backup"),
        "restic, with the accounts at its top": (r"", "rm mnt/myblogs/Posts/Chess/1.json"),
        "and back, into a mount": (r"", "diff -r mnt/myblogs/Posts backup"),
        "borg": (r"", "borg list brepo | grep -q today"),
        "and back, with borg": (r"", "diff -r mnt/myblogs/Posts backup"),
        "rclone, to any of its clouds": (r"", "diff -r mnt/myblogs copy"),
        "the history of a table in git": (r"", "git --git-dir=history.git log --oneline | grep -q ."),
        "see what a day changed": (r"Football/1.json",),
        "one file with all rows of a table": (r"", "test $(wc -l < posts-1.ndjson) = 5"),
        "copy the whole store, mounted or not, with its accounts and their keys": (
            r"", "test $(stat -c %a blogs.bak) = 600"),
        "and see that the copy is sound": (r"clean", ""),
        "put the copy in the place of a store": (
            r"", "test -e mnt/myblogs/Posts/Football/1.json"),
        "copy the store, while it is not mounted": (
            r"", "rowfs check copy.rowfs && test -e mnt/myblogs/Posts/Football/1.json"),
    },
    "In and out": {
        "copy a table": (NOTHING, "diff -r . ../Copy"),
        "copy a part of it": (NOTHING, "test $(find ../Best -name '*.json' | wc -l) = 2"),
        "copy the result of a query": (NOTHING, "diff -r ../Best ../Top"),
        "rename a table": (NOTHING, "diff -r ../Best ../Favourites"),
        "make a sheet of two columns": (NOTHING, "grep -q '^Football,1,Hi,' ~/sheet.csv"),
        "ask in SQL": (r"(?m)^Football\|3\.3",),
    },
    "Stores, sheets": {
        "move a table to another store": (r"5 rows imported", "rowfs check other.rowfs"),
        "export a partition as CSV": (r"\APartitionKey,RowKey,(?s:.*)Football,2,",),
        "import a sheet: name the column with its type": (
            r"1 row imported", "grep -qx '{\"N\":5}' mnt/myblogs/Numbers/a/1.json"),
        "import only what is new": (r"(?s)EntityAlreadyExists.*", None, 1),
        "add properties to rows that exist": (r"5 rows imported",),
        "count": (r"(?m)^rows +6$",),
    },
    "From a program": {
        "serve the store beside the mount": (NOTHING, "test -S rowfs.sock"),
        "get a connection string": (r"DefaultEndpointsProtocol=.*AccountName=games;AccountKey=",),
        "serve programs that say `UseDevelopmentStorage=true`": (r"devstoreaccount1",),
        "use curl on the Unix socket, without a signature": (r'"value":\[',),
        "add a row so": (r"", "grep -q e5 mnt/myblogs/Posts/Chess/2.json"),
        "let somebody read a table for a week": (NOTHING, "grep -q 'sig=' url"),
        "read with that URL": (r'(?m)^{.*"Text":"Hi"',),
        "ask with that URL": (r'"value":\[{.*"e4".*"Hi"',),
    },
    "From and to Azure": {
        "load a sheet of Storage Explorer": (r"1 row imported",
                                             "grep -qx '{\"Text\":\"Hi\"}' mnt/myblogs/Posts/Chess/9.json"),
    },
}


def rows_of(title):
    """(to, [line, ...]) of a table; what is done by hand is left out."""
    for row in TABLES[title][1]:
        to, do = (c.strip() for c in re.split(r"(?<!\\)\|", row)[1:3])
        if BY_HAND not in to:
            yield to, [c.replace("\\|", "|") for c in re.findall(r"`([^`]+)`", do)]


def free_port():
    """In place of the page's port, which somebody may have."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def prepare_refusals(top):
    """What the lines about refusals are about."""
    part = "mnt/myblogs/Posts/Football"
    sh(f"""cd {top}; echo '{{"Text":"Hi","Tags":["a"]}}' > {part}/1.json
rm {part}/2.json
printf '{{"PartitionKey":"a","RowKey":"1"}}\\nbad\\n' > mnt/myblogs/Posts/.rows.ndjson
ls 'mnt/myblogs/Posts/.query/Rating gt'""", check=False)


def test_every_line_of_the_page_has_a_check():
    assert set(CHECKS) == set(TABLES) and len(TABLES) >= 12
    for title, checks in CHECKS.items():
        lines = dict(rows_of(title))
        assert list(lines) == list(checks), title
        assert all(lines.values()), title
    said = re.findall(r"^\| (?!to \||--- ).*$", PAGE, re.M)
    assert len(said) == sum(len(TABLES[t][1]) for t in TABLES)
    assert sum(BY_HAND in line for line in said) <= 15


@pytest.mark.parametrize("title", CHECKS)
def test_recipes(mount, rowfs, work, title):
    need("sponge", "jq", "restic", "borg", "rclone", "git", "inotifywait", "sqlite3", "curl", "getfattr")
    store, place = work / "blogs.rowfs", TABLES[title][0]
    in_table = place == "in the table's directory"
    assert in_table or place == "where the store is"
    (work / "posts.ndjson").write_text(POSTS)
    (work / "set.json").write_text(SET)
    (work / "photo.jpg").write_bytes(bytes(range(256)) * 40)
    m, port = None, free_port()
    if title != "Begin":
        rowfs("init", store)
        rowfs("account", "add", store, "myblogs")
        rowfs("import", store, "myblogs/Posts", work / "posts.ndjson")
        if title != "From a program":
            m = mount(store, at=work / "mnt")
        else:
            (work / "mnt").mkdir()
    if title == "When something was refused":
        prepare_refusals(work)
    shell = {"HOME": str(work), "PATH": f"{rowfs.program.parent}:{sh('echo $PATH').stdout.strip()}",
             "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes", "BORG_BASE_DIR": str(work / "b"),
             "XDG_CACHE_HOME": str(work / "cache"),
             **{f"GIT_{who}_{what}": "me@localhost" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")}}
    at = work / "mnt/myblogs/Posts" if in_table else work
    try:
        for to, lines in rows_of(title):
            pattern, after, status = (*CHECKS[title][to], None, None)[:3]
            said = ""
            for line in lines:
                line = line.replace(":10002", f":{port}").replace("cat url", f"sed s/:10002/:{port}/ url")
                if line.startswith("inotifywait"):
                    line = f"(sleep 1; touch mnt/myblogs/Posts/Football/1.json) & {line}; wait"
                if to.startswith("mount again"):
                    m.proc.kill()
                    m.proc.wait()
                done = sh(f"set -o pipefail; {line}", cwd=at, env=shell, check=False)
                said += done.stdout + done.stderr
                assert done.returncode == (status or 0), f"{line}\n{said}"
            assert re.search(pattern, said), f"{to}: {lines}\n{said}"
            if after:
                then = sh(after, cwd=at, env=shell, check=False)
                assert then.returncode == 0, f"{to}: {after}\n{then.stdout}{then.stderr}"
    finally:
        sh(f"cd {shlex.quote(str(work))}; for m in mnt mnt2; do mountpoint -q $m && rowfs umount $m; done;"
           " true", env=shell, check=False)
        if m:  # it may still be on its way out
            with contextlib.suppress(subprocess.TimeoutExpired):
                m.proc.wait(60)
