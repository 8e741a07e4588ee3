# SPDX-License-Identifier: MIT
"""The patterns of examples/patterns, as a user would run them: each checks itself, and says
what NAME.out has.  What differs from run to run (see VARIES) is made equal on both sides."""

import os
import re
import signal
import subprocess

import pytest

from conftest import BUILD, ENV, TOP, is_mount, need_fuse
from tools import need, sh

PATTERNS = TOP / "examples" / "patterns"
NAMES = sorted(p.stem for p in PATTERNS.glob("*.out"))
VARIES = [
    (re.compile(r"/\S*/rowfs-example\.\w+"), "WORK"),
    (re.compile(r"W/\\?\"datetime'[^']*'\\?\""), "ETAG"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"), "TIME"),
    (re.compile(r"\b\d+ refused, \d+ written"), "SOME refused, OTHERS written"),
    (re.compile(r"\b\d+ refused\b"), "SOME refused"),
    (re.compile(r"\b\d+ entities a second"), "N entities a second"),
]


def normal(text):
    for what, word in VARIES:
        text = what.sub(word, text)
    return text


def room(work):
    """What the scripts have for their own; a blank in its name must not matter."""
    return work / "a room"


def begin(program, work):
    need_fuse()
    need("jq", "curl", "getfattr")
    room(work).mkdir()
    env = {**ENV, "ROWFS": str(BUILD / "src/daemon/rowfs"), "TMPDIR": str(room(work)),
           "NO_PROXY": "*", "no_proxy": "*"}
    return subprocess.Popen([str(program)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=env, cwd="/", start_new_session=True)


def end(running, work):
    """What it said; nothing of it is left."""
    try:
        said = running.communicate(timeout=120)[0].decode("utf-8")
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGTERM)
        pytest.fail(f"still running after 120 s: {running.communicate(timeout=60)[0]!r}")
    assert os.listdir(room(work)) == [], f"left behind\n{said}"
    return said


def shows(name, work):
    running = begin(PATTERNS / name, work)
    said = end(running, work)
    assert running.returncode == 0, said
    assert normal(said) == normal((PATTERNS / f"{name}.out").read_text("utf-8"))


def need_sdk():
    if subprocess.run(["/usr/bin/python3", "-c", "import azure.data.tables"],
                      capture_output=True).returncode != 0:
        pytest.skip("needs Debian's python3-azure")


def test_G1_secondary_index(work):
    shows("secondary-index", work)


def test_G2_index_across_partitions(work):
    shows("index-across-partitions", work)


def test_G3_index_entities(work):
    need_sdk()
    shows("index-entities", work)


def test_G4_denormalisation(work):
    shows("denormalisation", work)


def test_G5_compound_key(work):
    shows("compound-key", work)


def test_G6_log_tail(work):
    shows("log-tail", work)


def test_G7_high_volume_delete(work):
    shows("high-volume-delete", work)


def test_G8_data_series(work):
    shows("data-series", work)


def test_G9_wide_entity(work):
    shows("wide-entity", work)


def test_G10_eventual_transaction(work):
    shows("eventual-transaction", work)


def test_G11_hashed_partitions(work):
    shows("hashed-partitions", work)


def test_G12_prefix_range(work):
    shows("prefix-range", work)


def test_G13_entity_kinds(work):
    shows("entity-kinds", work)


def test_G14_retry(work):
    need_sdk()
    shows("retry", work)


def test_G15_stress_test(work):
    shows("stress-test", work)


def test_G16_large_entity(work):
    shows("large-entity", work)


def test_G17_cross_table(work):
    shows("cross-table", work)


def test_G18_outbox(work):
    shows("outbox", work)


def test_G19_index_by_queue(work):
    shows("index-by-queue", work)


def test_G20_queued_delete(work):
    shows("queued-delete", work)


def test_G21_time_partitions(work):
    shows("time-partitions", work)


def test_G22_schema_upgrade(work):
    shows("schema-upgrade", work)


def test_G23_prepend_append(work):
    shows("prepend-append", work)


def test_G24_large_entity_blob(work):
    shows("large-entity-blob", work)


def test_G25_index_blobs(work):
    shows("index-blobs", work)


def test_G26_log_blobs(work):
    shows("log-blobs", work)


def test_G27_page_ranges(work):
    need_sdk()
    shows("page-ranges", work)


def test_each_pattern_is_tested_and_documented():
    page = (TOP / "docs" / "patterns.md").read_text("utf-8")
    with open(__file__, encoding="utf-8") as f:
        source = f.read()
    scripts = sorted(p.name for p in PATTERNS.iterdir() if os.access(p, os.X_OK) and p.is_file())
    assert scripts == NAMES
    for name in NAMES:
        assert f"../examples/patterns/{name})" in page, name
        assert f'shows("{name}", work)' in source, name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_half_way_leaves_nothing(number, work):
    running = begin(PATTERNS / "index-entities" if number == signal.SIGINT
                    else PATTERNS / "eventual-transaction", work)
    said = running.stdout.readline()  # mounted by now
    mounts = [p for p in room(work).glob("*/mnt") if is_mount(p)]
    assert mounts, said
    os.killpg(running.pid, number)  # as a terminal does
    said += running.stdout.read()
    assert running.wait(60) == 128 + number, said
    assert os.listdir(room(work)) == []
    assert not any(is_mount(p) for p in mounts)


def test_an_outcome_that_is_not_the_one_taught_fails(work):
    program = work / "wrong"
    program.write_text(f"""#!/usr/bin/env bash
set -euo pipefail
. "{PATTERNS}/lib.sh"
begin_pattern
mkdir Table
expect "the tables" "$(ls)" Tables
echo not reached
""")
    program.chmod(0o755)
    running = begin(program, work)
    said = end(running, work)
    assert running.returncode == 1
    assert said == "wrong: the tables: expected: Tables; got: Table\n"


def test_without_the_program_it_says_so(work):
    done = sh(f"'{PATTERNS}/log-tail'", check=False, env={"ROWFS": str(work / "rowfs")})
    assert done.returncode == 1
    assert done.stderr.startswith("log-tail: no rowfs"), done.stderr


def test_patterns_are_clean_shell():
    need("shellcheck")
    scripts = [*NAMES, "lib.sh", "../lib.sh"]
    done = subprocess.run(["shellcheck", "-x", *scripts], cwd=PATTERNS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
