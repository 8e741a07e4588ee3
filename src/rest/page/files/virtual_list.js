// SPDX-License-Identifier: MIT
// A list of any length that draws the lines in its window only.  The window sticks to the top of the
// scrolled area; the area is as high as all lines, or HEIGHT_MAX, since browsers limit heights.
import { attempt, el } from "/dom.js";

const LINE = 30; // pixels, as in live.css
const HEIGHT_MAX = 10_000_000;
const KEPT = 5000; // lines that were read

export class VirtualList {
	// columns: titles.  load(index, count, signal) reads lines; draw(line) makes the cells of one.
	constructor({ label, columns, load, draw, signal }) {
		Object.assign(this, { load, draw, signal });
		this.total = null; // not known
		this.lines = new Map();
		this.body = el("tbody");
		this.table = el("table", {},
			el("thead", {}, el("tr", {}, ...columns.map((title) => el("th", { scope: "col" }, title)))), this.body);
		this.area = el("div", { class: "area" }, this.table);
		this.place = el("div", { class: "virtual", tabindex: "0", role: "region", "aria-label": label,
			scroll: () => this.show() }, this.area);
		this.resized = new ResizeObserver(() => this.show());
		this.resized.observe(this.place);
		signal.addEventListener("abort", () => this.resized.disconnect());
	}

	// Lines that fit below the head.
	get room() {
		return Math.max(1, Math.floor(this.place.clientHeight / LINE) - 1);
	}

	get first() {
		const range = this.area.offsetHeight - this.place.clientHeight;
		const last = Math.max(0, this.total - this.room);
		return range > 0 ? Math.round(Math.min(this.place.scrollTop / range, 1) * last) : 0;
	}

	setTotal(total) {
		if (total !== this.total)
			this.lines.clear();
		this.total = total;
		this.table.setAttribute("aria-rowcount", total + 1);
		this.area.style.height = `${Math.min((total + 1) * LINE, HEIGHT_MAX)}px`;
	}

	// Scrolls so that this line is the first one, where that is possible.
	goTo(index) {
		const last = Math.max(1, this.total - this.room);
		this.place.scrollTop = index / last * (this.area.offsetHeight - this.place.clientHeight);
		return this.show();
	}

	show() {
		const { first, room } = this;
		this.fill(first, room);
		const end = Math.min(first + room, this.total ?? Infinity);
		for (let i = first; i < end; i++)
			if (!this.lines.has(i))
				return attempt(() => this.read(first, room));
		return null;
	}

	fill(first, room) {
		const shown = [];
		for (let i = first; i < Math.min(first + room, this.total); i++) {
			const line = this.lines.get(i);
			shown.push(el("tr", { "aria-rowindex": i + 2 }, ...(line ? this.draw(line) : [el("td", {}, "…")])));
		}
		const focused = this.focusedLine();
		this.body.replaceChildren(...shown);
		if (focused !== null)
			(this.body.querySelector(`[aria-rowindex="${focused}"] a`) ?? this.place).focus({ preventScroll: true });
	}

	// The number of the line that has the focus, which ends with its element.
	focusedLine() {
		const { activeElement } = document;
		return this.body.contains(activeElement) ? activeElement.closest("tr").getAttribute("aria-rowindex") : null;
	}

	// Only the latest window is waited for.
	async read(first, room) {
		this.reading?.abort();
		this.reading = new AbortController();
		const { signal } = this.reading;
		const lines = await this.load(first, room, AbortSignal.any([signal, this.signal]));
		if (this.lines.size > KEPT)
			this.lines.clear();
		lines.forEach((line, i) => this.lines.set(first + i, line));
		if (this.first === first)
			this.fill(first, room);
	}
}
