// SPDX-License-Identifier: MIT
// The heat of a table's partitions as a strip over its key space, with the target of a partition as a line.
import { bars, Chart, colour, drawLimit } from "/chart.js";
import { data } from "/data.js";
import { DataTable } from "/data_table.js";
import { el } from "/dom.js";
import { rateText } from "/figures.js";
import { HeatMap } from "/heat_map.js";
import { KeySpace } from "/key_space.js";

const TARGET = 500; // entities a second in a partition, which the service documents
const LISTED = 10;

const nameOf = (key) => key === "" ? "(empty)" : key;
const shorten = (text) => text.length > 12 ? text.slice(0, 11) + "…" : text;

// The n hottest, by their busiest second.
export function hottestOf(partitions, n) {
	return [...partitions].sort((a, b) => b.peak - a.peak || b.changed + b.read - a.changed - a.read).slice(0, n);
}

export class Heat {
	constructor(signal) {
		this.signal = signal;
		this.map = null;
		this.target = TARGET;
		this.tables = el("select", { "aria-label": "Table of the heat strip", change: () => {
			this.map = this.found = null;
		} });
		this.none = el("p", { class: "hint" }, "Nobody read or changed an entity in the last minute.");
		const strip = el("div", { class: "chart" });
		this.table = new DataTable("The hottest partitions of the last minute", [
			{ title: "PartitionKey" }, { title: "Busiest second", number: true },
			{ title: "Mean a second", number: true }, { title: "Of the target", number: true },
			{ title: "Place in the key space", number: true }]);
		this.shown = el("div", { hidden: true },
			el("figure", {},
				el("figcaption", {}, "Entities a second in the hottest partition of each slice of ", this.tables), strip),
			this.table.place);
		this.place = el("section", { "aria-label": "Heat" }, el("h2", {}, "Heat of partitions"), this.none, this.shown);
		this.chart = new Chart(strip, this.options());
	}

	options() {
		const bar = (label, name) => ({ label, text: rateText, paths: bars, dash: [], width: 0,
			stroke: () => colour(name), fill: () => colour(name) });
		return {
			series: [bar("busiest second", "--line-1"), bar("over the target", "--hot"),
				bar("mean of a minute", "--line-3")],
			text: rateText,
			x: { label: "From key", text: (i) => this.keyAt(i), incrs: [1, 2, 4, 8, 16] },
			scales: {
				x: { time: false, range: () => [0, this.map?.firsts.length || 1] },
				y: { range: (_, low, high) => [0, Math.max(high ?? 0, this.target) * 1.15] },
			},
			hooks: { draw: [(plot) => drawLimit(plot, this.target, `target ${this.target}`)] },
		};
	}

	keyAt(slice) {
		const key = this.map?.firsts[slice];
		return key === undefined ? "" : shorten(nameOf(key));
	}

	// Tables that were hot stay in the menu.
	addTables(hottest) {
		const known = new Set([...this.tables.options].map((option) => option.value));
		for (const { account, table } of hottest) {
			const name = `${account}/${table}`;
			if (!known.has(name))
				this.tables.add(new Option(name, name));
			known.add(name);
		}
	}

	// Once a second, with an answer of /live.
	async read({ hottest }) {
		this.addTables(hottest);
		if (this.tables.value === "")
			return;
		try {
			await this.readTable(this.tables.value);
		} catch (error) {
			if (error.status !== 404)
				throw error;
			this.forget();
		}
	}

	// The table was deleted.
	forget() {
		this.tables.selectedOptions[0].remove();
		this.map = this.found = null;
		this.shown.hidden = this.tables.value === "";
		this.none.hidden = !this.shown.hidden;
	}

	async readTable(table) {
		this.map ??= new HeatMap(new KeySpace(...table.split("/")));
		const { map } = this, found = await data(`/heat/${table}`, this.signal);
		if (map.isStale(found.total))
			await map.cut(this.signal);
		if (map === this.map) // no other table was chosen meanwhile
			this.found = found;
	}

	draw() {
		if (!this.found)
			return;
		const { partitions, heat_seconds: seconds, partition_target: set } = this.found;
		this.target = set || TARGET;
		this.none.hidden = true;
		this.shown.hidden = false;
		const { peak, mean } = this.map.heat(partitions, seconds);
		const over = peak.map((n) => n > this.target ? n : null);
		const hottest = hottestOf(partitions, LISTED);
		this.chart.show([peak.map((_, i) => i), peak, over, mean], hottest.length === 0 ? "no heat"
			: `hottest: ${nameOf(hottest[0].partition_key)}, ${hottest[0].peak} entities in its busiest second; the target is ${this.target}`);
		this.table.show(hottest.map((p) => [
			nameOf(p.partition_key), String(p.peak), rateText((p.changed + p.read) / seconds),
			`${Math.round(p.peak * 100 / this.target)} %`,
			`${this.map.sliceOf(p.partition_key) + 1} of ${this.map.firsts.length}`]));
	}

	end() {
		this.chart.end();
	}
}
