// SPDX-License-Identifier: MIT
// Dialogs that import rows from a file and export them to one.
import * as rest from "/rest.js";
import { button, el } from "/dom.js";
import { ask, queryOf } from "/http.js";
import { csvOf, ndjsonOf, partsOf } from "/row_text.js";

const PART = 1 << 20; // characters of an import's request
const MODES = [["upsert", "Insert rows, or replace those that are there"], ["merge", "Insert rows, or merge into those that are there"],
	["insert", "Only insert rows that are not there"]];

function options(pairs) {
	return pairs.map(([value, text]) => el("option", { value }, text));
}

class TransferDialog {
	constructor(title, fields, action) {
		this.result = el("div", { role: "status" });
		this.start = el("button", { type: "submit", class: "primary" }, title);
		const form = el("form", { submit: (event) => this.submit(event, action) }, el("h2", { id: "transfer-title" }, title),
			el("div", { class: "fields" }, ...fields), this.result,
			el("p", { class: "actions" }, el("span", { class: "gap" }), button("Close", () => this.dialog.close()), this.start));
		this.dialog = el("dialog", { "aria-labelledby": "transfer-title", close: () => this.dialog.remove() }, form);
		document.body.append(this.dialog);
		this.dialog.showModal();
	}

	say(...parts) {
		this.result.replaceChildren(el("p", {}, ...parts));
	}

	async submit(event, action) {
		event.preventDefault();
		this.start.disabled = true;
		try {
			await action(this);
		} catch (error) {
			this.result.replaceChildren(el("p", { class: "message" }, error.message));
		}
		this.start.disabled = false;
	}
}

// ---- export ----

function download(name, parts) {
	const address = URL.createObjectURL(new Blob(parts));
	el("a", { href: address, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// All rows that match the filter.  CSV needs the names of all properties first.
async function exportRows(dialog, account, table, filter, format) {
	const rows = [], lines = [];
	let token = null, n = 0;
	do {
		const found = await rest.rows(account, table, filter, { $top: 1000, ...token });
		if (format === "csv")
			rows.push(...found.values);
		else
			lines.push(found.values.map(ndjsonOf).join(""));
		token = found.next;
		n += found.values.length;
		dialog.say(`${n} rows so far.`);
	} while (token !== null && dialog.dialog.open);
	if (!dialog.dialog.open)
		return;
	download(`${table}.${format}`, format === "csv" ? [csvOf(rows)] : lines);
	dialog.say(`${n} ${n === 1 ? "row is" : "rows are"} in ${table}.${format}.`);
}

export function exportButton(account, table, filterOf) {
	return button("Export", () => {
		const format = el("select", { id: "format" }, ...options([["ndjson", "NDJSON"], ["csv", "CSV"]]));
		const filter = filterOf();
		const what = el("span", {}, filter === "" ? "all rows" : `rows with ${filter}`);
		return new TransferDialog("Export", [el("span", {}, "What"), what, el("label", { for: "format" }, "Format"), format],
			(dialog) => exportRows(dialog, account, table, filter, format.value));
	});
}

// ---- import ----

// Sends the parts of a file until the dialog is closed, and adds their answers to `sum`.
async function sendParts(dialog, parts, path, sum) {
	for (const { text, line } of parts) {
		if (!dialog.dialog.open)
			return;
		const answer = await (await ask(path, { method: "POST", body: text })).json();
		sum.done += answer.done;
		sum.refused += answer.refused;
		sum.errors.push(...answer.errors.map((one) => ({ ...one, line: one.line + line })));
		dialog.say(`${sum.done} rows so far.`);
	}
}

async function importFile(dialog, account, table, file, mode) {
	const format = /\.csv$/i.test(file.name) ? "csv" : "ndjson";
	const path = `/import/${account}/${table}?${queryOf({ format, mode })}`;
	const sum = { done: 0, refused: 0, errors: [] };
	try {
		await sendParts(dialog, partsOf(await file.text(), format === "csv", PART), path, sum);
	} catch (error) {
		error.message += ` Before that ${sum.done} rows were imported, and ${sum.refused} refused.`;
		throw error;
	}
	dialog.say(`${sum.done} ${sum.done === 1 ? "row is" : "rows are"} in ${table}; ${sum.refused} refused.`);
	if (sum.refused > 0)
		dialog.result.append(el("ul", { class: "message" }, ...sum.errors.slice(0, 20).map((one) =>
			el("li", {}, `Line ${one.line}: ${one.message}`))));
}

export function importButton(account, table, onDone) {
	return button("Import", () => {
		const file = el("input", { id: "import-file", type: "file", required: true, accept: ".ndjson,.jsonl,.json,.csv" });
		const mode = el("select", { id: "mode" }, ...options(MODES));
		return new TransferDialog("Import", [el("label", { for: "import-file" }, "File"), file,
			el("label", { for: "mode" }, "Rows"), mode], async (dialog) => {
			try {
				await importFile(dialog, account, table, file.files[0], mode.value);
			} finally {
				onDone();
			}
		});
	});
}
