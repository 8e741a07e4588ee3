// SPDX-License-Identifier: MIT
// Rows as a table: one column for each property, with its type.

const NUMBERS = new Set(["Edm.Int32", "Edm.Int64", "Edm.Double"]);
const FIRST = ["PartitionKey", "RowKey", "Timestamp"];

// JSON has types of its own for these; the others are annotated.
function typeOf(row, name) {
	const value = row[name], annotated = row[name + "@odata.type"];
	if (annotated)
		return annotated;
	if (typeof value === "boolean")
		return "Edm.Boolean";
	if (typeof value === "number")
		return Number.isInteger(value) ? "Edm.Int32" : "Edm.Double";
	return "Edm.String";
}

function properties(row) {
	return Object.keys(row).filter((name) => !name.includes("odata."));
}

export class Grid {
	// choosePartition is called with the key of a partition that was clicked.
	constructor(head, body, choosePartition) {
		Object.assign(this, { head, body, choosePartition });
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
		const before = this.columns.size;
		for (const row of rows)
			for (const name of properties(row)) {
				if (!this.columns.has(name))
					this.columns.set(name, new Set());
				this.columns.get(name).add(typeOf(row, name));
			}
		this.rows.push(...rows);
		this.drawHead();
		// A new column needs a cell in the rows that are there.
		if (this.columns.size > before)
			this.body.replaceChildren(...this.rows.map((row) => this.draw(row)));
		else
			this.body.append(...rows.map((row) => this.draw(row)));
	}

	drawHead() {
		const line = document.createElement("tr");
		for (const [name, types] of this.columns) {
			const cell = document.createElement("th"), small = document.createElement("small");
			cell.scope = "col";
			small.textContent = [...types].map((type) => type.replace("Edm.", "")).join(", ");
			cell.append(name, small);
			line.append(cell);
		}
		this.head.replaceChildren(line);
	}

	draw(row) {
		const line = document.createElement("tr");
		for (const name of this.columns.keys())
			line.append(this.cell(row, name));
		return line;
	}

	cell(row, name) {
		const cell = document.createElement("td"), value = row[name];
		if (value === undefined)
			return cell;
		const text = String(value);
		cell.title = text;
		if (NUMBERS.has(typeOf(row, name)))
			cell.className = "number";
		if (name !== "PartitionKey") {
			cell.textContent = text;
			return cell;
		}
		const button = document.createElement("button");
		button.type = "button";
		button.textContent = text === "" ? "(empty)" : text;
		button.setAttribute("aria-label", `Show only partition ${button.textContent}`);
		button.addEventListener("click", () => this.choosePartition(text));
		cell.append(button);
		return cell;
	}
}
