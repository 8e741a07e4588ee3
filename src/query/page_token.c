/* SPDX-License-Identifier: MIT */
#include "query/page_token.h"
