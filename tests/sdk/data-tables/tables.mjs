// SPDX-License-Identifier: MIT
// @azure/data-tables: tables.
import { TableClient, TableServiceClient, odata } from "@azure/data-tables";
import {
	all,
	assert,
	check,
	connection,
	newTable,
	options,
	pages,
	refused,
	service,
	table,
} from "../check.mjs";

const names = async (iterator) => (await all(iterator)).map((t) => t.name);

await check("no tables at first", async () => {
	assert.deepEqual(await names(service().listTables()), []);
});

await check("create, list, delete", async () => {
	let status;
	await service().createTable("First", {
		onResponse: (r) => {
			status = r.status;
		},
	});
	assert.ok(status === 201 || status === 204, `status ${status}`);
	assert.deepEqual(await names(service().listTables()), ["First"]);
	await service().deleteTable("First", {
		onResponse: (r) => {
			status = r.status;
		},
	});
	assert.equal(status, 204);
	assert.deepEqual(await names(service().listTables()), []);
});

await check(
	"creating a table again is TableAlreadyExists, which the library forgives",
	async () => {
		const seen = [];
		const note = { onResponse: (r) => seen.push([r.status, r.parsedBody?.odataError?.code]) };
		const t = await newTable("Again");
		await t.createEntity({ partitionKey: "p", rowKey: "r" });
		await t.createTable(note);
		assert.equal(seen.at(-1)[0], 409);
		await table("aGAIN").createTable(note); // names differ by more than their case
		assert.equal(seen.at(-1)[0], 409);
		assert.equal((await all(t.listEntities())).length, 1);
		await t.deleteTable();
	},
);

await check(
	"deleting a missing table is ResourceNotFound, which the library forgives",
	async () => {
		let status;
		await service().deleteTable("Missing", {
			onResponse: (r) => {
				status = r.status;
			},
		});
		assert.equal(status, 404);
	},
);

await check("a table can be created again after its deletion, and is empty", async () => {
	const t = await newTable("Phoenix");
	await t.createEntity({ partitionKey: "p", rowKey: "r" });
	await t.deleteTable();
	await refused(t.getEntity("p", "r"), 404, "TableNotFound");
	await t.createTable();
	assert.deepEqual(await all(t.listEntities()), []);
	await t.deleteTable();
});

await check("a name is found in any case, and listed as it was given", async () => {
	const t = await newTable("CamelCase");
	await t.createEntity({ partitionKey: "p", rowKey: "r", N: 1 });
	assert.equal((await table("camelcase").getEntity("p", "r")).N, 1);
	assert.deepEqual(await names(service().listTables()), ["CamelCase"]);
	await t.deleteTable();
});

await check("bad names are refused with their code", async () => {
	await refused(service().createTable("ab"), 400, "OutOfRangeInput");
	await refused(service().createTable("a".repeat(64)), 400, "OutOfRangeInput");
	await refused(service().createTable("1abc"), 400, "InvalidResourceName");
	await refused(service().createTable("with-dash"), 400, "InvalidResourceName");
	await refused(service().createTable("tables"), 400, "InvalidInput");
	assert.deepEqual(await names(service().listTables()), []);
});

await check("list with a filter, and by pages", async () => {
	for (const name of ["Apples", "Bananas", "Cherries", "Dates", "Elderberries", "Figs", "Grapes"])
		await service().createTable(name);
	const where = (filter) => names(service().listTables({ queryOptions: { filter } }));
	assert.deepEqual(await where(odata`TableName eq ${"Dates"}`), ["Dates"]);
	assert.deepEqual(await where(odata`TableName ge ${"B"} and TableName lt ${"D"}`), [
		"Bananas",
		"Cherries",
	]);
	assert.deepEqual(await where("TableName ne 'Apples' and not (TableName gt 'C')"), ["Bananas"]);
	const got = await pages(service().listTables(), 3);
	assert.deepEqual(
		got.map((p) => p.length),
		[3, 3, 1],
	);
	assert.deepEqual(
		got.flat().map((t) => t.name),
		await names(service().listTables()),
	);
	const rest = await pages(service().listTables(), 3, got[0].continuationToken);
	assert.deepEqual(
		rest.flat().map((t) => t.name),
		["Dates", "Elderberries", "Figs", "Grapes"],
	);
	for (const name of await names(service().listTables())) await service().deleteTable(name);
});

await check("clients from the connection string", async () => {
	const t = TableClient.fromConnectionString(connection, "ByString", options);
	await t.createTable();
	const s = TableServiceClient.fromConnectionString(connection, options);
	assert.deepEqual(await names(s.listTables()), ["ByString"]);
	await t.deleteTable();
});
