// SPDX-License-Identifier: MIT
// @azure/storage-queue with its retries, while requests fail on order.  A rule of the server
// (test_sdk_faults.py) names each queue.
import { QueueClient } from "@azure/storage-queue";
import { assert, check, connection } from "../check.mjs";

const patient = (name) =>
	new QueueClient(connection, name, { retryOptions: { maxTries: 5, retryDelayInMs: 10, maxRetryDelayInMs: 50 } });
const texts = async (q) =>
	(await q.receiveMessages({ numberOfMessages: 32 })).receivedMessageItems.map((m) => m.messageText);

await check("ServerBusy is tried again", async () => {
	const q = patient("busy");
	await q.create();
	await q.sendMessage("one");
	assert.deepEqual(await texts(q), ["one"]);
});

await check("a lost answer: the message is there twice", async () => {
	const q = patient("lost");
	await q.create();
	await q.sendMessage("one");
	assert.deepEqual(await texts(q), ["one", "one"]);
});

await check("a time-out is tried again", async () => {
	const q = patient("timeout");
	await q.create();
	await q.sendMessage("one");
	assert.deepEqual(await texts(q), ["one"]);
});
