/* SPDX-License-Identifier: MIT */
#include "codec/entity_odata.h"
