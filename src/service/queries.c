/* SPDX-License-Identifier: MIT */
#include "service/queries.h"
