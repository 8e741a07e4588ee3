// SPDX-License-Identifier: MIT
// Versions of a row side by side, where they differ.
import { el, headOf } from "/dom.js";
import { ownNames, sameValue, shortName, textOf, typeOf, valueOf } from "/types.js";

function cellOf(row, name, base) {
	const cell = el("td");
	if (row === null)
		cell.append(el("em", {}, "no such row"));
	else if (valueOf(row, name) === undefined)
		cell.append(el("em", {}, "none"));
	else
		cell.append(textOf(valueOf(row, name)), el("small", {}, " " + shortName(typeOf(row, name))));
	return base && !sameValue(row ?? {}, base, name) ? el("td", {}, el("mark", {}, ...cell.childNodes)) : cell;
}

// versions: [title, row or null], the first is the one that the others were made from.  Values that differ
// from it are marked.
export function compare(versions) {
	const rows = versions.map(([, row]) => row ?? {}), base = rows[0];
	const all = new Set(rows.flatMap(ownNames));
	const differing = [...all].filter((name) => rows.some((row) => !sameValue(row, base, name)));
	const lines = differing.map((name) => el("tr", {}, el("th", { scope: "row" }, name),
		...versions.map(([, row], i) => cellOf(row, name, i > 0 ? base : null))));
	return el("table", { class: "compare" }, headOf("Property", ...versions.map(([title]) => title)), el("tbody", {}, ...lines));
}
