# SPDX-License-Identifier: MIT
"""Every line of docs/recipes.md is typed by one reader, from the first to the last, and does what the
page says.

CHECKS has for each line of a table what it must print, and a command that must succeed afterwards.  A
line without a check is a failure, and a check without its line too.  Blocks show their answers."""

import os
import re
import signal

from conftest import TOP
from pages import commands_of, masked
from reader import Reader
from tools import need

PAGE = "docs/recipes.md"
TEXT = (TOP / PAGE).read_text(encoding="utf-8")
BY_HAND = "*(by hand)*"
PLACES = {"in your home directory": "cd", "in the table's directory": "cd ~/mnt/myblogs/Posts"}
# What is not typed, and why.
NOT_TYPED = {
    "mount it at boot": "is a line of fstab: test_mounting.py mounts by it",
    "let a user mount a store of his own": "is a line of fstab: test_mounting.py mounts by it",
    "copy a table to another machine": "needs one",
    "have the Python SDK wait out a busy partition": "is no command",
}
# What goes on until Ctrl-C, which the reader presses when this is shown.
UNTIL = {
    "see changes made through the mount as they come, until Ctrl-C": "Watches established",
    "serve the store without a mount, until Ctrl-C": "serving .* at http://",
    "serve with TLS": "serving .* at https://",
}
# What is so by then, or somebody else does meanwhile.
MEANWHILE = {
    "wait for the next change of a partition":
        "( (while sleep 0.3 && ! [ -e seen ]; do touch mnt/myblogs/Posts/Football/1.json; done) & )",
    "the history of a table in git":
        "git config --global user.name me; git config --global user.email me@localhost",
    "fetch a table from the cloud; here `conn` holds its connection string, and `URL` is its table endpoint":
        "umask 077; rowfs account keys blogs.rowfs myblogs | sed -n 's/^connect *//p' > conn;"
        " URL=$(sed 's/.*TableEndpoint=//; s/;.*//' conn);"
        """ echo '{"N@odata.type": "Edm.Int64", "N": "7"}' > mnt/myblogs/Posts/Links/2.json""",
}

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
        "mount to change things again": (NOTHING, "mkdir mnt/shop/More && rmdir mnt/shop/More"),
        "mount the store `/var/lib/rowfs/blogs.rowfs` by a service": (
            NOTHING, "test -d /srv/blogs"
                     " -a -e /etc/systemd/system/multi-user.target.wants/rowfs-mount@blogs.service"),
    },
    "Without a mount": {
        "list the partitions of a table": (r"names  20.*  Chess/\n.*  Football/\n.*  Links/\n",),
        "print a row": (r'{"Text":"Hi","Rating":5}\n',),
        "put a row": (NOTHING, "grep -q d4 mnt/myblogs/Posts/Chess/2.json"),
        "change a property": (NOTHING, "grep -q 'd4.*:3' mnt/myblogs/Posts/Chess/2.json"),
        "print the rows that match": (
            r"\APartitionKey,RowKey,Text,Text@type\nChess,1,e4,Edm.String\nFootball,1,Hi,Edm.String\n\Z",),
        "put a row only over the version that was read":
            (NOTHING, "grep -q 4 mnt/myblogs/Posts/Chess/2.json"),
        "give a row another key": (NOTHING, "grep -q 4 mnt/myblogs/Posts/Chess/3.json"),
        "drop a row": (NOTHING, "! test -e mnt/myblogs/Posts/Chess/3.json"),
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
        "ask for rows": (r'\AChess  Football\n"e4"\n"Hi"\n\Z',),
        "ask for the first ten of a partition, two properties": (
            r"\APartitionKey,RowKey,Text,.*\nFootball,1,Hi,(?s:.*)50%",),
        "ask for a range of keys": (r"\A2.json\s+50%25.json\n\Z",),
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
        "commit a change set and have its result, while others write": (
            r'"committed": ?true', "test -e Football/8.json"),
        "delete the rows of a partition, all or none (up to 100)": (
            NOTHING, "test ! -e Chess/1.json"),
    },
    "Not to lose a change": {
        "change a row only if it is still as it was (else ESTALE)": (
            NOTHING, "test $(jq .Rating Football/1.json) = 9"),
        "make a row only if there is none (else ESTALE)": (
            NOTHING, "test $(jq -r .Item Football/9.json) = ink -a ! -e Football/tmp"),
        "remove a row only if it is still as it was (else ESTALE)": (
            NOTHING, "test ! -e Football/9.json"),
        "never overwrite": (r"", "test -e Football/2.json && grep -q Hi Football/1.json"),
        "count up from many shells at once": (NOTHING, "test $(jq .Rating Football/1.json) = 10"),
        "change what was read, if it is still that (else ESTALE)": (
            NOTHING, "test $(jq .Rating Football/1.json) = 11"),
        "count up from many shells at once, without a lock": (
            NOTHING, "test $(jq .Rating Football/1.json) = 12"),
        "let one job run at a time": (NOTHING,),
    },
    "Watch": {
        "see changes made through the mount as they come, until Ctrl-C": (r"",),
        "wait for the next change of a partition": (NOTHING, "touch seen"),
        "see what the daemon does": (r'"operations"',),
        "see the busiest partitions": (r"(?s)myblogs/Posts/Football.*hottest partitions",),
        "see the slowest operations": (r'"p99_us"',),
        "give the figures to Prometheus, from a timer; here `metrics` is the node exporter's directory":
            (NOTHING, "grep -q '^# HELP' metrics/rowfs.prom"),
        "see who keeps the mount busy": (r"kernel mount .*/mnt\b",),
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
            NOTHING, "diff -r mnt/myblogs/Posts backup && rm mnt/myblogs/Posts/Links/1.json"),
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
                                 " && rm mnt/myblogs/Posts/Links/1.json"),
        "the rows of an archive back": (NOTHING, "diff -r mnt/myblogs/Posts backup"),
        "one archive of all, with every time to the nanosecond": (
            NOTHING, "tar -df all.tar -C mnt && rm all.tar"),
        "restic": (r"", "rm mnt/myblogs/Posts/Links/1.json"),
        "and back": (r"", "diff -r mnt/myblogs/Posts backup"),
        "restic, with the accounts at its top": (r"", "rm mnt/myblogs/Posts/Links/1.json"),
        "and back, into a mount": (r"", "diff -r mnt/myblogs/Posts backup"),
        "borg": (r"", "borg list brepo | grep -q today"),
        "and back, with borg": (r"", "diff -r mnt/myblogs/Posts backup"),
        "rclone, to any of its clouds": (r"", "diff -r mnt/myblogs copy"),
        "the history of a table in git": (r"", "git --git-dir=history.git log --oneline | grep -q ."),
        "see what a day changed": (r"Football/1.json",),
        "one file with all rows of a table": (r"", "grep -c Kick-off posts-1.ndjson"),
        "copy the whole store, mounted or not, with its accounts and their keys": (
            r"", "test $(stat -c %a blogs.bak) = 600"),
        "and see that the copy is sound": (r"clean", ""),
        "put the copy in the place of a store": (
            r"", "test -e mnt/myblogs/Posts/Football/1.json"),
        "copy the store, while it is not mounted": (
            r"", "rowfs check copy.rowfs && test -e mnt/myblogs/Posts/Football/1.json"),
        "back up `/srv/blogs` every night": (
            NOTHING, "test -e /etc/systemd/system/timers.target.wants/rowfs-backup@blogs.timer"),
    },
    "In and out": {
        "copy a table": (
            NOTHING, "rows() { jq -c 'del(.Timestamp)' $1/.rows.ndjson; }; cmp <(rows .) <(rows ../Copy)"),
        "copy a part of it": (NOTHING, "jq -e '.Rating >= 4' ../Best/.rows.ndjson > ~/good && test -s ~/good"),
        "copy the result of a query": (NOTHING, "diff -r ../Best ../Top"),
        "rename a table": (NOTHING, "diff -r ../Best ../Favourites"),
        "make a sheet of two columns": (NOTHING, "grep -q '^Football,1,Hi,' ~/sheet.csv"),
        "ask in SQL": (r"(?m)^Football\|\d",),
    },
    "Stores, sheets": {
        "move a table to another store": (r"\d rows imported", "rowfs check other.rowfs"),
        "export a partition as CSV": (r"\APartitionKey,RowKey,(?s:.*)Football,2,",),
        "import a sheet: name the column with its type": (
            r"1 row imported", "grep -qx '{\"N\":5}' mnt/myblogs/Numbers/a/1.json"),
        "import only what is new": (r"(?s)EntityAlreadyExists.*", None, 1),
        "add properties to rows that exist": (r"5 rows imported",),
        "count": (r"(?m)^rows +\d+$",),
    },
    "From a program": {
        "serve the store without a mount, until Ctrl-C": (r"",),
        "make a certificate, to try TLS": (NOTHING, "openssl x509 -in cert.pem -noout"),
        "serve with TLS": (r"",),
        "serve the store beside the mount": (NOTHING, "test -S rowfs.sock"),
        "get the connection string of an account": (
            r"\ADefaultEndpointsProtocol=.*AccountName=myblogs;AccountKey=",),
        "serve programs that say `UseDevelopmentStorage=true`": (r"devstoreaccount1",),
        "use curl on the Unix socket, without a signature": (r'"value":\[',),
        "add a row so": (r"", "grep -q e5 mnt/myblogs/Posts/Chess/2.json"),
        "let somebody read a table for a week": (NOTHING, "grep -q 'sig=' url"),
        "read with that URL": (r'(?m)^{.*"Text":"Hi"',),
        "ask with that URL": (r'"value":\[{.*"e4".*"Hi"',),
        "use curl, and openssl for the signature; here `source` is rowfs's source tree":
            (r'"RowKey":',),
        "see whether a client backs off": (NOTHING, "mountpoint -q mnt"),
        "see whether a client survives lost responses": (NOTHING, "grep -q fault=lost mnt/.rowfs/faults"),
        "see whether there are such rules, and remove them": (
            "fault=lost table=Posts count=3 # had by 0", "! grep -q . mnt/.rowfs/faults"),
        "change the account's keys without a gap": (r"(?m)^key1 ",),
    },
    "From and to Azure": {
        "load a sheet of Storage Explorer": (r"1 row imported",
                                             "grep -qx '{\"Text\":\"Hi\"}' mnt/myblogs/Posts/Chess/9.json"),
        "fetch a table from the cloud; here `conn` holds its connection string, and `URL` is its table endpoint": (
            r" inserted, 0 replaced, ",
            "grep -qx '{\"N@odata.type\":\"Edm.Int64\",\"N\":\"7\"}' mnt/myblogs/Fetched/Links/2.json"),
    },
}


