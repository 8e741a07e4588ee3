# SPDX-License-Identifier: MIT
"""How many requests a tool costs on the mount of an account elsewhere: as few as the protocol allows.

Each command runs on a fresh mount.  Names are looked up one by one: the list of the tables, the partition,
the row.
"""

import pytest

from test_client import PROGRAM
from test_transfer import lines
from there import second, there_with  # noqa: F401
from tools import sh

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
PARTITIONS, ROWS = 3, 5
TABLES = KEYS = PARTITION = ROW = 1
WALK = TABLES + KEYS + PARTITIONS
NAME = TABLES + PARTITION + ROW  # a path of a row
CHANGE = 1
COSTS = [
    # what, the command, its requests, the same command's at once again
    ("ls of a table", "ls Posts", TABLES + KEYS, 0),
    ("ls of a partition", "ls Posts/p0", TABLES + PARTITION + KEYS, 0),
    ("ls -l of a partition", "ls -l Posts/p0", TABLES + PARTITION + KEYS, 0),
    ("ls -l of a table", "ls -l Posts", TABLES + KEYS, 0),
    ("cat", "cat Posts/p0/001.json", NAME, 0),
    ("grep -r", "grep -r N Posts", WALK, 0),
    ("find", "find Posts -size +0", WALK, 0),
    ("du", "du -s Posts", WALK, 0),
    ("rsync", "rsync -a Posts/ ../../back/", WALK, 0),
    ("cp -r out", "cp -r Posts ../../copy", WALK, 0),
    ("cp in", "cp ../../row.json Posts/p0/new.json", NAME + CHANGE, CHANGE),
    ("cp over", "cp ../../row.json Posts/p0/001.json", NAME + CHANGE, CHANGE),
    ("sed -i", "sed -i s/1/2/ Posts/p0/001.json", NAME + CHANGE, CHANGE),
    ("mv", "mv Posts/p0/001.json Posts/p0/new.json", NAME + ROW + CHANGE, None),
    ("mv to another partition", "mv Posts/p0/001.json Posts/p1/new.json", NAME + PARTITION + ROW + 2 * CHANGE, None),
    ("rm", "rm Posts/p0/001.json", NAME + CHANGE, None),
    ("rm -r of a partition", "rm -r Posts/p0", TABLES + PARTITION + KEYS + ROWS * CHANGE, None),
]


@pytest.mark.parametrize("command, first, again", [pytest.param(*c[1:], id=c[0]) for c in COSTS])
def test_a_tool_costs_the_least_requests(second, work, command, first, again):  # noqa: F811
    second.account("import", "Posts", input=lines({"PartitionKey": f"p{i}", "RowKey": f"{j:03}", "N": 1}
                                                  for i in range(PARTITIONS) for j in range(ROWS)))
    (work / "row.json").write_text('{"N":1}')
    mnt = second.mounted("cache=3600")
    assert second.cost(lambda: sh(command, cwd=mnt)) == first
    if again is not None:
        assert second.cost(lambda: sh(command, cwd=mnt)) == again
