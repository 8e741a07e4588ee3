// SPDX-License-Identifier: MIT
// What the scripts of azure-storage share.
import { promisify } from "node:util";
import { assert } from "../check.mjs";

// The client's methods as promises, which fail as the callbacks do.
export function promises(client) {
	return new Proxy(client, {
		get: (target, name) =>
			typeof target[name] === "function" && !/^generate|^getUrl/.test(name)
				? promisify(target[name]).bind(target)
				: target[name].bind(target),
	});
}

// The promise must fail with this HTTP status and this code of the service.
export async function refused(promise, status, code) {
	const e = await promise.then(
		() => assert.fail(`${code} expected, but it was done`),
		(e) => e,
	);
	if (e.statusCode === undefined) throw e;
	assert.equal(`${e.statusCode} ${e.code}`, `${status} ${code}`, e.message);
	return e;
}
