// SPDX-License-Identifier: MIT
// A table of texts: the figures of a chart, for reading and for screen readers.
import { el } from "/dom.js";

export class DataTable {
	// columns: [{ title, number }]; numbers stand to the right.
	constructor(caption, columns) {
		this.columns = columns;
		this.caption = el("caption", {}, caption);
		this.body = el("tbody");
		const head = el("tr", {}, ...columns.map(({ title, number }) =>
			el("th", { scope: "col", class: number && "number" }, title)));
		this.place = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
			el("table", {}, this.caption, el("thead", {}, head), this.body));
	}

	// lines: arrays of texts or elements.
	show(lines) {
		this.body.replaceChildren(...lines.map((line) => el("tr", {}, ...line.map((text, i) =>
			el("td", { class: this.columns[i].number && "number" }, text)))));
	}
}
