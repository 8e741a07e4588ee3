// SPDX-License-Identifier: MIT
// The view of snapshots: makes them, and compares a table in two of them, or in a snapshot and the store.
import { compare } from "/compare.js";
import { confirmed } from "/confirm.js";
import { change, data } from "/data.js";
import { DataTable } from "/data_table.js";
import { attempt, button, el } from "/dom.js";
import { sizeText } from "/figures.js";
import { parseRow } from "/rest.js";
import { list as listTables } from "/tables.js";

export const id = "snapshots", title = "Snapshots";
export const list = listTables;

const NOW = "0"; // in place of a snapshot's number
const nameOf = (key) => key === "" ? "(empty)" : key;
const countOf = (n, one, more) => `${n.toLocaleString("en")} ${n === 1 ? one : more}`;

// ---- snapshots ----

class Snapshots {
	constructor(signal, changed) {
		Object.assign(this, { signal, changed });
		this.name = el("input", { id: "snapshot-name", autocomplete: "off", spellcheck: "false", required: true });
		const form = el("form", { submit: (event) => {
			event.preventDefault();
			void attempt(() => this.make());
		} }, el("label", { for: "snapshot-name" }, "New snapshot"), this.name, el("button", { type: "submit" }, "Make"));
		this.table = new DataTable("Snapshots", [
			{ title: "Name" }, { title: "Made" }, { title: "Log since then", number: true }, { title: "" }]);
		this.place = el("section", { "aria-label": "Snapshots of the store" }, el("h2", {}, "Snapshots of the store"),
			el("p", { class: "hint" }, "A snapshot fixes the whole store as of now. It ends with rowfs. While there is one, the log only grows."),
			form, this.table.place);
	}

	async make() {
		await change("POST", "/snapshots", { name: this.name.value }, this.signal);
		this.name.value = "";
		await this.show();
	}

	async remove(name) {
		if (!await confirmed(`Remove the snapshot ${name}? It cannot be taken back.`, "Remove"))
			return;
		await change("DELETE", "/snapshots", { name }, this.signal);
		await this.show();
	}

	async show() {
		const { snapshots } = await data("/snapshots", this.signal);
		this.table.show(snapshots.map(({ name, made, log_bytes: bytes }) => [
			name, new Date(made).toLocaleString(), sizeText(bytes),
			button("Remove", () => attempt(() => this.remove(name)), { "aria-label": `Remove snapshot ${name}` })]));
		this.table.caption.textContent = countOf(snapshots.length, "snapshot", "snapshots");
		this.changed(snapshots);
	}
}

// ---- two versions of a table ----

function kindOf({ before, after }) {
	if (before === undefined)
		return "added";
	if (after === undefined)
		return "removed";
	return before === after ? "written again, with the same content" : "changed";
}

function draw(difference) {
	const versions = ["before", "after"].map((name) =>
		[name, difference[name] === undefined ? null : parseRow(difference[name])]);
	const kind = kindOf(difference);
	return el("details", { open: kind === "changed" },
		el("summary", {}, el("strong", {}, kind), ` ${nameOf(difference.partition_key)} / ${nameOf(difference.row_key)}`),
		el("div", { class: "scroll" }, compare(versions)));
}

class Comparison {
	constructor(account, table, signal) {
		Object.assign(this, { table, signal, path: `/compare/${account}/${table}?`, turn: 0 });
		this.sides = ["before", "after"].map((name) => el("select", { id: `compare-${name}` }));
		this.count = el("p", { class: "hint", "aria-live": "polite" });
		this.found = el("div");
		this.more = button("More differences", () => attempt(() => this.read()), { hidden: true });
		const form = el("form", { submit: (event) => {
			event.preventDefault();
			void attempt(() => this.show());
		} }, el("label", { for: "compare-before" }, "From"), this.sides[0],
		el("label", { for: "compare-after" }, "to"), this.sides[1], el("button", { type: "submit" }, "Compare"));
		this.place = el("section", { "aria-label": `Compare ${table}` }, el("h2", {}, `Compare ${table}`),
			form, this.count, this.found, this.more);
	}

	// The latest snapshot and now are what most people compare.
	offer(snapshots) {
		const options = [["now", NOW], ...snapshots.map(({ name, number }) => [name, String(number)])];
		this.sides.forEach((side, i) => {
			const chosen = i === 0 && (side.value || NOW) === NOW ? options.at(-1)[1] : side.value;
			side.replaceChildren(...options.map(([name, number]) => new Option(name, number)));
			side.value = options.some(([, number]) => number === chosen) ? chosen : NOW;
		});
	}

	show() {
		const [before, after] = this.sides.map((side) => side.value);
		Object.assign(this, { query: { before, after }, next: {}, looked: 0, differences: 0 });
		this.found.replaceChildren();
		return this.read();
	}

	// Reads until there is something to show, or nothing more to read.
	async read() {
		const turn = ++this.turn, until = this.differences + 1;
		this.more.hidden = true;
		do {
			const query = new URLSearchParams({ ...this.query, ...this.next });
			const part = await data(this.path + query, this.signal);
			if (turn !== this.turn) // another comparison was asked for
				return;
			this.add(part);
		} while (this.goesOn && this.differences < until);
		this.more.hidden = !this.goesOn;
	}

	add(part) {
		const names = ["from", "row", "behind"].filter((name) => name in part);
		this.next = Object.fromEntries(names.map((name) => [name, part[name]]));
		this.goesOn = names.length > 0;
		this.looked += part.looked_at;
		this.differences += part.differences.length;
		this.found.append(...part.differences.map(draw));
		this.count.textContent = `${countOf(this.differences, "difference", "differences")}${this.goesOn ? " so far" : ""}; ` +
			`looked at ${countOf(this.looked, "row or partition", "rows and partitions")}`;
	}
}

export function show(main, { account, name, signal }) {
	const comparison = name === "" ? null : new Comparison(account, name, signal);
	const snapshots = new Snapshots(signal, (found) => comparison?.offer(found));
	main.append(snapshots.place, comparison?.place ?? el("p", { class: "hint" }, "Choose a table to compare."));
	return snapshots.show();
}
