// SPDX-License-Identifier: MIT
import * as rest from "/rest.js";
import { Grid } from "/grid.js";

const at = (id) => document.getElementById(id);
const state = { table: null, nextTables: null, nextRows: null, asked: 0 };
const grid = new Grid(at("head"), at("rows"), (partition) => {
	at("filter").value = `PartitionKey eq '${partition.replaceAll("'", "''")}'`;
	void showRows();
});

// Runs an action and shows its error, if any, in the status line.
async function attempt(action) {
	try {
		at("status").textContent = "";
		await action();
	} catch (error) {
		at("status").textContent = error.message;
	}
}

function caption() {
	const n = grid.count, more = state.nextRows ? " so far" : "";
	at("caption").textContent = `${state.table}: ${n} ${n === 1 ? "row" : "rows"}${more}`;
	at("more-rows").hidden = state.nextRows === null;
}

async function addRows() {
	const ask = ++state.asked;
	const found = await rest.rows(
		at("account").value, state.table, at("filter").value.trim(), state.nextRows);
	if (ask !== state.asked) // a later choice replaced this one
		return;
	state.nextRows = found.next;
	grid.add(found.values);
	caption();
}

function showRows() {
	if (state.table === null)
		return Promise.resolve();
	state.nextRows = null;
	grid.clear();
	at("caption").textContent = state.table;
	at("more-rows").hidden = true;
	return attempt(addRows);
}

function choose(button) {
	for (const other of at("tables").querySelectorAll("[aria-current]"))
		other.removeAttribute("aria-current");
	button.setAttribute("aria-current", "true");
	state.table = button.textContent;
	at("filter").value = "";
	return showRows();
}

function addTable({ TableName }) {
	const item = document.createElement("li"), button = document.createElement("button");
	button.type = "button";
	button.textContent = TableName;
	button.addEventListener("click", () => choose(button));
	item.append(button);
	at("tables").append(item);
}

async function addTables() {
	const account = at("account").value;
	const found = await rest.tables(account, state.nextTables);
	if (account !== at("account").value)
		return;
	found.values.forEach(addTable);
	state.nextTables = found.next;
	at("more-tables").hidden = found.next === null;
}

function showTables() {
	state.asked++;
	Object.assign(state, { table: null, nextTables: null, nextRows: null });
	at("tables").replaceChildren();
	at("more-rows").hidden = true;
	grid.clear();
	at("caption").textContent = "Choose a table.";
	return attempt(addTables);
}

async function start() {
	const names = await rest.accounts();
	at("account").replaceChildren(...names.map((name) => new Option(name, name)));
	if (names.length > 0)
		await showTables();
	else
		at("status").textContent = "There is no account yet.";
}

at("account").addEventListener("change", showTables);
at("ask").addEventListener("submit", (event) => {
	event.preventDefault();
	void showRows();
});
at("more-tables").addEventListener("click", () => attempt(addTables));
at("more-rows").addEventListener("click", () => attempt(addRows));
void attempt(start);
