// SPDX-License-Identifier: MIT
// @azure/data-tables: shared access signatures and stored access policies.
import {
	AzureSASCredential,
	TableClient,
	TableServiceClient,
	generateAccountSas,
	generateTableSas,
} from "@azure/data-tables";
import {
	all,
	assert,
	check,
	credential,
	endpoint,
	newTable,
	options,
	refused,
	table,
} from "../check.mjs";

const t = await newTable("Shared");
await newTable("Private");
const key = { partitionKey: "m", rowKey: "5" };
const soon = () => new Date(Date.now() + 3600e3);
const before = () => new Date(Date.now() - 3600e3);
const letters = { r: "query", a: "add", u: "update", d: "delete", w: "write", l: "list" };
const permissions = (text) => Object.fromEntries([...text].map((c) => [letters[c], true]));

function withToken(token, name = "Shared") {
	return new TableClient(endpoint, name, new AzureSASCredential(token), options);
}

function bySas(sp, more) {
	return withToken(
		generateTableSas("Shared", credential, {
			permissions: permissions(sp),
			expiresOn: soon(),
			...more,
		}),
	);
}

function byAccount(sp, more) {
	return generateAccountSas(credential, {
		permissions: permissions(sp),
		expiresOn: soon(),
		...more,
	});
}

// Each operation with the permissions that it needs.
const operations = [
	["r", (c) => c.getEntity("m", "5")],
	["r", (c) => all(c.listEntities())],
	["a", (c) => c.createEntity({ partitionKey: "m", rowKey: `new${Math.random()}` })],
	["u", (c) => c.updateEntity({ ...key, U: 1 }, "Merge")],
	["u", (c) => c.updateEntity({ ...key, U: 2 }, "Replace")],
	["au", (c) => c.upsertEntity({ ...key, U: 3 }, "Merge")],
	["au", (c) => c.upsertEntity({ ...key, U: 4 }, "Replace")],
	[
		"au",
		(c) =>
			c.submitTransaction([
				["create", { partitionKey: "m", rowKey: `b${Math.random()}` }],
				["update", { ...key, U: 5 }],
			]),
	],
	[
		"d",
		async (c) => {
			await t.upsertEntity({ partitionKey: "m", rowKey: "gone" });
			await c.deleteEntity("m", "gone");
		},
	],
];

async function enforces(make) {
	await t.upsertEntity(key);
	for (const sp of ["r", "a", "u", "d", "au", "raud"]) {
		const c = make(sp);
		for (const [needs, run] of operations) {
			if ([...needs].every((letter) => sp.includes(letter))) await run(c);
			else await refused(run(c), 403, "AuthorizationPermissionMismatch");
		}
	}
}

await check("a table SAS allows what its permissions say", () => enforces((sp) => bySas(sp)));

await check("an account SAS allows what its permissions say", () =>
	enforces((sp) => withToken(byAccount(sp))),
);

await check("a table SAS is for its table's entities only", async () => {
	const token = generateTableSas("Shared", credential, {
		permissions: permissions("raud"),
		expiresOn: soon(),
	});
	await withToken(token, "sHARED").getEntity("m", "5");
	const e = await withToken(token, "Private")
		.getEntity("m", "5")
		.then(
			() => assert.fail("done"),
			(e) => e,
		);
	assert.equal(e.statusCode, 403, e.message);
	await refused(withToken(token).getAccessPolicy(), 403, "AuthorizationFailure");
	const s = new TableServiceClient(endpoint, new AzureSASCredential(token), options);
	await refused(all(s.listTables()), 403, "AuthorizationFailure");
	await refused(s.createTable("More"), 403, "AuthorizationFailure");
});

await check("a SAS ends, begins, and is forged by nobody", async () => {
	const denied = (c) => refused(c.getEntity("m", "5"), 403, "AuthenticationFailed");
	await denied(bySas("r", { expiresOn: before() }));
	await denied(bySas("r", { startsOn: soon(), expiresOn: new Date(Date.now() + 7200e3) }));
	await bySas("r", { startsOn: before() }).getEntity("m", "5");
	const token = generateTableSas("Shared", credential, {
		permissions: permissions("r"),
		expiresOn: soon(),
	});
	await denied(withToken(token.replace("sp=r", "sp=raud")));
	await denied(withToken(token.replace(/sig=./, (s) => (s === "sig=A" ? "sig=B" : "sig=A"))));
	const unsigned = withToken(token.replace(/&?sig=[^&]*/, ""));
	await refused(unsigned.getEntity("m", "5"), 401, "NoAuthenticationInformation");
	await denied(withToken(token.replace(/&?se=[^&]*/, "")));
	await denied(withToken(byAccount("r").replace("sp=r", "sp=rw")));
});

