// SPDX-License-Identifier: MIT
// A chart of uPlot in the page's colours.  It follows the width of its place and the dark mode.  For
// screen readers it is one picture with a text; the page has the figures in a table.
import uPlot from "/uplot/uPlot.esm.js";

const HEIGHT = 220;
const AXIS_WIDTH = 76;
const dark = matchMedia("(prefers-color-scheme: dark)");

export function colour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(more) {
	const grid = { stroke: () => colour("--line"), width: 1 };
	return { stroke: () => colour("--dim"), grid, ticks: grid, ...more };
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300]; // between marks of a time axis
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

// Lines are told apart by dashes too.
function line({ text, ...more }, i) {
	// Their colours in the legend are those of live.css.
	return { stroke: () => colour(`--line-${i % 6 + 1}`), width: 2, dash: i === 0 ? [] : [10, 2 + 2 * i],
		points: { show: false }, value: (_, n) => typeof n === "number" ? text(n) : "–", ...more };
}

export class Chart {
	// series: [{ label, text }]; text writes a value, that of the chart those of the axis.  axis, x: uPlot's
	// options of the axes; x is time, or has a label and a text of its own.  More options are uPlot's, in
	// place of those here.
	constructor(place, { series, text, axis: more, x: { label = "Time", text: xText = clock, ...x } = {}, ...options }) {
		const written = (write) => (_, ticks) => ticks.map((n) => n === null ? "" : write(n));
		this.place = place;
		this.plot = new uPlot({
			width: this.width, height: HEIGHT,
			axes: [axis({ values: written(xText), space: 80, incrs: SECONDS, ...x }),
				axis({ values: written(text), size: AXIS_WIDTH, ...more })],
			series: [{ label, value: (_, n) => n === null ? "–" : xText(n) }, ...series.map(line)],
			scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
			cursor: { drag: { x: false, y: false } },
			...options,
		}, [[], ...series.map(() => [])], place);
		this.picture = this.plot.root.querySelector(".u-wrap");
		this.picture.setAttribute("role", "img");
		this.resized = new ResizeObserver(() => this.plot.setSize({ width: this.width, height: HEIGHT }));
		this.resized.observe(place);
		this.recolour = () => this.plot.redraw(false, true);
		dark.addEventListener("change", this.recolour);
	}

	get width() {
		const { paddingLeft, paddingRight } = getComputedStyle(this.place);
		return Math.max(this.place.clientWidth - parseFloat(paddingLeft || 0) - parseFloat(paddingRight || 0), 100);
	}

	// columns: x and the values of each series.  text: what the picture shows.
	show(columns, text) {
		this.plot.setData(columns);
		if (this.plot.cursor.left < 0) // nobody points at a value
			this.plot.setLegend({ idx: columns[0].length - 1 });
		this.picture.setAttribute("aria-label", text);
	}

	end() {
		dark.removeEventListener("change", this.recolour);
		this.resized.disconnect();
		this.plot.destroy();
	}
}

// For series: each value is a bar from its x to the next one.
export const bars = uPlot.paths.bars({ size: [1, Infinity], align: 1, gap: 1 });

// For hooks: draws a horizontal line at a value, with its text.
export function drawLimit(plot, value, text) {
	const y = Math.round(plot.valToPos(value, "y", true)), { left, width } = plot.bbox, { ctx } = plot;
	ctx.save();
	ctx.strokeStyle = ctx.fillStyle = colour("--hot");
	ctx.lineWidth = 2 * devicePixelRatio;
	ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
	ctx.beginPath();
	ctx.moveTo(left, y);
	ctx.lineTo(left + width, y);
	ctx.stroke();
	ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
	ctx.textAlign = "left";
	ctx.fillText(text, left + 6 * devicePixelRatio, y - 5 * devicePixelRatio);
	ctx.restore();
}
