// SPDX-License-Identifier: MIT
// The page ranges of a blob as a strip, with the same as a table.
import { el, headOf, scrolled } from "/dom.js";
import { sizeText } from "/figures.js";

const SVG = "http://www.w3.org/2000/svg", WIDTH = 1000;

function svg(tag, attributes, ...children) {
	const made = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

// A small range is drawn as wide as one can see.
function rectOf({ start, end }, size) {
	return svg("rect", { x: start / size * WIDTH, width: Math.max((end - start) / size * WIDTH, 1), y: 0, height: 40 });
}

export function drawRanges(name, size, ranges) {
	const used = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
	const n = `${ranges.length} ${ranges.length === 1 ? "range" : "ranges"}`;
	const text = `${name}: ${n} with ${sizeText(used)} of ${sizeText(size)}`;
	const strip = svg("svg", { viewBox: `0 0 ${WIDTH} 40`, preserveAspectRatio: "none", role: "img", "aria-label": text,
		class: "ranges" }, ...ranges.map((range) => rectOf(range, size)));
	const rows = ranges.map(({ start, end }) => el("tr", {},
		...[start, end, end - start].map((value) => el("td", { class: "number" }, String(value)))));
	return el("section", { class: "change-set", "aria-label": "Page ranges" }, el("p", {}, text), strip,
		el("details", {}, el("summary", {}, "As a table"),
			scrolled("Ranges", headOf("From byte", "To byte", "Bytes"), el("tbody", {}, ...rows))));
}
