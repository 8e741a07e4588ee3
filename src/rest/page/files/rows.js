// SPDX-License-Identifier: MIT
// The rows of one table: a filter, the grid, more rows when they are wanted, and changes of rows.
import * as rest from "/rest.js";
import { attempt, button, el, focusOffer, offer, say, scrolled } from "/dom.js";
import { ChangeSet } from "/change_set.js";
import { removeButton } from "/collections.js";
import { RowEditor, undoOf } from "/editor.js";
import { Grid } from "/grid.js";
import { planButton } from "/plan.js";
import { shareButton } from "/share.js";
import { partitionFilter } from "/route.js";
import { exportButton, importButton } from "/transfer.js";
import { KEEPS_TYPES } from "/types.js";

class Rows {
	constructor(main, route) {
		this.route = route;
		this.next = null;
		this.asked = 0;
		this.filter = el("input", {
			id: "filter", placeholder: "PartitionKey eq 'p' and Age gt 30", autocomplete: "off",
			spellcheck: "false", value: route.filter,
		});
		this.caption = el("caption", {}, route.name);
		this.editor = new RowEditor(this);
		this.grid = new Grid(el("thead"), el("tbody", { id: "rows" }),
			(key) => this.choosePartition(key), KEEPS_TYPES ? (row) => this.open(row) : null);
		this.changes = new ChangeSet(route, {
			openChange: (change) => this.editor.openChange(change),
			openConflict: (change) => this.editor.openConflict(change),
			sent: (n) => this.sent(n),
		});
		this.more = button("More rows", () => attempt(() => this.add()), { hidden: true });
		const plan = planButton(route, () => this.filter.value.trim());
		const ask = el("form", { id: "ask", submit: (event) => this.submit(event) },
			el("label", { for: "filter" }, "Filter"), this.filter,
			el("button", { type: "submit" }, "Show"), plan.button);
		const tools = el("p", { class: "actions tools" },
			...KEEPS_TYPES ? this.changers() : ["This browser is too old to change rows here: it would change the types of numbers."],
			shareButton("table", route.account, route.name),
			removeButton("table", rest.tablePath(route.account, route.name), route));
		main.append(ask, plan.text, tools, this.changes.panel, scrolled("Rows", this.caption, this.grid.head, this.grid.body), this.more, this.editor.dialog);
		route.guard(() => this.changes.changes.length > 0 || this.editor.dialog.open);
	}

	changers() {
		const { account, name } = this.route;
		return [button("New row", () => this.editor.open(null, { PartitionKey: this.partition() })), this.changes.label,
			el("span", { class: "gap" }), importButton(account, name, () => attempt(() => this.show())),
			exportButton(account, name, () => this.shown)];
	}

	submit(event) {
		event.preventDefault();
		void attempt(() => this.show());
	}

	choosePartition(key) {
		this.filter.value = partitionFilter(key);
		return attempt(() => this.show());
	}

	// The partition of the rows, if they are all of one.
	partition() {
		const keys = new Set(this.grid.rows.map((row) => row.PartitionKey));
		return keys.size === 1 ? [...keys][0] : "";
	}

	show() {
		this.next = null;
		this.shown = this.filter.value.trim();
		this.grid.clear();
		this.more.hidden = true;
		this.caption.textContent = this.route.name;
		return this.add();
	}

	async add() {
		const asked = ++this.asked;
		const found = await rest.rows(
			this.route.account, this.route.name, this.shown, this.next);
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

	// The row, or null if it is not there.
	async read(keys) {
		try {
			return await rest.row(this.route.account, this.route.name, keys);
		} catch (error) {
			if (error.status === 404)
				return null;
			throw error;
		}
	}

	open(row) {
		const change = this.changes.find(row);
		if (change)
			this.editor.openChange(change);
		else
			this.editor.open(row);
	}

	async sent(n) {
		if (await attempt(() => this.show()))
			say(`${n} ${n === 1 ? "change is" : "changes are"} in the store.`);
	}

	async apply(change) {
		if (this.changes.isOn || change.replaces) {
			this.changes.add(change);
			return;
		}
		const { account, name } = this.route;
		if (change.kind === "delete")
			change.file = await rest.remove(account, name, change);
		else
			await rest.change(account, name, change);
		await this.showChange(change);
	}

	// Without a file in the trash, or once the trash has dropped it, the row is inserted anew.
	async undo({ row, before, file }) {
		if (file && await this.restored(row, file))
			return this.showChange({ kind: "restore", row });
		return this.apply(undoOf(before));
	}

	async restored(row, file) {
		try {
			await rest.restore(this.route.account, this.route.name, row, file);
			return true;
		} catch (error) {
			if (error.status === 404)
				return false;
			throw error;
		}
	}

	focus({ kind, row }) {
		if (kind === "delete" && !this.changes.find(row))
			focusOffer();
		else
			this.grid.focus(row);
	}

	async showChange(change) {
		const current = change.kind === "delete" ? null : await this.read(change.row);
		if (current)
			this.grid.put(current);
		else
			this.grid.remove(change.row);
		this.count();
		if (change.kind === "delete")
			offer(`Row ${change.row.RowKey} was deleted.`, "Undo", () => this.undo(change));
	}
}

export function showRows(main, route) {
	return new Rows(main, route).show();
}
