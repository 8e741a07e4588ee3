#!/bin/sh
# SPDX-License-Identifier: MIT
# The man pages are well-formed.  usage: man.sh MANDOC TOP
cd "$2/docs" || exit 1
exec "$1" -Tlint -Wwarning ./*.[1-8]
