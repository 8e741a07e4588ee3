// SPDX-License-Identifier: MIT
// The bytes of the store, of its log and its tables.
import { Chart } from "/chart.js";
import { DataTable } from "/data_table.js";
import { el } from "/dom.js";
import { sizeText } from "/figures.js";
import { TableSizes } from "/table_sizes.js";

const PARTS = [
	["bytes", "Whole store"], ["log_bytes", "Write-ahead log"],
	["file_bytes", "Ordinary files"], ["blob_bytes", "Content of blobs"], ["memory_bytes", "Memory of rowfs, with its caches"],
];
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);
const DRAWN = [PARTS[0], PARTS[1], PARTS[4]];

export class Store {
	constructor(account, signal) {
		const tables = new TableSizes(account, signal);
		const chart = el("div", { class: "chart" });
		this.table = new DataTable("The parts of the store", [{ title: "Part" }, { title: "Size", number: true }]);
		this.place = el("section", { "aria-label": "Store" },
			el("h2", {}, "Store"),
			el("figure", {}, el("figcaption", {}, "Bytes on disk, and in memory"), chart),
			this.table.place, tables.place);
		this.chart = new Chart(chart, {
			series: DRAWN.map(([, label]) => ({ label, text: sizeText })),
			text: sizeText,
			axis: { incrs: POWERS },
		});
	}

	draw(samples) {
		const { store } = samples.at(-1);
		this.chart.show(
			[samples.map((s) => s.time), ...DRAWN.map(([name]) => samples.map((s) => s.store[name]))],
			`${sizeText(store.bytes)} on disk, of that ${sizeText(store.log_bytes)} of log`);
		this.table.show(PARTS.map(([name, label]) => [label, sizeText(store[name])]));
	}

	end() {
		this.chart.end();
	}
}
