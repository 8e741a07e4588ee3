/* SPDX-License-Identifier: MIT */
#include "service/sas.h"
