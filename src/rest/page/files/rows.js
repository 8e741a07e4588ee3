// SPDX-License-Identifier: MIT
// The rows of one table: a filter, the grid, and more rows when they are wanted.
import * as rest from "/rest.js";
import { Grid } from "/grid.js";
import { attempt, button, el } from "/dom.js";

class Rows {
	constructor(main, route) {
		this.route = route;
		this.next = null;
		this.asked = 0;
		this.filter = el("input", {
			id: "filter", placeholder: "PartitionKey eq 'p' and Age gt 30", autocomplete: "off",
			spellcheck: "false",
		});
		this.caption = el("caption", {}, route.name);
		this.grid = new Grid(el("thead"), el("tbody", { id: "rows" }),
			(key) => this.choosePartition(key));
		this.more = button("More rows", () => attempt(() => this.add()), { hidden: true });
		const ask = el("form", { id: "ask", submit: (event) => this.submit(event) },
			el("label", { for: "filter" }, "Filter"), this.filter,
			el("button", { type: "submit" }, "Show"));
		const scroll = el("div", { id: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" },
			el("table", {}, this.caption, this.grid.head, this.grid.body));
		main.append(ask, scroll, this.more);
	}

	submit(event) {
		event.preventDefault();
		void attempt(() => this.show());
	}

	choosePartition(key) {
		this.filter.value = `PartitionKey eq '${key.replaceAll("'", "''")}'`;
		return attempt(() => this.show());
	}

	show() {
		this.next = null;
		this.grid.clear();
		this.more.hidden = true;
		this.caption.textContent = this.route.name;
		return this.add();
	}

	async add() {
		const asked = ++this.asked;
		const found = await rest.rows(
			this.route.account, this.route.name, this.filter.value.trim(), this.next);
		if (asked !== this.asked) // a later choice replaced this one
			return;
		this.next = found.next;
		this.more.hidden = found.next === null;
		this.grid.add(found.values);
		this.count();
	}

	count() {
		const n = this.grid.count;
		this.caption.textContent =
			`${this.route.name}: ${n} ${n === 1 ? "row" : "rows"}${this.next ? " so far" : ""}`;
	}
}

export function showRows(main, route) {
	return new Rows(main, route).show();
}
