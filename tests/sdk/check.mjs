// SPDX-License-Identifier: MIT
// What the scripts share.  Each named check says on a line of its own, as JSON, how it went;
// tests/system/helpers/sdk.py makes a test of each, and knows their names from the source.
// ROWFS_CONNECTION is the connection string of an account without tables.
import assert from "node:assert/strict";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";

export { assert };

const connection = process.env.ROWFS_CONNECTION;
export const part = (name) => new RegExp(`(?:^|;)${name}=([^;]*)`).exec(connection)[1];
export const account = part("AccountName");
export const endpoint = part("TableEndpoint");
export const credential = new AzureNamedKeyCredential(account, part("AccountKey"));
export { connection };

// A failure of the server is to be seen, not to be tried again.
export const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

export async function check(name, body) {
	const result = { check: name, ok: true };
	try {
		await body();
	} catch (e) {
		result.ok = false;
		result.why = String(e?.stack ?? e);
		if (e?.statusCode) result.why += `\nHTTP ${e.statusCode} ${codeOf(e)}`;
	}
	console.log(JSON.stringify(result));
}

function codeOf(e) {
	return (
		e.details?.odataError?.code ??
		e.details?.errorCode ??
		e.code ??
		e.response?.headers.get("x-ms-error-code")
	);
}

// The promise must fail with this HTTP status and this code of the service.
export async function refused(promise, status, code) {
	const e = await promise.then(
		(value) => assert.fail(`${code} expected, but it was done: ${show(value)}`),
		(error) => error,
	);
	if (e.statusCode === undefined) throw e;
	assert.equal(`${e.statusCode} ${codeOf(e)}`, `${status} ${code}`, e.message);
	return e;
}

export function show(value) {
	return JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}n` : v));
}

export function service() {
	return new TableServiceClient(endpoint, credential, options);
}

export function table(name) {
	return new TableClient(endpoint, name, credential, options);
}

export async function newTable(name) {
	const t = table(name);
	await t.createTable();
	return t;
}

export async function all(iterator) {
	const got = [];
	for await (const item of iterator) got.push(item);
	return got;
}

export async function pages(iterator, size, continuationToken) {
	return all(iterator.byPage({ maxPageSize: size, continuationToken }));
}

// Asks again until the answer is true; a test never waits for a fixed time.
export async function until(ask) {
	for (const end = Date.now() + 60e3; !(await ask()); )
		assert.ok(Date.now() < end, `not within a minute: ${ask}`);
}

export const rowKeys = (entities) => entities.map((e) => e.rowKey);

// The entity without what the service adds.
export function properties(entity) {
	const { partitionKey, rowKey, timestamp, etag, ...rest } = entity;
	delete rest["odata.metadata"];
	return rest;
}
