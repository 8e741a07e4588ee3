# SPDX-License-Identifier: MIT
"""Random walks: steps made up from a seed, each taken on a mount and on a model of it.

A step is a kind and a number; whatever it has to choose (which handle, which bytes) it chooses
from that number and from what is there.  So a walk is a plain list, and a list with steps left
out is a walk too: one that fails is taken again and again with fewer steps, and what is left of
it is told, with the seed.

ROWFS_OPS=N takes N steps instead of the same few each time; ROWFS_SEED=S those of a walk that
failed.
"""

import errno
import os
import random
import time

import pytest

OPS = int(os.environ.get("ROWFS_OPS", "0"))
SEED = os.environ.get("ROWFS_SEED")
SHRINKING_SECONDS = 30


class Walk:
    """One walk's world: the place on the mount that it has for itself, and the model of it.
    A kind of step is a method whose name begins with "do_", and takes a random.Random."""

    weights = {}  # of the kinds that come more often than once

    def __init__(self):
        self.trace = []

    def note(self, text):
        self.trace.append(text)

    def expect(self, what, have, *wanted):
        """One of these outcomes, which are 0 or names of errnos."""
        have = have and errno.errorcode[have]
        self.note(f"{what}: {have or 'ok'}")
        assert have in wanted, f"{what}: {have}, expected {wanted}"
        return have

    def step(self, kind, rng):
        getattr(self, f"do_{kind}")(rng)

    def finish(self):
        """The end of a walk in which nothing was wrong."""

    def abandon(self):
        """Lets go of everything, whatever state it is in."""

    @classmethod
    def kinds(cls):
        found = [k[3:] for k in dir(cls) if k.startswith("do_")]
        return [k for k in found for _ in range(cls.weights.get(k, 1))]


def outcome(function, *args):
    """(0, result) or (errno, None)."""
    try:
        return 0, function(*args)
    except OSError as e:
        return e.errno, None


def failure_of(make, plan):
    """None, or (how many steps were taken, what was wrong, what was done)."""
    walk, taken = None, 0
    try:
        walk = make()
        for kind, number in plan:
            taken += 1
            walk.step(kind, random.Random(number))
        walk.finish()
        return None
    except (Exception, pytest.fail.Exception) as e:  # whatever a broken mount answers
        return taken, f"{type(e).__name__}: {e}", walk.trace if walk else []
    finally:
        if walk:
            walk.abandon()


def shrunk(make, plan, found):
    """Fewer steps that fail as well, as far as there is time."""
    end = time.monotonic() + SHRINKING_SECONDS
    plan = plan[:found[0]]
    size = len(plan) // 2
    while size > 0 and time.monotonic() < end:
        at = 0
        while at < len(plan) and time.monotonic() < end:
            fewer = plan[:at] + plan[at + size:]
            again = failure_of(make, fewer)
            if again and again[0]:
                plan, found = fewer[:again[0]], again
            else:
                at += size
        size //= 2
    return plan, found


def wander(make, kinds, steps, length, first_seed):
    """Walks of so many steps each, until all are taken.  The first that fails is told."""
    if OPS:
        steps = OPS
        first_seed = random.randrange(1 << 32)
    if SEED is not None:
        first_seed = int(SEED)
    for n in range(max(1, steps // length)):
        seed = first_seed + n
        rng = random.Random(seed)
        plan = [(rng.choice(kinds), rng.getrandbits(32)) for _ in range(length)]
        found = failure_of(make, plan)
        if found:
            plan, found = shrunk(make, plan, found)
            pytest.fail(f"ROWFS_SEED={seed} ROWFS_OPS={length}: {found[1]}\n"
                        f"{len(plan)} steps are left of it: {plan}\n"
                        + "\n".join(found[2][-40:]), pytrace=False)
