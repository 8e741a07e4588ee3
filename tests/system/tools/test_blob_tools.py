# SPDX-License-Identifier: MIT
"""Whole programs against the blobs' socket: rclone and restic."""

import os

import pytest
from rest_client import ACCOUNT, KEY
from tools import emulator_ports, need, sh


@pytest.fixture
def tree(tmp_path):
    """Small files, an empty one, one of many blocks, and names that URLs escape."""
    top = tmp_path / "tree"
    for name, size in (("a/empty", 0), ("a/small", 5), ("a/b/big", 9_000_000), ("c d+%&", 70000),
                       ("ä", 4097)):
        file = top / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(size))
    return top


def test_rclone(serve, rest_store, tree, tmp_path):
    need("rclone")
    program = serve(rest_store, "--rest=127.0.0.1:0", "--rest=blob=127.0.0.1:0").rowfs.program
    sas = sh(f"{program} sas {rest_store} {ACCOUNT} --service=blob --resource-types=sco"
             " --permissions=rwdlac --expiry=+1d").stdout.strip()
    env = {"RCLONE_CONFIG_R_TYPE": "azureblob", "RCLONE_CONFIG_R_SAS_URL": sas}
    rclone = (f"rclone --config /dev/null --cache-dir {tmp_path}/c --retries 1"
              " --low-level-retries 1 --azureblob-chunk-size 1M --azureblob-upload-cutoff 1M")

    def run(what):
        return sh(f"{rclone} {what}", env=env)
    run("mkdir r:films")
    run(f"copy {tree} r:films/x")
    run(f"check --download {tree} r:films/x")
    run(f"copy r:films/x {tmp_path}/back")
    sh(f"diff -r {tree} {tmp_path}/back")
    (tree / "a/small").write_bytes(b"changed")
    (tree / "ä").unlink()
    run(f"sync {tree} r:films/x")
    run(f"check {tree} r:films/x")
    run("copyto r:films/x/a/b/big r:films/copy")
    sh(f"cmp {tree}/a/b/big <({rclone} cat r:films/copy)", env=env)
    run("purge r:films")
    assert "films" not in run("lsd r:").stdout


@pytest.fixture
def at_the_port(serve, rest_store):
    """restic knows the emulator's account at its port only."""
    with emulator_ports():
        yield serve(rest_store, "--rest=127.0.0.1:0", "--rest=blob=127.0.0.1:10000")


def test_restic(at_the_port, tree, tmp_path):
    need("restic")
    env = {"AZURE_ACCOUNT_NAME": ACCOUNT, "AZURE_ACCOUNT_KEY": KEY, "RESTIC_PASSWORD": "x"}
    restic = "restic -q --no-cache -r azure:backup:/"
    sh(f"{restic} init && {restic} backup {tree}", env=env)
    (tree / "a/small").write_bytes(b"changed")
    sh(f"{restic} backup {tree} && {restic} check --read-data", env=env)
    sh(f"{restic} restore latest --target {tmp_path}/back", env=env)
    sh(f"diff -r {tree} {tmp_path}/back{tree}")
    sh(f"{restic} forget --prune --keep-last 1 && {restic} check --read-data", env=env)
