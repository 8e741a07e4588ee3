// SPDX-License-Identifier: MIT
// The bytes of the store.
import { Chart } from "/chart.js";
import { DataTable } from "/data_table.js";
import { el } from "/dom.js";
import { sizeText } from "/figures.js";

const PARTS = [
	["bytes", "Whole store"], ["log_bytes", "Write-ahead log"],
	["file_bytes", "Ordinary files"], ["blob_bytes", "Content of blobs"],
];
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);
const DRAWN = PARTS.slice(0, 2);

export class Store {
	constructor() {
		const chart = el("div", { class: "chart" });
		this.table = new DataTable("The parts of the store", [{ title: "Part" }, { title: "Size", number: true }]);
		this.place = el("section", { "aria-label": "Store" },
			el("h2", {}, "Store"),
			el("figure", {}, el("figcaption", {}, "Bytes on disk"), chart),
			this.table.place);
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
