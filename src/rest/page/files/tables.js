// SPDX-License-Identifier: MIT
// The view of tables: which there are, and the rows of one.
import * as rest from "/rest.js";
import { nameForm } from "/name_form.js";
import { showRows } from "/rows.js";

export const id = "tables", title = "Tables";

export async function list(account, token) {
	const { values, next } = await rest.tables(account, token);
	return { values: values.map((table) => table.TableName), next };
}

export function show(main, route) {
	if (route.name !== "")
		return showRows(main, route);
	main.append(nameForm("Choose a table, or make one.", "New table", (name) => rest.createTable(route.account, name), route));
	return null;
}
