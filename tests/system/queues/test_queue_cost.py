# SPDX-License-Identifier: MIT
"""Work in a long queue, counted by the bytes that the server reads from its store.  Each commit makes a
reading connection read its pages again, so the bytes tell how many messages a call looks at."""

import json
import os

import pytest
from tools import get, put, sh

FEW, MANY = 100, 100000
TAKEN = {"DequeueCount": 1, "TimeNextVisible": "2090-01-01T00:00:00.0000000Z"}
HIDDEN = {"DequeueCount": 0, "TimeNextVisible": "2090-01-01T00:00:00.0000000Z"}


def fill(rowfs, store, queue, count, more):
    lines = (json.dumps({"MessageText": f"m{i}", **more}) for i in range(count))
    rowfs("import", store, f"acct/.queue/{queue}", input="\n".join(lines))


def bytes_read(m, call):
    """By the server, for the call; before it a commit."""
    put(m / "acct/.queue/other/new", "text")

    def now():
        return int(get(f"/proc/{m.proc.pid}/io").split()[1])
    before = now()
    call()
    return now() - before


def visible(queue):
    return [n for n in os.listdir(queue) if not n.startswith(".")]


def calls(queue):
    """What a worker does; none of it is about the invisible messages."""
    def take():
        name = visible(queue)[0]
        os.rename(queue / name, queue / ".taken" / name)
        os.unlink(queue / ".taken" / name)

    return {"list": lambda: os.listdir(queue), "put": lambda: put(queue / "new", "text"),
            "peek": lambda: get(queue / ".peek"), "get": lambda: get(queue / ".get"),
            "wait": lambda: get(queue / ".wait"), "take and delete": take,
            "stat": lambda: os.stat(queue)}


@pytest.mark.parametrize("state", [TAKEN, HIDDEN], ids=["taken", "hidden"])
def test_MQ13_no_call_looks_at_the_invisible_messages(mount, store, rowfs, state):
    if os.geteuid() != 0:
        pytest.skip("reads the server's /proc")
    m = mount(store)
    sh("mkdir -p acct/.queue/few acct/.queue/many acct/.queue/other", cwd=m.path)
    for queue, count in (("few", FEW), ("many", MANY)):
        fill(rowfs, store, queue, count, state)
        for i in range(12):
            put(m / "acct/.queue" / queue / "new", f"v{i}")
    queues = m / "acct/.queue"
    cost = {name: [bytes_read(m, calls(queues / queue)[name]) for queue in ("few", "many")]
            for name in calls(queues)}
    # The trees of the long queue are two levels deeper at most.
    assert all(many <= 2 * few + (64 << 10) for few, many in cost.values()), cost
    place = ".taken" if state is TAKEN else ".hidden"
    assert place in os.listdir(queues / "many") and len(visible(queues / "many")) == 11, cost
    with os.scandir(queues / "many" / place) as entries:
        assert sum(1 for _ in entries) >= MANY
