// SPDX-License-Identifier: MIT
// A list of tasks with @azure/data-tables.
import { TableClient, odata } from "@azure/data-tables";

const tasks = TableClient.fromConnectionString(
	process.env.AZURE_STORAGE_CONNECTION_STRING,
	"Tasks",
	{ allowInsecureConnection: true },
);
await tasks.createTable();

// One row, then three in one transaction.
await tasks.createEntity({
	partitionKey: "home",
	rowKey: "1",
	Text: "Buy tea",
	Priority: 2,
	Due: new Date("2026-12-01T10:00:00Z"),
});
await tasks.submitTransaction([
	["create", { partitionKey: "work", rowKey: "1", Text: "Write the report", Priority: 1 }],
	["create", { partitionKey: "work", rowKey: "2", Text: "Call Smith & Sons", Priority: 3 }],
	["create", { partitionKey: "work", rowKey: "3", Text: "Learn 日本語", Priority: 2 }],
]);

console.log("What is urgent:");
const urgent = tasks.listEntities({ queryOptions: { filter: odata`Priority le ${2}` } });
for await (const task of urgent) console.log(`  ${task.partitionKey}/${task.rowKey}: ${task.Text}`);

// The etag lets a change through only if nobody else made one meanwhile.
const tea = await tasks.getEntity("home", "1");
await tasks.updateEntity({ ...tea, Done: true }, "Merge", { etag: tea.etag });
try {
	await tasks.updateEntity({ ...tea, Priority: 5 }, "Merge", { etag: tea.etag });
} catch (e) {
	console.log(`A change of what was read before: ${e.statusCode} ${e.details.odataError.code}`);
}

// A transaction is done as a whole or not at all.
try {
	await tasks.submitTransaction([
		["delete", { partitionKey: "work", rowKey: "2" }],
		["create", { partitionKey: "work", rowKey: "1" }],
	]);
} catch (e) {
	console.log(`A row that exists already: ${e.statusCode} ${e.code}`);
}

let count = 0;
for await (const page of tasks.listEntities().byPage({ maxPageSize: 3 })) count += page.length;
console.log(`${count} tasks in all`);
