/* SPDX-License-Identifier: MIT */
#include "codec/multipart.h"
