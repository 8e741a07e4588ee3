// SPDX-License-Identifier: MIT
// Asks for the data of the page itself, such as /live.
import { ask } from "/http.js";

export async function data(path, signal) {
	return (await ask(path, { signal })).json();
}

// Makes or removes something of the page itself, such as a snapshot.
export function change(method, path, query, signal) {
	return ask(path + "?" + new URLSearchParams(query), { method, signal });
}
