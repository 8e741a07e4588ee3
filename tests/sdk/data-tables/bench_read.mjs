// SPDX-License-Identifier: MIT
// Reads a table as a program with the SDK does: bench_read.mjs list [FILTER] | get N, with the
// connection string in AZURE_STORAGE_CONNECTION_STRING.  tests/bench/figures_cloud.py runs it, and reads the same by files.
import { TableClient } from "@azure/data-tables";

const [what, count] = process.argv.slice(2);
const connection = process.env.AZURE_STORAGE_CONNECTION_STRING;
const table = TableClient.fromConnectionString(connection, "Posts", { allowInsecureConnection: true });
let rows = 0;
if (what === "list") {
	const all = table.listEntities({ queryOptions: { filter: count } });
	for await (const row of all) rows += JSON.stringify(row) !== "";
} else {
	for (let i = 0; i < Number(count); i++) {
		const row = await table.getEntity(`p${String(i).padStart(4, "0")}`, "0000");
		rows += JSON.stringify(row) !== "";
	}
}
console.log(rows);
