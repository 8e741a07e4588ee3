/* SPDX-License-Identifier: MIT */
#include "query/filter.h"