def lines_of_tables():
    """{title: [(number, place, to, [line, ...]), ...]} of all tables."""
    found, title, place = {}, "", ""
    for number, text in enumerate(TEXT.split("\n"), 1):
        if text.startswith("## "):
            title = text[3:]
        elif text.startswith("| to | do, "):
            place = text[len("| to | do, "):].strip("| ")
        elif text.startswith("| ") and not text.startswith("| --- "):
            to, do = (c.strip() for c in re.split(r"(?<!\\)\|", text)[1:3])
            lines = [c.replace("\\|", "|") for c in re.findall(r"`([^`]+)`", do)]
            found.setdefault(title, []).append((number, place, to, lines))
    return found


def test_every_line_of_the_page_has_a_check():
    tables = lines_of_tables()
    by_hand = [to for lines in tables.values() for _, _, to, _ in lines if BY_HAND in to]
    assert [f"{to} {BY_HAND}" for to in NOT_TYPED] == by_hand
    assert set(CHECKS) == set(tables) and len(tables) >= 12
    for title, checks in CHECKS.items():
        assert [to for _, _, to, _ in tables[title] if to not in by_hand] == list(checks), title
        assert all(lines for _, _, to, lines in tables[title] if to not in by_hand), title
    every = {to for lines in tables.values() for _, _, to, _ in lines}
    assert not {*UNTIL, *MEANWHILE} - every


