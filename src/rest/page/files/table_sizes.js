// SPDX-License-Identifier: MIT
// The rows and bytes of each table of an account, when somebody wants to know: all rows are read for it.
import * as rest from "/rest.js";
import { data } from "/data.js";
import { DataTable } from "/data_table.js";
import { attempt, button, el } from "/dom.js";
import { sizeText } from "/figures.js";

// Adds up the parts of a table; tell() gets the sums so far.
export async function measure(account, table, tell, signal) {
	const sums = { table, partitions: 0, rows: 0, bytes: 0 };
	let next = {};
	do {
		const part = await data(`/sizes/${account}/${table}?` + new URLSearchParams(next), signal);
		for (const name of ["partitions", "rows", "bytes"])
			sums[name] += part[name];
		next = Object.fromEntries(["from", "row", "after"].filter((name) => name in part).map((name) => [name, part[name]]));
		tell(sums);
	} while (Object.keys(next).length > 0);
	return sums;
}

async function tablesOf(account) {
	const names = [];
	let token = null;
	do {
		const { values, next } = await rest.tables(account, token);
		names.push(...values.map((value) => value.TableName));
		token = next;
	} while (token !== null);
	return names;
}

export class TableSizes {
	constructor(account, signal) {
		Object.assign(this, { account, signal, sizes: [] });
		this.table = new DataTable(`Tables of ${account}`, [
			{ title: "Table" }, { title: "Partitions", number: true }, { title: "Rows", number: true },
			{ title: "Bytes of rows", number: true }, { title: "Share" }]);
		this.table.place.hidden = true;
		this.start = button("Measure the tables", () => attempt(() => this.measure()));
		this.place = el("div", {}, el("p", {}, this.start, " reads all rows of the account."), this.table.place);
	}

	async measure() {
		this.start.disabled = true;
		this.table.place.hidden = false;
		try {
			this.sizes = [];
			for (const table of await tablesOf(this.account)) {
				const at = this.sizes.length;
				await measure(this.account, table, (sums) => this.show(at, sums), this.signal);
			}
			this.table.caption.textContent = `Tables of ${this.account}, measured at ${new Date().toLocaleTimeString([], { hour12: false })}`;
		} finally {
			this.start.disabled = false;
		}
	}

	show(at, sums) {
		this.sizes[at] = { ...sums };
		const all = this.sizes.reduce((sum, one) => sum + one.bytes, 0);
		const sorted = [...this.sizes].sort((a, b) => b.bytes - a.bytes);
		this.table.show(sorted.map((one) => [
			one.table, one.partitions.toLocaleString("en"), one.rows.toLocaleString("en"), sizeText(one.bytes),
			el("meter", { min: 0, max: Math.max(all, 1), value: one.bytes, "aria-label": `Share of ${one.table}` })]));
	}
}
