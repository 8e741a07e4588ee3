// SPDX-License-Identifier: MIT
// A list of tasks with azure-storage 2.10.
const { promisify } = require("node:util");
const azure = require("azure-storage");
const { entityGenerator: edm } = azure.TableUtilities;

const service = azure.createTableService(process.env.AZURE_STORAGE_CONNECTION_STRING);
const call = (name, ...args) => promisify(service[name]).apply(service, args);

function task(partition, row, properties) {
	return { PartitionKey: edm.String(partition), RowKey: edm.String(row), ...properties };
}

async function main() {
	await call("createTable", "Tasks");

	// One row, then three in one transaction.
	await call(
		"insertEntity",
		"Tasks",
		task("home", "1", {
			Text: edm.String("Buy tea"),
			Priority: edm.Int32(2),
			Due: edm.DateTime(new Date("2026-12-01T10:00:00Z")),
		}),
	);
	const batch = new azure.TableBatch();
	batch.insertEntity(
		task("work", "1", { Text: edm.String("Write the report"), Priority: edm.Int32(1) }),
	);
	batch.insertEntity(
		task("work", "2", { Text: edm.String("Call Smith & Sons"), Priority: edm.Int32(3) }),
	);
	batch.insertEntity(
		task("work", "3", { Text: edm.String("Learn 日本語"), Priority: edm.Int32(2) }),
	);
	await call("executeBatch", "Tasks", batch);

	console.log("What is urgent:");
	const urgent = new azure.TableQuery().where("Priority <= ?", 2);
	for (const t of (await call("queryEntities", "Tasks", urgent, null)).entries)
		console.log(`  ${t.PartitionKey._}/${t.RowKey._}: ${t.Text._}`);

	// The etag, in .metadata, lets a change through only if nobody else made one meanwhile.
	const tea = await call("retrieveEntity", "Tasks", "home", "1");
	await call("mergeEntity", "Tasks", { ...tea, Done: edm.Boolean(true) });
	await call("mergeEntity", "Tasks", { ...tea, Priority: edm.Int32(5) }).catch((e) =>
		console.log(`A change of what was read before: ${e.statusCode} ${e.code}`),
	);

	// A transaction is done as a whole or not at all.
	const failing = new azure.TableBatch();
	failing.deleteEntity(task("work", "2"));
	failing.insertEntity(task("work", "1"));
	await call("executeBatch", "Tasks", failing).catch((e) =>
		console.log(`A row that exists already: ${e.statusCode} ${e.code}`),
	);

	let count = 0,
		token = null;
	do {
		const page = await call("queryEntities", "Tasks", new azure.TableQuery().top(3), token);
		count += page.entries.length;
		token = page.continuationToken;
	} while (token);
	console.log(`${count} tasks in all`);
}

main().catch((e) => {
	console.error(e);
	process.exit(1);
});
