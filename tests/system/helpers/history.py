# SPDX-License-Identifier: MIT
"""Whether a history of operations on one partition could have happened one after another.

A history is what clients did at once, each with the moments of its call and of its answer.  It is
linearizable if every operation can be given one moment between the two, so that all answers are
right in that order.  The state is the whole partition, so a change set that is seen by halves, a read
of an old value, a lost update and a change that is applied twice are violations.  Every value is
written once.

The search keeps all states that are possible after each answer, with those operations whose answers
are still to come and that have happened in it.
"""

import dataclasses
import math

UNKNOWN = "unknown"  # an answer that never came: it happened at any later moment, or never
ABSENT, PRESENT = "absent", "present"


@dataclasses.dataclass(eq=False)
class Operation:
    """read: row -> answer, its value or None.  list: answer, all rows.  write: rows -> values (None:
    removed), if each of `conditions` holds: row -> the value it must have, ABSENT or PRESENT; answer:
    whether they did."""

    kind: str
    client: object
    row: str = None
    rows: dict = dataclasses.field(default_factory=dict)
    conditions: dict = dataclasses.field(default_factory=dict)
    begin: float = 0
    end: float = math.inf
    answer: object = UNKNOWN
    etag: str = None  # of one row that was read or written

    def __str__(self):
        what = self.row or {**self.rows} or "all"
        return f"{self.client}: {self.kind} {what} if {self.conditions}: {self.answer}"


def holds(state, row, condition):
    value = state.get(row)
    if condition is ABSENT or condition is PRESENT:
        return (value is None) == (condition is ABSENT)
    return value == condition


def after(state, op):
    """The state (a frozenset of items) after the operation; None: its answer is wrong in this one."""
    now = dict(state)
    if op.kind == "read":
        return state if now.get(op.row) == op.answer else None
    if op.kind == "list":
        return state if now == op.answer else None
    done = all(holds(now, *c) for c in op.conditions.items())
    if op.answer is not UNKNOWN and op.answer != done:
        return None
    if not done:
        return state
    now.update(op.rows)
    return frozenset((k, v) for k, v in now.items() if v is not None)


def settle(state, happened, pending):
    """An operation that changes nothing and is right in this state happens at once: later is no better."""
    return state, happened | {p for p in pending - happened
                              if p.answer is not UNKNOWN and after(state, p) is state}


def possible(configurations, pending, op):
    """All (state, what happened of the pending ones) in which the operation has just been answered."""
    stack = [settle(*c, pending) for c in configurations]
    seen, found = set(stack), set()
    while stack:
        state, happened = stack.pop()
        if op in happened:
            found.add((state, happened - {op}))
            continue
        for p in pending - happened:
            then = after(state, p)
            if then is None:
                continue
            one = settle(then, happened | {p}, pending)
            if one not in seen:
                seen.add(one)
                stack.append(one)
    return found


def first_violation(operations, rows=None):
    """The first operation whose answer nothing explains; None: the history is linearizable."""
    configurations = {(frozenset((rows or {}).items()), frozenset())}
    pending = set()
    events = [(op.begin, 0, i) for i, op in enumerate(operations)]
    events += [(op.end, 1, i) for i, op in enumerate(operations) if op.end < math.inf]
    for _, is_end, i in sorted(events):
        op = operations[i]
        if not is_end:
            pending.add(op)
            continue
        configurations = possible(configurations, pending, op)
        pending.discard(op)
        if not configurations:
            return op
        # Of an operation without an answer that happened in all of them nothing is open.
        common = {o for o in frozenset.intersection(*(h for _, h in configurations))
                  if o.end == math.inf}
        if common:
            configurations = {(s, h - common) for s, h in configurations}
            pending -= common
    return None


def first_earlier_version(operations, order):
    """The first operation that tells an older version of a row than one that was answered before its
    call.  order: a key for ETags."""
    latest = {}
    told = [op for op in operations if op.etag is not None]
    answered = sorted(told, key=lambda op: op.end)
    n = 0
    for op in sorted(told, key=lambda op: op.begin):
        while answered[n].end < op.begin:
            row, etag = answered[n].row, order(answered[n].etag)
            latest[row] = max(latest.get(row, etag), etag)
            n += 1
        if op.row in latest and order(op.etag) < latest[op.row]:
            return op
    return None
