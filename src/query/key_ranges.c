/* SPDX-License-Identifier: MIT */
#include "query/key_ranges.h"
