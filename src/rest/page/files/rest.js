// SPDX-License-Identifier: MIT
// The Table service.  A change is { kind, row, etag }: kind is "insert", "update" or "delete", and a
// row has the form of the service's JSON.
import { ask, queryOf } from "/http.js";
import { jsonOf } from "/types.js";

const ACCEPT = { Accept: "application/json;odata=fullmetadata" };
const TOKENS = ["NextTableName", "NextPartitionKey", "NextRowKey"];

// The service writes 2.0 for a double without an annotation, and JavaScript reads it as 2.
function annotateDouble(name, value, context) {
	if (typeof value === "number" && /[.e]/i.test(context?.source ?? ""))
		this[name + "@odata.type"] = "Edm.Double";
	return value;
}

export function parseRow(text) {
	return JSON.parse(text, annotateDouble);
}

async function get(path) {
	const answer = await ask(path, { headers: ACCEPT });
	return { body: parseRow(await answer.text()), headers: answer.headers };
}

// The query of the next part, or null behind the last one.
function following(headers) {
	const next = {};
	for (const name of TOKENS) {
		const value = headers.get("x-ms-continuation-" + name);
		if (value)
			next[name] = value;
	}
	return Object.keys(next).length > 0 ? next : null;
}

async function part(path, query) {
	const { body, headers } = await get(path + "?" + queryOf(query));
	return { values: body.value, next: following(headers) };
}

export async function accounts() {
	return (await get("/accounts")).body.accounts;
}

export function tables(account, token) {
	return part(`/table/${account}/Tables`, { $top: 100, ...token });
}

export function createTable(account, name) {
	return ask(`/table/${account}/Tables`, {
		method: "POST", headers: { ...ACCEPT, "Content-Type": "application/json" },
		body: JSON.stringify({ TableName: name }),
	});
}

export function tablePath(account, name) {
	return `/table/${account}/Tables('${name}')`;
}

export function rows(account, table, filter, token) {
	return part(`/table/${account}/${table}()`, { $top: 100, $filter: filter, ...token });
}

function inQuotes(key) {
	return "'" + encodeURIComponent(key.replaceAll("'", "''")) + "'";
}

export function rowPath(account, table, { PartitionKey, RowKey }) {
	const keys = `PartitionKey=${inQuotes(PartitionKey)},RowKey=${inQuotes(RowKey)}`;
	return `/${account}/${table}(${keys})`;
}

export async function row(account, table, keys) {
	return (await get("/table" + rowPath(account, table, keys))).body;
}

// What the service gets for a change; the path begins with the account.
export function requestOf(account, table, { kind, row: made, etag }) {
	const headers = { Accept: "application/json;odata=nometadata" };
	if (kind === "delete")
		return {
			method: "DELETE", path: rowPath(account, table, made),
			headers: { ...headers, "If-Match": etag },
		};
	headers["Content-Type"] = "application/json";
	const body = jsonOf(made);
	if (kind === "insert")
		return {
			method: "POST", path: `/${account}/${table}`, body,
			headers: { ...headers, Prefer: "return-no-content" },
		};
	return {
		method: "PUT", path: rowPath(account, table, made), body,
		headers: { ...headers, "If-Match": etag },
	};
}

function trashPath(account, table, { PartitionKey, RowKey }, more) {
	return `/trash/${account}/${table}?pk=${encodeURIComponent(PartitionKey)}&rk=${encodeURIComponent(RowKey)}&${queryOf(more)}`;
}

// Deletes a row.  Returns the name of its file in the trash, or null if the trash cannot keep it: it is too large, or
// the store is in a cluster.
export async function remove(account, table, wanted) {
	const path = trashPath(account, table, wanted.row, { etag: wanted.etag });
	const { file = null } = await (await ask(path, { method: "DELETE" })).json();
	if (file === null)
		await change(account, table, wanted);
	return file;
}

// Brings a row back from the trash.
export function restore(account, table, row, file) {
	return ask(trashPath(account, table, row, { file }), { method: "POST" });
}

export function change(account, table, wanted) {
	const { path, ...options } = requestOf(account, table, wanted);
	return ask("/table" + path, options);
}
