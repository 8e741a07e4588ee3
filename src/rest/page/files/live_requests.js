// SPDX-License-Identifier: MIT
// Requests a second and latencies, by front end and operation.
import { Chart } from "/chart.js";
import { DataTable } from "/data_table.js";
import { el } from "/dom.js";
import { nameOf, rateText, timeText } from "/figures.js";

const LINES = 6; // operations in the chart of rates
const POWERS = [10, 100, 1e3, 1e4, 1e5, 1e6, 1e7]; // us

const sampleOf = (sample, name) => sample.operations.find((o) => nameOf(o) === name);
const column = (samples, pick) => samples.map((sample) => pick(sample) ?? null);

// The most frequent operations of the samples.  Those that were there before keep their places, so lines
// keep their colours.
export function busiest(samples, before) {
	const sums = new Map();
	for (const { operations } of samples)
		for (const o of operations)
			sums.set(nameOf(o), (sums.get(nameOf(o)) ?? 0) + o.rate);
	const top = [...sums].sort((a, b) => b[1] - a[1]).slice(0, LINES).map(([name]) => name);
	const kept = before.filter((name) => top.includes(name));
	return [...kept, ...top.filter((name) => !kept.includes(name))];
}

export class Requests {
	constructor() {
		this.names = [];
		this.ratesPlace = el("div", { class: "chart" });
		this.operation = el("select", { "aria-label": "Operation of the latency chart", change: () => this.drawLatencies() },
			new Option("all requests", ""));
		const latencies = el("div", { class: "chart" });
		this.table = new DataTable("The last second", [
			{ title: "Front end" }, { title: "Operation" }, { title: "A second", number: true },
			{ title: "p50", number: true }, { title: "p99", number: true },
			{ title: "Refused", number: true }, { title: "Failed", number: true }]);
		this.place = el("section", { "aria-label": "Requests" },
			el("h2", {}, "Requests"),
			el("div", { class: "charts" },
				el("figure", {}, el("figcaption", {}, "Requests a second, by front end and operation"), this.ratesPlace),
				el("figure", {}, el("figcaption", {}, "Latency of ", this.operation), latencies)),
			this.table.place);
		this.latencies = new Chart(latencies, {
			series: [{ label: "p50", text: timeText }, { label: "p99", text: timeText }],
			text: timeText,
			axis: { splits: () => POWERS },
			scales: { y: { distr: 3, range: (_, low, high) => [POWERS[0], POWERS.find((n) => n >= (high ?? 1e3)) ?? high] } },
		});
	}

	draw(samples) {
		this.samples = samples;
		this.addOperations(samples.at(-1).operations);
		this.drawRates();
		this.drawLatencies();
		this.list(samples.at(-1).operations);
	}

	addOperations(operations) {
		const known = new Set([...this.operation.options].map((option) => option.value));
		for (const name of operations.map(nameOf))
			if (!known.has(name))
				this.operation.add(new Option(name, name));
	}

	drawRates() {
		const names = busiest(this.samples, this.names);
		if (!this.rates || names.join() !== this.names.join()) {
			this.names = names;
			this.rates?.end();
			this.rates = new Chart(this.ratesPlace, {
				series: names.map((label) => ({ label, text: rateText })),
				text: rateText,
			});
		}
		const lines = names.map((name) => column(this.samples, (s) => sampleOf(s, name)?.rate ?? 0));
		this.rates.show([column(this.samples, (s) => s.time), ...lines],
			`${rateText(this.samples.at(-1).all.rate)} requests a second`);
	}

	drawLatencies() {
		if (!this.samples)
			return;
		const name = this.operation.value;
		const chosen = (sample) => name === "" ? sample.all : sampleOf(sample, name);
		const last = chosen(this.samples.at(-1));
		this.latencies.show(
			[column(this.samples, (s) => s.time), column(this.samples, (s) => chosen(s)?.p50),
				column(this.samples, (s) => chosen(s)?.p99)],
			`p50 ${timeText(last?.p50)}, p99 ${timeText(last?.p99)}`);
	}

	list(operations) {
		this.table.show(operations.map((o) => [
			o.front_end, o.operation, rateText(o.rate), timeText(o.p50), timeText(o.p99),
			rateText(o.refused), rateText(o.failed)]));
		this.table.caption.textContent = operations.length > 0
			? "The last second" : "The last second: nobody asked for anything";
	}

	end() {
		this.rates?.end();
		this.latencies.end();
	}
}
