// SPDX-License-Identifier: MIT
// The three libraries of today with a TokenCredential, as @azure/identity has them, over TLS.
// test_sdk_tokens.py signs the tokens: ROWFS_TOKENS has them by name.
import { TableClient, TableServiceClient } from "@azure/data-tables";
import { BlobServiceClient, ContainerClient, ContainerSASPermissions, generateBlobSASQueryParameters } from "@azure/storage-blob";
import { generateQueueSASQueryParameters, QueueClient, QueueSASPermissions, QueueServiceClient } from "@azure/storage-queue";
import { account, all, assert, check, endpoint, part, refused } from "./check.mjs";

const tokens = JSON.parse(process.env.ROWFS_TOKENS);
const DENIED = "AuthorizationPermissionMismatch";
// The scopes that the library asked for are kept.
const asked = [];
const credential = (name) => ({
	getToken: async (scopes) => {
		asked.push(String(scopes));
		return { token: tokens[name], expiresOnTimestamp: Date.now() + 3600e3 };
	},
});
const tables = { retryOptions: { maxRetries: 0 } };
const others = { retryOptions: { maxTries: 1 } };
const queues = (name) => new QueueServiceClient(part("QueueEndpoint"), credential(name), others);
const blobs = (name) => new BlobServiceClient(part("BlobEndpoint"), credential(name), others);
const table = (name) => new TableClient(endpoint, "Blogs", credential(name), tables);

await check("tables: a contributor changes, a reader reads", async () => {
	await table("contributor").createTable();
	await table("contributor").createEntity({ partitionKey: "p", rowKey: "1", text: "hi" });
	await table("contributor").submitTransaction([
		["create", { partitionKey: "p", rowKey: "2" }],
		["delete", { partitionKey: "p", rowKey: "1" }],
	]);
	const rows = await all(table("reader").listEntities());
	assert.deepEqual(rows.map((r) => r.rowKey), ["2"]);
	await refused(table("reader").createEntity({ partitionKey: "p", rowKey: "3" }), 403, DENIED);
	await refused(table("reader").deleteEntity("p", "2"), 403, DENIED);
	assert.deepEqual([...new Set(asked)], ["https://storage.azure.com/.default"]);
});

await check("tables: a token of another account, an expired and a forged one", async () => {
	const service = (name) => new TableServiceClient(endpoint, credential(name), tables);
	await refused(service("elsewhere").createTable("More"), 403, DENIED);
	await refused(service("expired").createTable("More"), 401, "InvalidAuthenticationInfo");
	await refused(service("forged").createTable("More"), 401, "InvalidAuthenticationInfo");
	assert.ok(account);
});

await check("queues: a sender sends, a processor takes, a reader peeks", async () => {
	await queues("contributor").createQueue("jobs");
	const jobs = (name) => queues(name).getQueueClient("jobs");
	await jobs("sender").sendMessage("one");
	await refused(jobs("sender").receiveMessages(), 403, DENIED);
	assert.equal((await jobs("reader").peekMessages()).peekedMessageItems[0].messageText, "one");
	await refused(jobs("reader").clearMessages(), 403, DENIED);
	const [one] = (await jobs("processor").receiveMessages()).receivedMessageItems;
	await jobs("processor").deleteMessage(one.messageId, one.popReceipt);
	await refused(jobs("processor").sendMessage("two"), 403, DENIED);
	await refused(jobs("forged").sendMessage("two"), 401, "InvalidAuthenticationInfo");
});

await check("blobs: a contributor puts, a reader gets, an owner sets policies", async () => {
	const box = (name) => blobs(name).getContainerClient("box");
	await box("contributor").create();
	await box("contributor").getBlockBlobClient("one").upload("hello", 5);
	const read = await box("reader").getBlockBlobClient("one").downloadToBuffer();
	assert.equal(read.toString(), "hello");
	await refused(box("reader").getBlockBlobClient("two").upload("x", 1), 403, DENIED);
	await refused(box("contributor").setAccessPolicy("blob"), 403, DENIED);
	await box("owner").setAccessPolicy("blob");
	await refused(box("forged").delete(), 401, "InvalidAuthenticationInfo");
});

const from = () => new Date(Date.now() - 60e3);
const until = () => new Date(Date.now() + 600e3);

await check("blobs: a user delegation SAS allows what the user may", async () => {
	const box = blobs("contributor").getContainerClient("shared");
	await box.create();
	await box.getBlockBlobClient("one").upload("hello", 5);
	for (const [name, writes] of [["contributor", true], ["reader", false]]) {
		const key = await blobs(name).getUserDelegationKey(from(), until());
		const values = { containerName: "shared", permissions: ContainerSASPermissions.parse("rw"), expiresOn: until() };
		const sas = generateBlobSASQueryParameters(values, key, account);
		const blob = new ContainerClient(`${box.url}?${sas}`, undefined, others).getBlockBlobClient("one");
		assert.equal((await blob.downloadToBuffer()).toString(), "hello");
		if (writes) await blob.upload("hello", 5);
		else await refused(blob.upload("x", 1), 403, DENIED);
	}
	await refused(blobs("sender").getUserDelegationKey(from(), until()), 403, DENIED);
});

await check("queues: a user delegation SAS allows what the user may", async () => {
	await queues("contributor").createQueue("shared");
	const url = queues("contributor").getQueueClient("shared").url;
	for (const [name, adds] of [["sender", true], ["reader", false]]) {
		const key = await queues(name).getUserDelegationKey({ startsOn: from(), expiresOn: until() });
		const values = { queueName: "shared", permissions: QueueSASPermissions.parse("ra"), expiresOn: until() };
		const queue = new QueueClient(`${url}?${generateQueueSASQueryParameters(values, key, account)}`, undefined, others);
		if (adds) await queue.sendMessage("one");
		else assert.equal((await queue.peekMessages()).peekedMessageItems[0].messageText, "one");
		await refused(adds ? queue.peekMessages() : queue.sendMessage("two"), 403, DENIED);
	}
});
