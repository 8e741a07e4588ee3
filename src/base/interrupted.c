/* SPDX-License-Identifier: MIT */
#include "base/interrupted.h"

_Thread_local bool (*interrupted_hook)(void);
