/* SPDX-License-Identifier: MIT
 * The public account that every emulator of the service has: UseDevelopmentStorage=true means it. */
#ifndef MODEL_EMULATOR_H
#define MODEL_EMULATOR_H

#define EMULATOR_ACCOUNT "devstoreaccount1"
#define EMULATOR_KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

#endif
