// SPDX-License-Identifier: MIT
// azure-storage 2.10: its client of queues.
import azure from "azure-storage";
import { assert, check, connection, part, until } from "../check.mjs";
import { promises, refused } from "./client.mjs";

const s = promises(azure.createQueueService(connection));
const names = (list) => list.entries.map((q) => q.name);
const texts = (messages) => messages.map((m) => m.messageText);

await check("queues and their lists", async () => {
	await s.createQueue("apple-1");
	await s.createQueue("apple-1"); // equal metadata
	const other = s.createQueue("apple-1", { metadata: { a: "1" } });
	await refused(other, 409, "QueueAlreadyExists");
	assert.equal((await s.createQueueIfNotExists("apple-1")).created, false);
	assert.equal((await s.createQueueIfNotExists("apple-2")).created, true);
	await s.createQueue("pear", { metadata: { kind: "fruit" } });
	assert.equal((await s.doesQueueExist("pear")).exists, true);
	assert.equal((await s.doesQueueExist("none")).exists, false);
	assert.deepEqual(names(await s.listQueuesSegmented(null)), ["apple-1", "apple-2", "pear"]);
	const apples = await s.listQueuesSegmentedWithPrefix("apple", null, { maxResults: 1 });
	assert.deepEqual(names(apples), ["apple-1"]);
	const rest = await s.listQueuesSegmentedWithPrefix("apple", apples.continuationToken);
	assert.deepEqual(names(rest), ["apple-2"]);
	const [pear] = (await s.listQueuesSegmentedWithPrefix("p", null, { include: "metadata" }))
		.entries;
	assert.deepEqual(pear.metadata, { kind: "fruit" });
	for (const name of ["apple-1", "apple-2", "pear"]) await s.deleteQueue(name);
	await refused(s.deleteQueue("pear"), 404, "QueueNotFound");
	assert.equal(await s.deleteQueueIfExists("pear"), false);
});

await check("metadata", async () => {
	await s.createQueue("jobs", { metadata: { one: "1" } });
	assert.deepEqual((await s.getQueueMetadata("jobs")).metadata, { one: "1" });
	await s.setQueueMetadata("jobs", { two: "2" });
	const q = await s.getQueueMetadata("jobs");
	assert.deepEqual(q.metadata, { two: "2" });
	assert.equal(Number(q.approximateMessageCount), 0);
});

await check("send, peek, receive, update, delete, clear", async () => {
	const sent = await s.createMessage("jobs", "a <b> & ü");
	assert.ok(sent.messageId && sent.popReceipt);
	const [seen] = await s.peekMessages("jobs", { numOfMessages: 32 });
	assert.equal(seen.messageText, "a <b> & ü");
	const [taken] = await s.getMessages("jobs", { visibilityTimeout: 600 });
	assert.deepEqual([taken.messageId, taken.messageText], [sent.messageId, "a <b> & ü"]);
	assert.equal(Number(taken.dequeueCount), 1);
	assert.deepEqual(await s.getMessages("jobs"), []);
	const { messageId, popReceipt } = taken;
	await s.updateMessage("jobs", messageId, popReceipt, 0, { messageText: "new" });
	await refused(s.deleteMessage("jobs", messageId, popReceipt), 404, "MessageNotFound");
	const [again] = await s.getMessages("jobs");
	assert.deepEqual([again.messageText, Number(again.dequeueCount)], ["new", 2]);
	await s.deleteMessage("jobs", again.messageId, again.popReceipt);
	for (const text of ["1", "2", "3"]) await s.createMessage("jobs", text);
	assert.deepEqual(texts(await s.getMessages("jobs", { numOfMessages: 2 })), ["1", "2"]);
	await s.clearMessages("jobs");
	assert.equal(Number((await s.getQueueMetadata("jobs")).approximateMessageCount), 0);
	await refused(s.createMessage("none", "x"), 404, "QueueNotFound");
});

await check("one message", async () => {
	await s.createMessage("jobs", "one");
	assert.equal((await s.peekMessage("jobs")).messageText, "one");
	const { messageText, messageId, popReceipt } = await s.getMessage("jobs");
	assert.equal(messageText, "one");
	await s.deleteMessage("jobs", messageId, popReceipt);
});

await check("properties and statistics of the service", async () => {
	const rule = {
		AllowedOrigins: ["http://a.example"],
		AllowedMethods: ["GET"],
		AllowedHeaders: [],
		ExposedHeaders: [],
		MaxAgeInSeconds: 60,
	};
	await s.setServiceProperties({ Cors: { CorsRule: [rule] } });
	const { Cors, HourMetrics } = await s.getServiceProperties();
	assert.deepEqual(Cors.CorsRule[0].AllowedOrigins, ["http://a.example"]);
	assert.equal(HourMetrics.Version, "1.0");
	await s.setServiceProperties({ Cors: {} });
	assert.equal((await s.getServiceStats()).GeoReplication.Status, "live");
});

await check("visibility and expiry", async () => {
	await s.createMessage("jobs", "late", { visibilityTimeout: 1 });
	await until(async () => texts(await s.peekMessages("jobs"))[0] === "late");
	const [first] = await s.getMessages("jobs", { visibilityTimeout: 1 });
	let second;
	await until(async () => ([second] = await s.getMessages("jobs")).length);
	assert.equal(second.messageId, first.messageId);
	await s.clearMessages("jobs");
	await s.createMessage("jobs", "short", { messageTimeToLive: 1 });
	await until(async () => (await s.peekMessages("jobs")).length === 0);
});

await check("a SAS, by its own terms and by a stored policy", async () => {
	const end = new Date(Date.now() + 3600e3);
	const by = (token) => promises(azure.createQueueServiceWithSas(part("QueueEndpoint"), token));
	const own = s.generateSharedAccessSignature("jobs", {
		AccessPolicy: { Permissions: "ap", Expiry: end },
	});
	assert.ok(s.getUrl("jobs", own).startsWith(`${part("QueueEndpoint")}/jobs?`));
	await by(own).createMessage("jobs", "by a token");
	assert.deepEqual(texts(await by(own).getMessages("jobs")), ["by a token"]);
	await refused(by(own).peekMessages("jobs"), 403, "AuthorizationPermissionMismatch");
	await s.setQueueAcl("jobs", { readers: { Permissions: "r", Expiry: end } });
	const { signedIdentifiers } = await s.getQueueAcl("jobs");
	assert.equal(signedIdentifiers.readers.Permissions, "r");
	const policy = s.generateSharedAccessSignature("jobs", { Id: "readers" });
	await by(policy).peekMessages("jobs");
	await refused(by(policy).createMessage("jobs", "x"), 403, "AuthorizationPermissionMismatch");
});
