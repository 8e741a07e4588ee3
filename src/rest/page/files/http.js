// SPDX-License-Identifier: MIT
// Asks a service of the page's own socket.  The session's cookie is the credential; pages of other
// origins cannot send the header x-ms-version.

const VERSION = "2019-02-02";

export class RestError extends Error {
	constructor(status, code, message) {
		super(message);
		Object.assign(this, { status, code });
	}
}

// The error of an answer: JSON of tables, XML of queues and blobs, else plain text.  Its message's
// other lines are for logs.
async function errorOf(answer) {
	const text = await answer.text();
	let code = answer.headers.get("x-ms-error-code") ?? "", message = text;
	if (text.startsWith("{")) {
		const error = JSON.parse(text)["odata.error"];
		[code, message] = [error.code, error.message.value];
	} else if (text.includes("<Error>")) {
		const found = parseXml(text);
		[code, message] = [textOf(found, "Code"), textOf(found, "Message")];
	}
	return new RestError(answer.status, code, message.split("\n")[0]);
}

// Returns the answer, or throws a RestError.
export async function ask(path, { headers = {}, ...options } = {}) {
	let answer = null;
	try {
		answer = await fetch(path, { headers: { "x-ms-version": VERSION, ...headers }, ...options });
	} catch (error) {
		throw error.name === "AbortError" ? error
			: new Error("rowfs does not answer. Does it still run?");
	}
	if (!answer.ok)
		throw await errorOf(answer);
	return answer;
}

// "a=1&b=2", without the parameters that are undefined, null or "".
export function queryOf(parameters) {
	return Object.entries(parameters)
		.filter(([, value]) => value !== undefined && value !== null && value !== "")
		.map(([name, value]) => name + "=" + encodeURIComponent(value)).join("&");
}

export function parseXml(text) {
	return new DOMParser().parseFromString(text.replace(/^\uFEFF/, ""), "application/xml");
}

// The text of the first element of this name below `node`, or "".
export function textOf(node, name) {
	return node.getElementsByTagName(name)[0]?.textContent ?? "";
}
