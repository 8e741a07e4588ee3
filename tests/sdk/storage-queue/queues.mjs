// SPDX-License-Identifier: MIT
// @azure/storage-queue: queues, their metadata and lists, and the service.
import { all, assert, check, pages, refused } from "../check.mjs";
import { newQueue, queue, service } from "./client.mjs";

const names = (queues) => queues.map((q) => q.name);

await check("create and delete", async () => {
	const q = queue("jobs");
	assert.equal(await q.exists(), false);
	assert.equal((await q.createIfNotExists()).succeeded, true);
	assert.equal((await q.createIfNotExists()).succeeded, false);
	await q.create(); // equal metadata: nothing to refuse
	await refused(q.create({ metadata: { color: "red" } }), 409, "QueueAlreadyExists");
	assert.equal(await q.exists(), true);
	await service.createQueue("more");
	await service.deleteQueue("more");
	await refused(service.deleteQueue("more"), 404, "QueueNotFound");
	assert.equal((await queue("more").deleteIfExists()).succeeded, false);
	assert.equal((await q.deleteIfExists()).succeeded, true);
	await refused(q.getProperties(), 404, "QueueNotFound");
	await refused(q.sendMessage("x"), 404, "QueueNotFound");
	await refused(q.receiveMessages(), 404, "QueueNotFound");
	await refused(queue("Bad_Name").create(), 400, "InvalidResourceName");
	await refused(queue("ab").create(), 400, "OutOfRangeInput");
});

await check("metadata", async () => {
	const q = queue("meta");
	await q.create({ metadata: { color: "red & <blue>" } });
	assert.deepEqual((await q.getProperties()).metadata, { color: "red & <blue>" });
	await q.setMetadata({ one: "1", two: "2" });
	assert.deepEqual((await q.getProperties()).metadata, { one: "1", two: "2" });
	assert.equal((await q.getProperties()).approximateMessagesCount, 0);
	await q.sendMessage("x");
	assert.equal((await q.getProperties()).approximateMessagesCount, 1);
	await q.setMetadata();
	assert.deepEqual((await q.getProperties()).metadata, {});
	await refused(q.setMetadata({ "a-b": "x" }), 400, "InvalidMetadata");
	await q.delete();
});

await check("lists: prefix, pages, metadata", async () => {
	for (const name of ["apple-1", "apple-2", "apple-3", "pear"]) await newQueue(name);
	await queue("pear").setMetadata({ kind: "fruit" });
	assert.deepEqual(names(await all(service.listQueues())), [
		"apple-1",
		"apple-2",
		"apple-3",
		"pear",
	]);
	const apples = await pages(service.listQueues({ prefix: "apple" }), 2);
	assert.deepEqual(
		apples.map((page) => names(page.queueItems)),
		[["apple-1", "apple-2"], ["apple-3"]],
	);
	assert.equal(apples[1].continuationToken || "", "");
	const rest = service.listQueues();
	const after = await pages(rest, 10, apples[0].continuationToken);
	assert.deepEqual(names(after[0].queueItems), ["apple-3", "pear"]);
	const [pear] = await all(service.listQueues({ prefix: "p", includeMetadata: true }));
	assert.deepEqual(pear.metadata, { kind: "fruit" });
	assert.deepEqual(await all(service.listQueues({ prefix: "none" })), []);
});

await check("properties and statistics of the service", async () => {
	const rule = {
		allowedOrigins: "http://a.example",
		allowedMethods: "GET",
		allowedHeaders: "",
		exposedHeaders: "",
		maxAgeInSeconds: 60,
	};
	await service.setProperties({ cors: [rule] });
	const { cors, hourMetrics } = await service.getProperties();
	assert.deepEqual(JSON.parse(JSON.stringify(cors)), [rule]);
	assert.equal(hourMetrics.version, "1.0");
	await service.setProperties({ cors: [] });
	assert.equal((await service.getStatistics()).geoReplication.status, "live");
});
