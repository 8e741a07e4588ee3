# SPDX-License-Identifier: MIT
"""Every block of the README, the tour, ci.md and the manuals is typed, in the order in which it stands, by one
reader, and answers as the page shows.  docs/recipes.md, whose tables show no answers, has
test_recipes.py."""

import os
import re
import subprocess

import pytest

from conftest import BUILD, ENV, TOP
from pages import commands_of, masked
from reader import Reader
from tools import need

# What is not typed, by its beginning, and why.
NOT_TYPED = {
    "README.md": {
        "examples/quickstart ": "builds, and shows a tour: test_sdk_examples.py runs it",
        "tests/run ": "runs this test",
        "meson setup build ": "builds: the tests run what it made",
    },
    "docs/tour.md": {},
    "docs/ci.md": {},
    "docs/rowfs.1": {"Ar DIR": "is the shape of a name"},
    "docs/rowfs.5": {"DIR/": "is the shape of a name"},
    "docs/mount.rowfs.8": {
        "/var/lib/rowfs/": "is a line of fstab: test_mounting.py mounts by it",
        "/home/ann/": "is a line of fstab: test_mounting.py mounts by it",
        "https://myblogs.table": "is a line of fstab: test_mounting.py mounts by it",
    },
}


@pytest.mark.parametrize("page", NOT_TYPED)
def test_a_reader_types_the_page_and_sees_what_it_shows(work, page):
    need("curl", "getfattr", "jq", "meson", "rsync")
    left_out, wrong = dict(NOT_TYPED[page]), []
    with Reader(work, installed=page != "README.md") as reader:
        reader.type("cd source" if page == "README.md" else "cd")
        for command in commands_of(page):
            why = [begin for begin in NOT_TYPED[page] if command.text.startswith(begin)]
            for begin in why:
                left_out.pop(begin, None)
            if why:
                continue
            status, said = reader.type(command.text)
            if command.shown is not None and masked(said.rstrip("\n")) != masked(command.shown):
                wrong.append(f"{command.place}: $ {command.text}\n{said}\ninstead of\n{command.shown}")
            elif not command.shown and status != 0:
                wrong.append(f"{command.place}: $ {command.text}\nends with {status}: {said}")
        assert not wrong, "\n\n".join(wrong)
    assert not left_out, "no block begins so"


def test_what_the_manuals_cite_is_installed(work):
    """Other pages of ours, and files of the documentation."""
    need("meson")
    subprocess.run(["meson", "install", "--no-rebuild", "-C", str(BUILD)], check=True,
                   capture_output=True, env={**ENV, "DESTDIR": str(work)})
    found = {os.path.relpath(os.path.join(folder, name), work) for folder, _, names in os.walk(work)
             for name in names}
    for page in ("rowfs.1", "rowfs.5", "mount.rowfs.8"):
        text = (TOP / "docs" / page).read_text().replace("\\-", "-")
        for name, section in re.findall(r"^\.Xr (\S*rowfs) (\d)", text, re.M):
            assert any(f.endswith(f"/man{section}/{name}.{section}") for f in found), (page, name)
        for cited in re.findall(r"[\w/-]*\w\.md|[\w/-]*examples/[\w/@.-]*\w", text):
            cited = cited.removeprefix("/usr/local/share/doc/rowfs/")
            assert any(f"/share/doc/rowfs/{cited}" in f for f in found), (page, cited)
