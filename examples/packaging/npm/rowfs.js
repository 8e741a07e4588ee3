#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Runs the program of this package; without arguments that is `rowfs dev`, the emulator.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");
const path = require("node:path");
const { cpu } = require("./package.json");

if (process.platform !== "linux" || process.arch !== cpu[0]) {
	console.error(`rowfs: this package runs on Linux (${cpu[0]}) only, not on ${process.platform} ` +
		`(${process.arch}). Use a container or, on Windows, WSL 2.`);
	process.exit(1);
}

const args = process.argv.slice(2);
const child = spawn(path.join(__dirname, "rowfs-linux"), args.length > 0 ? args : ["dev"],
	{ stdio: "inherit" });
// Ctrl-C reaches both; this process stays until the program has closed its store.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"])
	process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
	console.error(`rowfs: cannot run the program of this package: ${error.message}`);
	process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
