// SPDX-License-Identifier: MIT
// @azure/storage-queue: messages, what happens to them with time, and refusals.
import { assert, check, refused, until } from "../check.mjs";
import { newQueue, peek, receive, texts } from "./client.mjs";

const q = await newQueue("messages");
const near = (date, seconds) => Math.abs(date - Date.now() - seconds * 1000) < 60e3;
const WEEK = 7 * 24 * 3600;

await check("send, peek, receive, delete", async () => {
	const sent = await q.sendMessage("first");
	assert.ok(near(sent.insertedOn, 0) && near(sent.nextVisibleOn, 0));
	assert.ok(near(sent.expiresOn, WEEK), String(sent.expiresOn));
	const [seen] = await peek(q);
	assert.deepEqual([seen.messageText, seen.dequeueCount], ["first", 0]);
	assert.equal(seen.messageId, sent.messageId);
	const [taken, ...more] = await receive(q, { numberOfMessages: 32 });
	assert.deepEqual(more, []);
	assert.deepEqual([taken.messageText, taken.dequeueCount], ["first", 1]);
	assert.equal(taken.messageId, sent.messageId);
	assert.deepEqual(taken.insertedOn, sent.insertedOn);
	assert.ok(near(taken.nextVisibleOn, 30), String(taken.nextVisibleOn));
	assert.deepEqual(await receive(q), []);
	assert.deepEqual(await peek(q), []);
	await q.deleteMessage(taken.messageId, taken.popReceipt);
	await refused(q.deleteMessage(taken.messageId, taken.popReceipt), 404, "MessageNotFound");
	assert.equal((await q.getProperties()).approximateMessagesCount, 0);
});

await check("texts come back as they were sent", async () => {
	for (const text of ["", " ", "<a>&amp;</a>", "ü日本語😀", "x".repeat(65536)]) {
		await q.sendMessage(text);
		const [m] = await receive(q);
		assert.equal(m.messageText, text);
		await q.deleteMessage(m.messageId, m.popReceipt);
	}
	await refused(q.sendMessage("x".repeat(65537)), 400, "MessageTooLarge");
});

await check("several, in their order", async () => {
	for (let i = 0; i < 5; i++) await q.sendMessage(`${i}`);
	assert.deepEqual(texts(await peek(q, { numberOfMessages: 2 })), ["0", "1"]);
	assert.deepEqual(texts(await receive(q, { numberOfMessages: 3 })), ["0", "1", "2"]);
	assert.deepEqual(texts(await peek(q, { numberOfMessages: 32 })), ["3", "4"]);
	assert.equal((await q.getProperties()).approximateMessagesCount, 5);
	await q.clearMessages();
	assert.equal((await q.getProperties()).approximateMessagesCount, 0);
});

await check("update: text, time, receipt", async () => {
	const sent = await q.sendMessage("old");
	const [taken] = await receive(q, { visibilityTimeout: 600 });
	const later = await q.updateMessage(taken.messageId, taken.popReceipt, "new", 3600);
	assert.ok(near(later.nextVisibleOn, 3600));
	assert.notEqual(later.popReceipt, taken.popReceipt);
	const stale = q.updateMessage(taken.messageId, taken.popReceipt, "late", 0);
	await refused(stale, 404, "MessageNotFound");
	await refused(q.deleteMessage(sent.messageId, sent.popReceipt), 404, "MessageNotFound");
	assert.deepEqual(await receive(q), []);
	await q.updateMessage(taken.messageId, later.popReceipt, undefined, 0);
	const [again] = await receive(q);
	assert.deepEqual([again.messageText, again.dequeueCount], ["new", 2]);
	await q.deleteMessage(again.messageId, again.popReceipt);
});

await check("a message comes back when its time is over", async () => {
	await q.sendMessage("again");
	const [first] = await receive(q, { visibilityTimeout: 1 });
	let second;
	await until(async () => ([second] = await receive(q)).length);
	assert.deepEqual([second.messageId, second.dequeueCount], [first.messageId, 2]);
	await refused(q.deleteMessage(first.messageId, first.popReceipt), 404, "MessageNotFound");
	await q.deleteMessage(second.messageId, second.popReceipt);
});

await check("a message may be visible later, and expires", async () => {
	const late = await q.sendMessage("late", { visibilityTimeout: 1 });
	assert.ok(late.nextVisibleOn >= late.insertedOn);
	await until(async () => texts(await peek(q))[0] === "late");
	await q.clearMessages();
	const short = await q.sendMessage("short", { messageTimeToLive: 1 });
	await until(async () => (await peek(q)).length === 0);
	await refused(q.deleteMessage(short.messageId, short.popReceipt), 404, "MessageNotFound");
	const ever = await q.sendMessage("ever", { messageTimeToLive: -1 });
	assert.ok(ever.expiresOn.getUTCFullYear() === 9999, String(ever.expiresOn));
	await q.clearMessages();
});

await check("values out of range", async () => {
	const out = (promise) => refused(promise, 400, "OutOfRangeQueryParameterValue");
	await out(q.receiveMessages({ numberOfMessages: 33 }));
	await out(q.receiveMessages({ visibilityTimeout: WEEK + 1 }));
	await out(q.peekMessages({ numberOfMessages: 33 }));
	await out(q.sendMessage("x", { messageTimeToLive: -2 }));
	await out(q.sendMessage("x", { messageTimeToLive: 10, visibilityTimeout: 10 }));
	assert.deepEqual(await peek(q), []);
});
