// SPDX-License-Identifier: MIT
// Asks for the data of the page itself, such as /live.
import { ask } from "/http.js";

export async function data(path, signal) {
	return (await ask(path, { signal })).json();
}
