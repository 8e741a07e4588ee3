// SPDX-License-Identifier: MIT
// Rows as a table: one column for each property, with its type.
import { button, el } from "/dom.js";
import { names, shortName, textOf, typeOf, valueOf } from "/types.js";

const NUMBERS = new Set(["Edm.Int32", "Edm.Int64", "Edm.Double"]);
const FIRST = ["PartitionKey", "RowKey", "Timestamp"];

function orVisible(key) {
	return key === "" ? "(empty)" : key;
}

function isBefore(one, other) {
	return one.PartitionKey === other.PartitionKey ? one.RowKey < other.RowKey
		: one.PartitionKey < other.PartitionKey;
}

function sameKeys(one, other) {
	return one.PartitionKey === other.PartitionKey && one.RowKey === other.RowKey;
}

function keysOf({ PartitionKey, RowKey }) {
	return JSON.stringify([PartitionKey, RowKey]);
}

export class Grid {
	// choosePartition is called with the key of a partition that was clicked, openRow with a row; null: rows
	// cannot be opened.
	constructor(head, body, choosePartition, openRow) {
		Object.assign(this, { head, body, choosePartition, openRow });
		this.clear();
	}

	clear() {
		this.columns = new Map(FIRST.map((name) => [name, new Set()]));
		this.rows = [];
		this.head.replaceChildren();
		this.body.replaceChildren();
	}

	get count() {
		return this.rows.length;
	}

	add(rows) {
		const columns = this.columns.size, found = new Set(rows.map(keysOf)), { length } = this.rows;
		this.addColumns(rows);
		// A row that was inserted here is in the answer too.
		this.rows = this.rows.filter((row) => !found.has(keysOf(row)));
		const isRedrawn = this.columns.size > columns || this.rows.length < length;
		this.rows.push(...rows);
		// A new column needs a cell in the rows that are there.
		if (isRedrawn)
			this.redraw();
		else
			this.body.append(...rows.map((row) => this.draw(row)));
	}

	// Shows a row in place of the one with its keys, or where its keys belong.
	put(row) {
		const at = this.rows.findIndex((one) => !isBefore(one, row));
		const place = at < 0 ? this.rows.length : at;
		const replaced = at >= 0 && sameKeys(this.rows[at], row) ? 1 : 0;
		this.rows.splice(place, replaced, row);
		this.addColumns([row]);
		this.redraw();
	}

	remove(keys) {
		this.rows = this.rows.filter((row) => !sameKeys(row, keys));
		this.redraw();
	}

	// Moves the focus to the row with these keys, if it is shown.
	focus(keys) {
		const at = this.rows.findIndex((row) => sameKeys(row, keys));
		this.body.children[at]?.querySelector(".row-key").focus();
	}

	redraw() {
		this.body.replaceChildren(...this.rows.map((row) => this.draw(row)));
	}

	addColumns(rows) {
		for (const row of rows)
			for (const name of names(row)) {
				if (!this.columns.has(name))
					this.columns.set(name, new Set());
				this.columns.get(name).add(typeOf(row, name));
			}
		this.drawHead();
	}

	drawHead() {
		const cells = [...this.columns].map(([name, types]) => el("th", { scope: "col" }, name,
			el("small", {}, [...types].map(shortName).join(", "))));
		this.head.replaceChildren(el("tr", {}, ...cells));
	}

	draw(row) {
		return el("tr", {}, ...[...this.columns.keys()].map((name) => this.cell(row, name)));
	}

	cell(row, name) {
		const value = valueOf(row, name);
		if (value === undefined)
			return el("td");
		const text = textOf(value);
		const cell = el("td", { title: text, class: NUMBERS.has(typeOf(row, name)) && "number" });
		if (name === "PartitionKey")
			cell.append(button(orVisible(text), () => this.choosePartition(text),
				{ "aria-label": `Show only partition ${orVisible(text)}` }));
		else if (name === "RowKey" && this.openRow !== null)
			cell.append(button(orVisible(text), () => this.openRow(row),
				{ "aria-label": `Edit row ${orVisible(text)}`, class: "row-key" }));
		else
			cell.append(text);
		return cell;
	}
}