def kill_the_daemon(reader):
    for process in reader.others():
        with open(f"/proc/{process}/cmdline", "rb") as f:
            if f.read().startswith(b"rowfs\0mount\0"):
                os.kill(process, signal.SIGKILL)


def try_line(reader, title, to, lines):
    """Types what a line of a table has to say; what it printed and left behind is checked."""
    pattern, after, status = (*CHECKS[title][to], None, None)[:3]
    said = ""
    if to in MEANWHILE:
        reader.type(MEANWHILE[to])
    if to == "mount again after the daemon was killed":
        kill_the_daemon(reader)
    for line in lines:
        code, out = reader.type(line, until=UNTIL.get(to))
        said += out
        assert code == (status or 0) or to in UNTIL, f"{to}: {line}\nends with {code}\n{said}"
    assert re.search(UNTIL.get(to, pattern), said), f"{to}: {lines}\n{said}"
    if after:
        code, out = reader.type(f"( {after}\n)")
        assert code == 0, f"{to}: {after}\n{out}"


def test_recipes(work):
    need("sponge", "jq", "restic", "borg", "rclone", "git", "inotifywait", "sqlite3", "curl", "getfattr",
         "fuser", "openssl", "systemd-analyze")
    items = [(number, title, place, to, lines) for title, table in lines_of_tables().items()
             for number, place, to, lines in table if BY_HAND not in to]
    items += [(int(c.place.split(":")[1]), None, None, c, None) for c in commands_of(PAGE)]
    with Reader(work) as reader:
        for _, title, place, what, lines in sorted(items, key=lambda item: item[0]):
            if title is None:
                code, said = reader.type(what.text)
                assert masked(said.rstrip("\n")) == masked(what.shown or ""), f"{what}\n{said}"
                assert code == 0 or what.shown, f"{what}\n{said}"
            else:
                reader.type(PLACES[place])
                try_line(reader, title, what, lines)
        reader.type("cd; rowfs umount mnt")
