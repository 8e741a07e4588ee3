#!/bin/sh
# SPDX-License-Identifier: MIT
# Every C file is as clang-format leaves it.  usage: format.sh CLANG-FORMAT TOP
cd "$2" || exit 1
find src mount-helper tests -name node_modules -prune -o -name '*.[ch]' -print0 | xargs -0 "$1" --dry-run -Werror
