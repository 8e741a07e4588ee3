// SPDX-License-Identifier: MIT
// The view of the partitions of a table: a million of them, of which only those in the window are read.
import { attempt, el } from "/dom.js";
import { KeySpace } from "/key_space.js";
import { addressOf, partitionFilter } from "/route.js";
import { list as listTables } from "/tables.js";
import { VirtualList } from "/virtual_list.js";

export const id = "partitions", title = "Partitions";
export const list = listTables;

const nameOf = (key) => key === "" ? "(empty)" : key;

const countOf = (n) => `${n.toLocaleString("en")} ${n === 1 ? "partition" : "partitions"}`;

function draw(account, table, { partition_key: key, items }) {
	const href = addressOf(account, "tables", table, partitionFilter(key));
	return [el("td", { title: key }, el("a", { href }, nameOf(key))), el("td", {}, items.toLocaleString("en"))];
}

function keyForm(goTo) {
	const key = el("input", { id: "partition-key", autocomplete: "off", spellcheck: "false" });
	return el("form", { submit: (event) => {
		event.preventDefault();
		void attempt(() => goTo(key.value));
	} }, el("label", { for: "partition-key" }, "Go to key"), key, el("button", { type: "submit" }, "Go"));
}

function showPartitions(main, { account, name, signal }) {
	const space = new KeySpace(account, name);
	const count = el("p", { class: "hint" });
	const lines = new VirtualList({
		label: `Partitions of ${name}`, columns: ["PartitionKey", "Items"], signal,
		load: read, draw: (partition) => draw(account, name, partition),
	});
	async function read(index, top, end) {
		const found = await space.at(index, top, end);
		count.textContent = countOf(space.total);
		lines.setTotal(space.total);
		return found;
	}
	const form = keyForm(async (key) => lines.goTo(await space.positionOf(key, signal)));
	main.append(form, lines.place, count);
	return lines.show();
}

export function show(main, route) {
	if (route.name !== "")
		return showPartitions(main, route);
	main.append(el("p", { class: "hint" }, "Choose a table."));
	return null;
}
