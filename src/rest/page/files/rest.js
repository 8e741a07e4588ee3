// SPDX-License-Identifier: MIT
// Asks the Table service of the page's own socket.  The session's cookie is the credential.

const HEADERS = { Accept: "application/json;odata=fullmetadata", "x-ms-version": "2019-02-02" };
const TOKENS = ["NextTableName", "NextPartitionKey", "NextRowKey"];

// The service writes 2.0 for a double without an annotation, and JavaScript reads it as 2.
function annotateDouble(name, value, context) {
	if (typeof value === "number" && /[.e]/i.test(context?.source ?? ""))
		this[name + "@odata.type"] = "Edm.Double";
	return value;
}

async function get(path) {
	const answer = await fetch(path, { headers: HEADERS });
	const text = await answer.text();
	if (answer.ok)
		return { body: JSON.parse(text, annotateDouble), headers: answer.headers };
	let message = text;
	try {
		message = JSON.parse(text)["odata.error"].message.value.split("\n")[0];
	} catch { /* it is plain text */ }
	throw new Error(message);
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
	const text = Object.entries(query)
		.map(([name, value]) => name + "=" + encodeURIComponent(value)).join("&");
	const { body, headers } = await get(path + "?" + text);
	return { values: body.value, next: following(headers) };
}

export async function accounts() {
	return (await get("/accounts")).body.accounts;
}

export function tables(account, token) {
	return part(`/table/${account}/Tables`, { $top: 100, ...token });
}

export function rows(account, table, filter, token) {
	const query = { $top: 100, ...token };
	if (filter)
		query.$filter = filter;
	return part(`/table/${account}/${table}()`, query);
}

// Data of the page itself, such as /live.
export async function data(path) {
	return (await get(path)).body;
}
