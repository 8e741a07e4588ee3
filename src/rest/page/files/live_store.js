// SPDX-License-Identifier: MIT
// The bytes of the store on disk, those of the server's memory, and the sizes of its tables.
import { Chart } from "/chart.js";
import { DataTable } from "/data_table.js";
import { el } from "/dom.js";
import { sizeText } from "/figures.js";
import { TableSizes } from "/table_sizes.js";

const ON_DISK = [
	["bytes", "Whole store"], ["log_bytes", "Write-ahead log"],
	["file_bytes", "Ordinary files"], ["blob_bytes", "Content of blobs"],
];
const CACHES = [
	["pages", "Cache of the store's pages"], ["rows", "Cache of the mount's rows"],
	["names", "Cache of names of tables"], ["partition_keys", "Cache of partition keys"],
];
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

// A chart of some sizes over time, and a table of what they are.
class Sizes {
	// parts: [name, label] of each; find(sample): the figures by name.
	constructor(caption, title, parts, find) {
		const chart = el("div", { class: "chart" });
		this.parts = parts;
		this.find = find;
		this.table = new DataTable(caption, [{ title }, { title: "Size", number: true }]);
		this.place = el("div", {}, el("figure", {}, el("figcaption", {}, caption), chart), this.table.place);
		this.chart = new Chart(chart, {
			series: parts.map(([, label]) => ({ label, text: sizeText })),
			text: sizeText,
			axis: { incrs: POWERS },
		});
	}

	draw(samples, text) {
		const all = samples.map(this.find);
		this.chart.show(
			[samples.map((s) => s.time), ...this.parts.map(([name]) => all.map((figures) => figures[name]))], text);
		this.table.show(this.parts.map(([name, label]) => [label, sizeText(all.at(-1)[name])]));
	}
}

export class Store {
	constructor(account, signal) {
		const tables = new TableSizes(account, signal);
		this.disk = new Sizes("Bytes on disk", "Part", ON_DISK, (sample) => sample.store);
		this.memory = new Sizes("Bytes in memory", "Part",
			[["process", "Memory of rowfs, with its caches"], ...CACHES],
			({ memory }) => ({ process: memory.bytes, ...memory.caches }));
		this.place = el("section", { "aria-label": "Store" },
			el("h2", {}, "Store"),
			el("div", { class: "charts" }, this.disk.place, this.memory.place),
			tables.place);
	}

	draw(samples) {
		const { store, memory } = samples.at(-1);
		const cached = CACHES.reduce((sum, [name]) => sum + memory.caches[name], 0);
		this.disk.draw(samples, `${sizeText(store.bytes)} on disk, of that ${sizeText(store.log_bytes)} of log`);
		this.memory.draw(samples, `${sizeText(memory.bytes)} in memory, of that ${sizeText(cached)} of caches`);
	}

	end() {
		this.disk.chart.end();
		this.memory.chart.end();
	}
}
