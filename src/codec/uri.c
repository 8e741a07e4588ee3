/* SPDX-License-Identifier: MIT */
#include "codec/uri.h"
