// SPDX-License-Identifier: MIT
// Callers of the SDK at once, each with one call under way: bench_callers.mjs OPERATION CALLERS
// MILLISECONDS, with the connection string in AZURE_STORAGE_CONNECTION_STRING.  Prints the calls, the
// seconds and the rows as JSON.  "fill" makes 10,000 rows of the table in 100 partitions.
// tests/bench/figures_sdk.py runs it.
import { TableClient, odata } from "@azure/data-tables";

const [operation, callers, milliseconds] = process.argv.slice(2);
const connection = process.env.AZURE_STORAGE_CONNECTION_STRING;
const table = TableClient.fromConnectionString(connection, "Calls", {
	allowInsecureConnection: true,
});
const PARTITIONS = 100;
const ROWS = 100; // of each partition
const run = `${Date.now().toString(36)}-`; // keys that no earlier run has made
let made = 0;

const row = (partition, name, n) => ({
	partitionKey: `p${String(partition % PARTITIONS).padStart(3, "0")}`,
	rowKey: name,
	title: `An entry with the number ${n}`,
	rating: n % 1000,
	score: n / 4,
	active: n % 2 === 0,
	place: `${n % 10000} Long Street, Somewhere`,
	tag: `tag-${n % PARTITIONS}`,
	born: new Date(Date.UTC(2000 + (n % 25), 5, 15)),
});
// The row that "fill" made with this number.
const old = (n) => {
	const name = String(Math.floor(n / PARTITIONS) % ROWS).padStart(4, "0");
	return row(n, name, n % (PARTITIONS * ROWS));
};
const fresh = (n) => row(n, run + n, n);

async function count(filter) {
	let rows = 0;
	for await (const e of table.listEntities({ queryOptions: { filter } })) {
		rows += e.title !== undefined;
	}
	return rows;
}

// Each returns the number of rows that it has read or written.
const operations = {
	async get(n) {
		const wanted = old(n * 7919);
		const found = await table.getEntity(wanted.partitionKey, wanted.rowKey);
		return found.title === wanted.title ? 1 : 0;
	},
	async insert(n) {
		await table.createEntity(fresh(n));
		return 1;
	},
	async upsert(n) {
		await table.upsertEntity(old(n * 7919), "Replace");
		return 1;
	},
	async batch(n) {
		const rows = Array.from({ length: 100 }, (_, i) => row(n, `${run}${n}-${i}`, i));
		const done = await table.submitTransaction(rows.map((e) => ["create", e]));
		return done.subResponses.length;
	},
	partition: (n) => count(odata`PartitionKey eq ${old(n).partitionKey}`),
	property: (n) => count(odata`rating eq ${n % 1000}`),
};
const expected = { batch: 100, partition: ROWS, property: (PARTITIONS * ROWS) / 1000 };

async function fill() {
	await table.createTable();
	for (let p = 0; p < PARTITIONS; p++) {
		const rows = Array.from({ length: ROWS }, (_, i) => old(i * PARTITIONS + p));
		await table.submitTransaction(rows.map((e) => ["create", e]));
	}
}

async function caller(until, totals) {
	while (performance.now() < until) {
		const rows = await operations[operation](made++);
		if (rows !== (expected[operation] ?? 1)) throw new Error(`${operation}: ${rows} rows`);
		totals.calls++;
		totals.rows += rows;
	}
}

if (operation === "fill") {
	await fill();
} else {
	await Promise.all(Array.from({ length: Number(callers) }, () => operations[operation](made++)));
	const totals = { calls: 0, rows: 0 };
	const start = performance.now();
	const until = start + Number(milliseconds);
	await Promise.all(Array.from({ length: Number(callers) }, () => caller(until, totals)));
	totals.seconds = (performance.now() - start) / 1000;
	console.log(JSON.stringify(totals));
}
