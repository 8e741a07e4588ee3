// SPDX-License-Identifier: MIT
// A list of tasks with azure 0.7 of 2012, which speaks ATOM.
const azure = require("azure");

const service = azure.createTableService(process.env.AZURE_STORAGE_CONNECTION_STRING);
// 0.7.19 looks for this in another place when a transaction fails.
service._normalizeError = require("azure/lib/services/core/serviceclient")._normalizeError;

// The method as a promise of all that its callback is given behind the error.
function call(method, ...args) {
	return new Promise((resolve, reject) => {
		service[method](...args, (error, ...results) => (error ? reject(error) : resolve(results)));
	});
}

function task(partition, row, properties) {
	return { PartitionKey: partition, RowKey: row, ...properties };
}

async function main() {
	await call("createTable", "Tasks");

	// One row, then three in one transaction.
	const due = new Date("2026-12-01T10:00:00Z");
	await call(
		"insertEntity",
		"Tasks",
		task("home", "1", { Text: "Buy tea", Priority: 2, Due: due }),
	);
	service.beginBatch();
	service.insertEntity("Tasks", task("work", "1", { Text: "Write the report", Priority: 1 }));
	service.insertEntity("Tasks", task("work", "2", { Text: "Call Smith & Sons", Priority: 3 }));
	service.insertEntity("Tasks", task("work", "3", { Text: "Learn 日本語", Priority: 2 }));
	await call("commitBatch");

	console.log("What is urgent:");
	const urgent = azure.TableQuery.select().from("Tasks").where("Priority <= ?", 2);
	const [found] = await call("queryEntities", urgent);
	for (const t of found) console.log(`  ${t.PartitionKey}/${t.RowKey}: ${t.Text}`);

	// The etag, in _, lets a change through only if nobody else made one meanwhile.
	const [tea] = await call("queryEntity", "Tasks", "home", "1");
	await call("mergeEntity", "Tasks", { ...tea, Done: true }, { checkEtag: true });
	await call("mergeEntity", "Tasks", { ...tea, Priority: 5 }, { checkEtag: true }).catch((e) =>
		console.log(`A change of what was read before: ${e.statusCode} ${e.code}`),
	);

	// A transaction is done as a whole or not at all.
	service.beginBatch();
	service.deleteEntity("Tasks", task("work", "2"));
	service.insertEntity("Tasks", task("work", "1"));
	await call("commitBatch").catch((e) =>
		console.log(`A row that exists already: ${e.statusCode} ${e.code}`),
	);

	let count = 0,
		[page, more] = await call("queryEntities", azure.TableQuery.select().from("Tasks").top(3));
	for (count += page.length; more.hasNextPage(); count += page.length)
		[page, more] = await new Promise((resolve, reject) => {
			more.getNextPage((error, ...results) => (error ? reject(error) : resolve(results)));
		});
	console.log(`${count} tasks in all`);
}

main().catch((e) => {
	console.error(e);
	process.exit(1);
});