await check("address and protocol", async () => {
	await bySas("r", { ipRange: { start: "127.0.0.1" } }).getEntity("m", "5");
	await bySas("r", { ipRange: { start: "127.0.0.0", end: "127.0.0.255" } }).getEntity("m", "5");
	await refused(
		bySas("r", { ipRange: { start: "10.0.0.1", end: "10.0.0.9" } }).getEntity("m", "5"),
		403,
		"AuthorizationSourceIPMismatch",
	);
	await bySas("r", { protocol: "https,http" }).getEntity("m", "5");
	await refused(
		bySas("r", { protocol: "https" }).getEntity("m", "5"),
		403,
		"AuthorizationProtocolMismatch",
	);
});

await check("key ranges", async () => {
	const u = await newTable("Ranges");
	for (const partitionKey of ["a", "b", "c", "d"])
		for (const rowKey of ["1", "2", "3"]) await u.createEntity({ partitionKey, rowKey });
	const sees = async (range, want) => {
		const c = withToken(
			generateTableSas("Ranges", credential, {
				permissions: permissions("raud"),
				expiresOn: soon(),
				...range,
			}),
			"Ranges",
		);
		const got = (await all(c.listEntities())).map((e) => e.partitionKey + e.rowKey);
		assert.equal(got.join(" "), want, JSON.stringify(range));
		return c;
	};
	await sees({ startPartitionKey: "c" }, "c1 c2 c3 d1 d2 d3");
	await sees({ endPartitionKey: "a" }, "a1 a2 a3");
	await sees({ startPartitionKey: "b", endPartitionKey: "b" }, "b1 b2 b3");
	const c = await sees(
		{ startPartitionKey: "b", startRowKey: "2", endPartitionKey: "c", endRowKey: "1" },
		"b2 b3 c1",
	);
	await c.getEntity("b", "2");
	await c.createEntity({ partitionKey: "b", rowKey: "25" });
	await c.upsertEntity({ partitionKey: "c", rowKey: "0" });
	await c.deleteEntity("b", "25");
	for (const [partitionKey, rowKey] of [
		["b", "1"],
		["c", "2"],
		["a", "9"],
		["d", "0"],
	]) {
		const row = { partitionKey, rowKey };
		await refused(c.createEntity(row), 403, "AuthorizationFailure");
		await refused(c.upsertEntity(row), 403, "AuthorizationFailure");
		await refused(c.updateEntity(row), 403, "AuthorizationFailure");
		await refused(c.deleteEntity(partitionKey, rowKey), 403, "AuthorizationFailure");
		const e = await c.getEntity(partitionKey, rowKey).then(
			() => assert.fail("read"),
			(e) => e,
		);
		assert.ok(e.statusCode === 403 || e.statusCode === 404, e.message);
	}
	await refused(
		c.submitTransaction([
			["upsert", { partitionKey: "b", rowKey: "2" }],
			["upsert", { partitionKey: "b", rowKey: "1" }],
		]),
		403,
		"AuthorizationFailure",
	);
	const inside = await all(c.listEntities({ queryOptions: { filter: "PartitionKey le 'b'" } }));
	assert.deepEqual(
		inside.map((e) => e.rowKey),
		["2", "3"],
	);
	const paged = await all(c.listEntities().byPage({ maxPageSize: 1 }));
	assert.deepEqual(
		paged.flat().map((e) => e.rowKey),
		["2", "3", "0", "1"],
	);
});

