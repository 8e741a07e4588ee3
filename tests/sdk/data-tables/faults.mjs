// SPDX-License-Identifier: MIT
// @azure/data-tables with its retries, while requests fail on order.  A rule of the server
// (test_sdk_faults.py) names each table.
import { TableClient } from "@azure/data-tables";
import { all, assert, check, credential, endpoint, refused, rowKeys, table, until } from "../check.mjs";

const patient = (name) =>
	new TableClient(endpoint, name, credential, {
		allowInsecureConnection: true,
		retryOptions: { maxRetries: 5, retryDelayInMs: 10, maxRetryDelayInMs: 50 },
	});
const entity = { partitionKey: "p", rowKey: "1" };
const keys = async (t) => rowKeys(await all(t.listEntities()));

await check("ServerBusy is tried again", async () => {
	const t = patient("Busy");
	await t.createTable();
	await t.createEntity(entity);
	assert.deepEqual(await keys(t), ["1"]);
});

await check("a lost answer: the next try finds the entity", async () => {
	const t = patient("Lost");
	await t.createTable();
	await refused(t.createEntity(entity), 409, "EntityAlreadyExists");
	assert.deepEqual(await keys(t), ["1"]);
});

await check("a closed connection is tried again", async () => {
	const t = patient("Closed");
	await t.createTable();
	await t.upsertEntity(entity, "Replace");
	assert.deepEqual(await keys(t), ["1"]);
});

await check("a time-out is tried again", async () => {
	const t = patient("Timeout");
	await t.createTable();
	await t.createEntity(entity);
	assert.deepEqual(await keys(t), ["1"]);
});

await check("a table that is being deleted is the program's affair", async () => {
	const t = patient("Deleted");
	await refused(t.createTable(), 409, "TableBeingDeleted");
	await until(() => t.createTable().then(() => true, () => false));
	await t.createEntity(entity);
	assert.deepEqual(await keys(t), ["1"]);
});

await check("without retries the fault is seen", async () => {
	await patient("Seen").createTable();
	await refused(table("Seen").createEntity(entity), 503, "ServerBusy");
	await refused(table("Seen").createEntity(entity), 500, "OperationTimedOut");
	await refused(table("Seen").createEntity(entity), 500, "InternalError");
	assert.deepEqual(await keys(table("Seen")), ["1"]);
});
