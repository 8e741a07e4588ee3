// SPDX-License-Identifier: MIT
// Rows as text: NDJSON and CSV, as "rowfs export" writes them (docs/formats.md).
import { jsonOf, ownNames, plainRow, textOf, typeOf, valueOf } from "/types.js";

export function ndjsonOf(row) {
	const { PartitionKey, RowKey, Timestamp } = row;
	return jsonOf({ PartitionKey, RowKey, "Timestamp@odata.type": "Edm.DateTime", Timestamp,
		...plainRow(row) }) + "\n";
}

function quoted(text) {
	return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvLine(cells) {
	return cells.join(",") + "\r\n";
}

export function csvOf(rows) {
	const columns = [...new Set(rows.flatMap(ownNames))];
	const head = csvLine(["PartitionKey", "RowKey", "Timestamp", ...columns.flatMap((name) => [name, name + "@type"])]);
	const lines = rows.map((row) => csvLine([quoted(row.PartitionKey), quoted(row.RowKey), row.Timestamp,
		...columns.flatMap((name) => valueOf(row, name) === undefined ? ["", ""]
			: [quoted(textOf(valueOf(row, name))), typeOf(row, name)])]));
	return head + lines.join("");
}

// Cuts a text into parts of whole records, each with the text of the first record before it if `hasHead`:
// { text, line }, where `line` is what the number of a line in the part lacks.  A line break in quotes ends
// no record of CSV.
export function* partsOf(text, hasHead, size) {
	const endOf = (from) => {
		let quotes = 0, at = from;
		for (;;) {
			const end = text.indexOf("\n", at);
			if (end < 0)
				return text.length;
			quotes += hasHead ? text.slice(at, end).split('"').length - 1 : 0;
			at = end + 1;
			if (quotes % 2 === 0)
				return at;
		}
	};
	const begin = hasHead ? endOf(0) : 0, head = text.slice(0, begin);
	let line = 0;
	for (let from = begin; from < text.length;) {
		let end = from;
		do
			end = endOf(end);
		while (end < text.length && end - from < size);
		const part = text.slice(from, end);
		yield { text: head + part, line };
		line += part.split("\n").length - 1;
		from = end;
	}
}
