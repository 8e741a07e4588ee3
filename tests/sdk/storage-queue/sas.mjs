// SPDX-License-Identifier: MIT
// @azure/storage-queue: shared access signatures and stored access policies.
import {
	AccountSASPermissions,
	QueueClient,
	QueueSASPermissions,
	QueueServiceClient,
	generateAccountSASQueryParameters,
	generateQueueSASQueryParameters,
} from "@azure/storage-queue";
import { all, assert, check, refused } from "../check.mjs";
import { credential, endpoint, newQueue, options, receive, service, texts } from "./client.mjs";

const q = await newQueue("shared");
const soon = () => new Date(Date.now() + 3600e3);
const before = () => new Date(Date.now() - 3600e3);

function withToken(token, name = "shared") {
	return new QueueClient(`${endpoint}/${name}?${token}`, undefined, options);
}

function token(sp, more) {
	return generateQueueSASQueryParameters(
		{
			queueName: "shared",
			permissions: QueueSASPermissions.parse(sp),
			expiresOn: soon(),
			...more,
		},
		credential,
	).toString();
}

function accountToken(sp, resourceTypes, more) {
	return generateAccountSASQueryParameters(
		{
			services: "q",
			resourceTypes,
			permissions: AccountSASPermissions.parse(sp),
			expiresOn: soon(),
			...more,
		},
		credential,
	).toString();
}

async function taken() {
	await q.clearMessages();
	await q.sendMessage("x");
	const [m] = await receive(q);
	return [m.messageId, m.popReceipt];
}

// Each operation with the letter that it needs.
const operations = [
	["r", (c) => c.peekMessages()],
	["r", (c) => c.getProperties()],
	["a", (c) => c.sendMessage("x")],
	["u", async (c) => c.updateMessage(...(await taken()), "y", 0)],
	["p", (c) => c.receiveMessages()],
	["p", async (c) => c.deleteMessage(...(await taken()))],
];

await check("URLs that the clients sign", async () => {
	const client = service.getQueueClient("shared");
	const url = await client.generateSasUrl({
		permissions: QueueSASPermissions.parse("a"),
		expiresOn: soon(),
	});
	await new QueueClient(url, undefined, options).sendMessage("by a URL");
	const whole = service.generateAccountSasUrl(soon(), AccountSASPermissions.parse("l"), "s");
	const lists = new QueueServiceClient(whole, undefined, options);
	assert.ok((await all(lists.listQueues())).some((one) => one.name === "shared"));
	await client.clearMessages();
});

await check("a queue SAS allows what its permissions say", async () => {
	for (const sp of ["r", "a", "u", "p", "raup"]) {
		const c = withToken(token(sp));
		for (const [needs, run] of operations) {
			if (sp.includes(needs)) await run(c);
			else await refused(run(c), 403, "AuthorizationPermissionMismatch");
		}
	}
});

await check("a queue SAS is for its queue's messages only", async () => {
	await newQueue("private");
	await refused(
		withToken(token("raup"), "private").receiveMessages(),
		403,
		"AuthenticationFailed",
	);
	const c = withToken(token("raup"));
	await refused(c.clearMessages(), 403, "AuthorizationFailure");
	await refused(c.delete(), 403, "AuthorizationFailure");
	await refused(c.setMetadata({ a: "1" }), 403, "AuthorizationFailure");
	const s = new QueueServiceClient(`${endpoint}?${token("raup")}`, undefined, options);
	const list = await all(s.listQueues()).catch((e) => e);
	assert.equal(list.statusCode, 403, list.message);
});

await check("a SAS ends, begins, and is forged by nobody", async () => {
	const denied = (t) => refused(withToken(t).peekMessages(), 403, "AuthenticationFailed");
	await denied(token("r", { expiresOn: before() }));
	await denied(token("r", { startsOn: soon(), expiresOn: new Date(Date.now() + 7200e3) }));
	await denied(token("r").replace("sp=r", "sp=ra"));
	await withToken(token("r", { startsOn: before() })).peekMessages();
});

await check("address and protocol", async () => {
	await withToken(token("r", { ipRange: { start: "127.0.0.1" } })).peekMessages();
	await withToken(token("r", { protocol: "https,http" })).peekMessages();
	const far = token("r", { ipRange: { start: "10.0.0.1", end: "10.0.0.9" } });
	await refused(withToken(far).peekMessages(), 403, "AuthorizationSourceIPMismatch");
	const tls = token("r", { protocol: "https" });
	await refused(withToken(tls).peekMessages(), 403, "AuthorizationProtocolMismatch");
});

await check("a SAS by a stored policy", async () => {
	const { signedIdentifiers } = await q.getAccessPolicy();
	assert.deepEqual([...signedIdentifiers], []);
	const policy = { startsOn: before(), expiresOn: soon(), permissions: "r" };
	await q.setAccessPolicy([{ id: "first", accessPolicy: policy }]);
	const kept = (await q.getAccessPolicy()).signedIdentifiers;
	assert.deepEqual(
		kept.map(({ id, accessPolicy: p }) => [id, p.startsOn, p.expiresOn, p.permissions]),
		[["first", policy.startsOn, policy.expiresOn, "r"]],
	);
	const t = generateQueueSASQueryParameters(
		{ queueName: "shared", identifier: "first" },
		credential,
	).toString();
	await withToken(t).peekMessages();
	await refused(withToken(t).sendMessage("x"), 403, "AuthorizationPermissionMismatch");
	await q.setAccessPolicy([
		{ id: "first", accessPolicy: { expiresOn: soon(), permissions: "a" } },
	]);
	await withToken(t).sendMessage("x");
	await refused(withToken(t).peekMessages(), 403, "AuthorizationPermissionMismatch");
	await q.setAccessPolicy([]);
	await refused(withToken(t).sendMessage("x"), 403, "AuthenticationFailed");
});

await check("an account SAS has services and resource types", async () => {
	await q.clearMessages();
	await withToken(accountToken("a", "o")).sendMessage("by the account");
	assert.deepEqual(texts(await receive(withToken(accountToken("p", "o")))), ["by the account"]);
	await withToken(accountToken("d", "o")).clearMessages();
	await withToken(accountToken("r", "c")).getProperties();
	const peek = (t) => withToken(t).peekMessages();
	await refused(peek(accountToken("a", "o")), 403, "AuthorizationPermissionMismatch");
	await refused(peek(accountToken("r", "s")), 403, "AuthorizationResourceTypeMismatch");
	await refused(
		peek(accountToken("r", "o", { services: "t" })),
		403,
		"AuthorizationServiceMismatch",
	);
	const s = (t) => new QueueServiceClient(`${endpoint}?${t}`, undefined, options);
	assert.ok((await all(s(accountToken("l", "s")).listQueues())).length > 0);
	await s(accountToken("c", "c")).createQueue("by-sas");
	await s(accountToken("d", "c")).deleteQueue("by-sas");
});
