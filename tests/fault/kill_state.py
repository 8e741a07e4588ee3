# SPDX-License-Identifier: MIT
"""What a store must hold after a kill, and what it holds.

A state is a dictionary: the path of a directory (with a slash at its end) -> True; of a file ->
its bytes, or a Doc where rowfs wrote the document itself; further keys for what is no file:

    ACCOUNT/Table/*           {RowKey: V} of a table with thousands of rows
    PATH@                     (mode, mtime in ns)
    trash:Table-p-r.json:DOC  a row in the trash      rejected:BYTES   what was refused
    keys:ACCOUNT  acl:TABLE   what the name says      etag:PATH        an ETag
    message:ACCOUNT/TEXT      a message of the queue

A value that is expected may be a matcher instead: a function of what was found (None: nothing).
"""

import errno
import json
import os
import stat

import rest_client

# Tables of these have too many rows to open each file.
STREAMED = ("stream", "import")


class Doc(dict):
    """A row that reads as this, in whatever spelling."""


def one_of(*values):
    return lambda found: any(same(v, found) for v in values)


def begun(data, old=None):
    """A file that is being written from its start, maybe over another one."""
    return lambda found: found == old or found is not None and data.startswith(found)


def mixed(new, old):
    """A file of which a piece at the start is new."""
    def match(found):
        if found is None:
            return False
        n = len(os.path.commonprefix([found, new]))
        return found[n:] == old[n:]
    return match


def same(want, found):
    if callable(want):
        return want(found)
    if isinstance(want, Doc) and isinstance(found, bytes):
        try:
            return dict(want) == json.loads(found)
        except ValueError:
            return False
    return want == found


def brief(value):
    text = "nothing" if value is None else "(in flight)" if callable(value) else repr(value)
    return text if len(text) < 200 else f"{text[:120]}… ({len(text)})"


def differences(want, found):
    """What is not as expected, a line each."""
    return [f"{key}: {brief(want.get(key))} expected, found {brief(found.get(key))}"
            for key in sorted({*want, *found}) if not same(want.get(key), found.get(key))]


def settle(before, steps, found):
    """Which of the states that are possible was found: (state, []), or (None, why not).  steps:
    changes of which any number from the first on may have been made; the last one is all."""
    reasons = []
    for step in [{}, *steps]:
        want = changed(before, step)
        wrong = differences(want, found)
        if not wrong:
            return {k: v if isinstance(v, Doc) else found[k]
                    for k, v in want.items() if k in found}, []
        reasons.append(wrong)
    return None, min(reasons, key=len)


def changed(state, step):
    """The state with a change: None stands for what is gone."""
    after = {**state, **step}
    return {k: v for k, v in after.items() if v is not None}


# ---- what is there


def read(path):
    with open(path, "rb") as f:
        return f.read()


def walk(top, path, found):
    with os.scandir(top / path) as entries:
        entries = list(entries)
    for e in entries:
        name = path + e.name
        if e.name == ".queue":
            continue  # queues are looked at over REST
        if e.is_dir(follow_symlinks=False):
            found[name + "/"] = True
            if name.count("/") == 1 and name.startswith(STREAMED):
                found[name + "/*"] = rows_of_table(top, name, found)
            else:
                walk(top, name + "/", found)
        else:
            found[name] = read(top / name)
            if name.startswith("attrs/"):
                s = os.stat(top / name)
                found[name + "@"] = (stat.S_IMODE(s.st_mode), s.st_mtime_ns)


def rows_of_table(top, table, found):
    """All rows by the stream; and that the listing has the same ones."""
    rows = {}
    for line in read(top / table / ".rows.ndjson").splitlines():
        row = json.loads(line)
        rows[row["RowKey"]] = row["V"]
    listed = []
    for part in os.listdir(top / table):
        found[f"{table}/{part}/"] = True
        listed += os.listdir(top / table / part)
    if sorted(listed) != sorted(f"{key}.json" for key in rows):
        raise AssertionError(f"{table}: listed {len(listed)} rows, streamed {len(rows)}")
    return rows


def observe(top, accounts):
    """The state of these accounts (all whose names begin so), by a walk through the mount."""
    found = {}
    for name in os.listdir(top):
        if not name.startswith(tuple(accounts)):
            raise AssertionError(f"an account that nobody made: {name}")
        found[name + "/"] = True
        walk(top, name + "/", found)
    for name in os.listdir(top / ".rowfs/trash"):
        kept = read(top / ".rowfs/trash" / name)
        found[trash_key(row_in_trash(name), kept)] = True
    for name in os.listdir(top / ".rowfs/rejected"):
        found[rejected_key(read(top / ".rowfs/rejected" / name))] = True
    return found


def row_in_trash(name):
    """Without the time: Table-Partition-Row.json."""
    return name.partition("Z-")[2]


def trash_key(name, data):
    return f"trash:{name}:{data.decode('utf-8', 'replace')}"


def rejected_key(data):
    return f"rejected:{data.decode('utf-8', 'replace')}"


def observe_rest(client, table, account, found):
    """The other front end shows the same rows; their ETags become part of what was found."""
    rows = {}
    for row in client.all(table):
        path = f"{account}/{table}/{row['PartitionKey']}/{row['RowKey']}.json"
        found[f"etag:{path}"] = row["odata.etag"]
        rows[path] = {k: v for k, v in row.items() if "odata." not in k
                      and k not in ("PartitionKey", "RowKey", "Timestamp")}
    files = {path: json.loads(data) for path, data in found.items()
             if path.startswith(f"{account}/{table}/") and path.endswith(".json") and data}
    if files != rows:
        raise AssertionError(f"{account}/{table}: the front ends disagree: {differences(files, rows)}")


def is_lost(error):
    """Whether an operation failed because its daemon had gone.  ENOENT: so had the dead mount, by
    the second call of a program that makes several."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ECONNRESET,
                               errno.EPIPE, errno.ECONNREFUSED, errno.ENOENT)
    return isinstance(error, (ConnectionError, rest_client.http.client.HTTPException))
