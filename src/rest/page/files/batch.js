// SPDX-License-Identifier: MIT
// An entity group transaction: changes of one partition as one $batch, all or nothing.
import { RestError, ask } from "/http.js";
import { requestOf } from "/rest.js";

export const BATCH_ROWS = 100; // the service's limit
const OUTER = "batch_rowfs_page", INNER = "changeset_rowfs_page";

function partOf({ method, path, headers, body = "" }) {
	const lines = [`--${INNER}`, "Content-Type: application/http", "Content-Transfer-Encoding: binary", "",
		`${method} ${location.origin}${path} HTTP/1.1`,
		...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), "", body];
	return lines.join("\r\n") + "\r\n";
}

// The answer is 202 also if a change was refused; then the only part has its error, whose message
// begins with the number of the change.
function throwRefused(text) {
	const refused = /HTTP\/1\.1 ([45]\d\d)/.exec(text);
	if (refused === null)
		return;
	const { code, message } = JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1))["odata.error"];
	const [, index, why] = /^(?:(\d+):)?(.*)/.exec(message.value);
	const error = new RestError(Number(refused[1]), code, why);
	error.index = Number(index ?? 0);
	throw error;
}

// Throws a RestError with the index of the change that was refused; nothing was changed then.
export async function sendBatch(account, table, changes) {
	const parts = changes.map((change) => partOf(requestOf(account, table, change)));
	const body = [`--${OUTER}`, `Content-Type: multipart/mixed; boundary=${INNER}`, "",
		`${parts.join("")}--${INNER}--`, `--${OUTER}--`, ""].join("\r\n");
	const answer = await ask(`/table/${account}/$batch`, {
		method: "POST", body,
		headers: { "Content-Type": `multipart/mixed; boundary=${OUTER}`, Accept: "application/json;odata=nometadata" },
	});
	throwRefused(await answer.text());
}