await check("an account SAS has services and resource types", async () => {
	const s = (token) => new TableServiceClient(endpoint, new AzureSASCredential(token), options);
	const c = (more) => withToken(byAccount("rl", more));
	await c({ resourceTypes: "o" }).getEntity("m", "5");
	await refused(
		c({ resourceTypes: "s" }).getEntity("m", "5"),
		403,
		"AuthorizationResourceTypeMismatch",
	);
	await refused(
		c({ services: { blob: true } }).getEntity("m", "5"),
		403,
		"AuthorizationServiceMismatch",
	);
	assert.deepEqual((await all(s(byAccount("l")).listTables())).map((x) => x.name).sort(), [
		"Private",
		"Ranges",
		"Shared",
	]);
	await refused(all(s(byAccount("r")).listTables()), 403, "AuthorizationPermissionMismatch");
	await refused(s(byAccount("r")).createTable("BySas"), 403, "AuthorizationPermissionMismatch");
	await s(byAccount("w")).createTable("BySas");
	await refused(s(byAccount("w")).deleteTable("BySas"), 403, "AuthorizationPermissionMismatch");
	await s(byAccount("d")).deleteTable("BySas");
	await s(byAccount("r")).getProperties();
	await refused(
		s(byAccount("r")).setProperties({ cors: [] }),
		403,
		"AuthorizationPermissionMismatch",
	);
	await s(byAccount("w")).setProperties({ cors: [] });
	await refused(withToken(byAccount("raudwl")).getAccessPolicy(), 403, "AuthorizationFailure");
});

await check("a connection string with a SAS", async () => {
	const c = TableClient.fromConnectionString(
		`TableEndpoint=${endpoint};SharedAccessSignature=${byAccount("r")}`,
		"Shared",
		options,
	);
	assert.equal((await c.getEntity("m", "5")).rowKey, "5");
});

await check("access policies are kept as they were set", async () => {
	assert.deepEqual([...(await t.getAccessPolicy())], []);
	const start = new Date("2026-01-02T03:04:05Z"),
		expiry = new Date("2036-01-02T03:04:05Z");
	const policies = [
		{ id: "full", accessPolicy: { start, expiry, permission: "raud" } },
		{ id: 'only <&> "times"', accessPolicy: { start, expiry } },
		{ id: "ü", accessPolicy: { permission: "r" } },
	];
	await t.setAccessPolicy(policies);
	// As text: the library writes undefined for what is not there.
	const kept = async () =>
		JSON.stringify(
			(await t.getAccessPolicy()).map(({ id, accessPolicy: p }) => [
				id,
				p.start,
				p.expiry,
				p.permission,
			]),
		);
	const wanted = (list) =>
		JSON.stringify(
			list.map(({ id, accessPolicy: p }) => [id, p.start, p.expiry, p.permission]),
		);
	assert.equal(await kept(), wanted(policies));
	await t.setAccessPolicy(policies.slice(1, 2));
	assert.equal(await kept(), wanted(policies.slice(1, 2)));
	const six = Array.from({ length: 6 }, (_, i) => ({
		id: `p${i}`,
		accessPolicy: { permission: "r" },
	}));
	const e = await t.setAccessPolicy(six).then(
		() => assert.fail("six"),
		(e) => e,
	);
	assert.equal(e.statusCode, 400, e.message);
	assert.equal((await t.getAccessPolicy()).length, 1);
	await t.setAccessPolicy([]);
	assert.deepEqual([...(await t.getAccessPolicy())], []);
	await refused(table("NoSuchTable").getAccessPolicy(), 404, "TableNotFound");
	await refused(table("NoSuchTable").setAccessPolicy([]), 404, "TableNotFound");
});

await check("a SAS by a stored policy", async () => {
	const set = (accessPolicy) => t.setAccessPolicy([{ id: "policy1", accessPolicy }]);
	const by = (more) =>
		withToken(generateTableSas("Shared", credential, { identifier: "policy1", ...more }));
	await set({ expiry: soon(), permission: "r" });
	await by().getEntity("m", "5");
	await refused(by().upsertEntity(key), 403, "AuthorizationPermissionMismatch");
	// A change of the policy changes what was handed out before.
	const handedOut = by();
	await set({ expiry: soon(), permission: "au" });
	await handedOut.upsertEntity(key);
	await refused(handedOut.getEntity("m", "5"), 403, "AuthorizationPermissionMismatch");
	await set({ expiry: before(), permission: "r" });
	await refused(handedOut.getEntity("m", "5"), 403, "AuthenticationFailed");
	// What the policy leaves open the token says.
	await set({ permission: "r" });
	await by({ expiresOn: soon() }).getEntity("m", "5");
	await refused(by().getEntity("m", "5"), 403, "AuthenticationFailed");
	await set({ expiry: soon() });
	await by({ permissions: permissions("r") }).getEntity("m", "5");
	await t.setAccessPolicy([]);
	await refused(by().getEntity("m", "5"), 403, "AuthenticationFailed");
});
