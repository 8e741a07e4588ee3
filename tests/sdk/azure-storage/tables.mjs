// SPDX-License-Identifier: MIT
// azure-storage 2.10: its client of tables.
import azure from "azure-storage";
import { assert, check, connection, endpoint } from "../check.mjs";
import { promises, refused } from "./client.mjs";

const { TableBatch, TableQuery, TableUtilities } = azure;
const { EdmType, entityGenerator: edm } = TableUtilities;

const s = promises(azure.createTableService(connection));

const row = (rowKey, more, partitionKey = "p") => ({
	PartitionKey: edm.String(partitionKey),
	RowKey: edm.String(rowKey),
	...more,
});
const name = (entity) => entity.RowKey._;

// { property: value }, without what the service adds.
async function stored(rowKey, table = "Entities") {
	const e = await s.retrieveEntity(table, "p", rowKey);
	const { PartitionKey, RowKey, Timestamp, ".metadata": _, ...rest } = e;
	assert.deepEqual([PartitionKey._, RowKey._], ["p", rowKey]);
	assert.ok(Timestamp._ instanceof Date);
	return Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, v._]));
}

async function query(table, tableQuery) {
	const found = [];
	let token = null;
	do {
		const page = await s.queryEntities(table, tableQuery, token);
		found.push(...page.entries);
		token = page.continuationToken;
	} while (token);
	return found;
}

await check("tables", async () => {
	assert.deepEqual((await s.listTablesSegmented(null)).entries, []);
	await s.createTable("Apples");
	await refused(s.createTable("Apples"), 409, "TableAlreadyExists");
	assert.equal((await s.createTableIfNotExists("Apples")).created, false);
	assert.equal((await s.createTableIfNotExists("Bananas")).created, true);
	assert.equal((await s.doesTableExist("Apples")).exists, true);
	assert.equal((await s.doesTableExist("Missing")).exists, false);
	assert.deepEqual((await s.listTablesSegmented(null)).entries, ["Apples", "Bananas"]);
	assert.deepEqual((await s.listTablesSegmentedWithPrefix("Ban", null)).entries, ["Bananas"]);
	const first = await s.listTablesSegmented(null, { maxResults: 1 });
	assert.deepEqual(first.entries, ["Apples"]);
	const rest = await s.listTablesSegmented(first.continuationToken, { maxResults: 5 });
	assert.deepEqual(rest.entries, ["Bananas"]);
	assert.equal(rest.continuationToken, null);
	await s.deleteTable("Apples");
	await refused(s.deleteTable("Apples"), 404, "ResourceNotFound");
	assert.equal(await s.deleteTableIfExists("Apples"), false);
	assert.equal(await s.deleteTableIfExists("Bananas"), true);
	assert.deepEqual((await s.listTablesSegmented(null)).entries, []);
	await s.createTable("Entities");
});

await check("insert and retrieve", async () => {
	const done = await s.insertEntity(
		"Entities",
		row("r", { Name: edm.String("tea"), Count: edm.Int32(2) }),
	);
	assert.match(done[".metadata"].etag, /^W\//);
	assert.deepEqual(await stored("r"), { Name: "tea", Count: 2 });
	await refused(s.insertEntity("Entities", row("r")), 409, "EntityAlreadyExists");
	await refused(s.retrieveEntity("Entities", "p", "missing"), 404, "ResourceNotFound");
	await refused(s.retrieveEntity("Missing", "p", "r"), 404, "TableNotFound");
});

await check("insert with the content echoed", async () => {
	const done = await s.insertEntity(
		"Entities",
		row("echo", { N: edm.Int64("5"), D: edm.Double(3) }),
		{ echoContent: true },
	);
	assert.equal(done.N._, "5");
	assert.equal(done.D._, 3);
	assert.match(done[".metadata"].etag, /^W\//);
	await s.deleteEntity("Entities", row("echo"));
});

await check("merge and replace, or insert", async () => {
	await s.mergeEntity("Entities", row("r", { More: edm.Boolean(true) }));
	assert.deepEqual(await stored("r"), { Name: "tea", Count: 2, More: true });
	await s.replaceEntity("Entities", row("r", { Only: edm.String("this") }));
	assert.deepEqual(await stored("r"), { Only: "this" });
	await s.insertOrMergeEntity("Entities", row("r", { A: edm.Int32(1) }));
	await s.insertOrReplaceEntity("Entities", row("new", { A: edm.Int32(1) }));
	await s.insertOrMergeEntity("Entities", row("new2", { A: edm.Int32(1) }));
	assert.deepEqual(await stored("r"), { Only: "this", A: 1 });
	await s.insertOrReplaceEntity("Entities", row("r", { A: edm.Int32(2) }));
	assert.deepEqual(
		[await stored("r"), await stored("new"), await stored("new2")],
		[{ A: 2 }, { A: 1 }, { A: 1 }],
	);
	await refused(s.mergeEntity("Entities", row("missing")), 404, "ResourceNotFound");
	await refused(s.replaceEntity("Entities", row("missing")), 404, "ResourceNotFound");
	await refused(s.deleteEntity("Entities", row("missing")), 404, "ResourceNotFound");
	await s.deleteEntity("Entities", row("new"));
	await s.deleteEntity("Entities", row("new2"));
});

await check("the etag guards", async () => {
	const old = await s.retrieveEntity("Entities", "p", "r");
	await s.replaceEntity("Entities", { ...old, V: edm.Int32(2) });
	for (const method of ["replaceEntity", "mergeEntity", "deleteEntity"])
		await refused(s[method]("Entities", old), 412, "UpdateConditionNotSatisfied");
	assert.equal((await stored("r")).V, 2);
	await s.deleteEntity("Entities", await s.retrieveEntity("Entities", "p", "r"));
	await refused(s.retrieveEntity("Entities", "p", "r"), 404, "ResourceNotFound");
});

await check("every type", async () => {
	const guid = "0123abcd-4567-89ef-0123-456789abcdef",
		when = new Date("2026-01-02T03:04:05.678Z");
	await s.insertEntity(
		"Entities",
		row("typed", {
			S: edm.String('it\'s "x" ü日本語😀\r\n'),
			T: edm.Boolean(true),
			I: edm.Int32(-7),
			L: edm.Int64("9223372036854775807"),
			D: edm.Double(0.1),
			Whole: edm.Double(3),
			N: edm.Double(NaN),
			P: edm.Double(Infinity),
			M: edm.Double(-Infinity),
			W: edm.DateTime(when),
			G: edm.Guid(guid),
			B: edm.Binary(Buffer.from([0, 1, 255])),
			E: edm.String(""),
		}),
	);
	const got = await stored("typed");
	assert.deepEqual(got, {
		S: 'it\'s "x" ü日本語😀\r\n',
		T: true,
		I: -7,
		L: "9223372036854775807",
		D: 0.1,
		Whole: 3,
		N: NaN,
		P: Infinity,
		M: -Infinity,
		W: when,
		G: guid,
		B: Buffer.from([0, 1, 255]),
		E: "",
	});
	const full = await s.retrieveEntity("Entities", "p", "typed", {
		payloadFormat: TableUtilities.PayloadFormat.FULL_METADATA,
	});
	assert.equal(full[".metadata"].type, `${new URL(endpoint).pathname.slice(1)}.Entities`);
	assert.equal(full[".metadata"].id, `${endpoint}/Entities(PartitionKey='p',RowKey='typed')`);
	assert.equal(full[".metadata"].editLink, "Entities(PartitionKey='p',RowKey='typed')");
	assert.equal(full.L.$, EdmType.INT64);
	assert.equal(full.Timestamp.$, EdmType.DATETIME);
	const none = await s.retrieveEntity("Entities", "p", "typed", {
		payloadFormat: TableUtilities.PayloadFormat.NO_METADATA,
	});
	assert.equal(none.L._, "9223372036854775807");
	assert.equal(none.L.$, undefined);
	await s.replaceEntity("Entities", full); // what was read can be written back
	assert.deepEqual(await stored("typed"), got);
	await s.deleteEntity("Entities", row("typed"));
});

await check("awkward keys", async () => {
	for (const k of [
		"it's",
		"50%",
		"a+b",
		"a b+c%d&e=f",
		"(x)",
		"{x}",
		"ü日本語😀",
		"x".repeat(512),
	]) {
		await s.insertEntity("Entities", row(k, { K: edm.String(k) }));
		assert.deepEqual(await stored(k), { K: k });
		await s.mergeEntity("Entities", row(k, { M: edm.Int32(1) }));
		assert.deepEqual(await stored(k), { K: k, M: 1 });
		await s.deleteEntity("Entities", row(k));
	}
	assert.deepEqual(await query("Entities", new TableQuery()), []);
});

await check("a batch of every kind", async () => {
	const start = new TableBatch();
	for (const r of ["a", "b", "c", "d", "e"])
		start.insertEntity(row(r, { A: edm.Int32(1), B: edm.Int32(1) }));
	const made = await s.executeBatch("Entities", start);
	assert.deepEqual(
		made.map((r) => r.response.statusCode),
		Array(5).fill(204),
	);
	assert.deepEqual(
		made.map((r) => r.response.headers["content-id"]),
		[undefined, "1", "2", "3", "4"],
	);
	const mixed = new TableBatch();
	mixed.mergeEntity(row("a", { A: edm.Int32(2) }));
	mixed.replaceEntity(row("b", { A: edm.Int32(2) }));
	mixed.insertOrMergeEntity(row("c", { A: edm.Int32(2) }));
	mixed.insertOrReplaceEntity(row("d", { A: edm.Int32(2) }));
	mixed.deleteEntity(row("e"));
	mixed.insertEntity(row("f", { A: edm.Int32(2) }), { echoContent: true });
	const done = await s.executeBatch("Entities", mixed);
	assert.deepEqual(
		done.map((r) => r.response.statusCode),
		[204, 204, 204, 204, 204, 201],
	);
	assert.equal(done[5].entity.A._, 2);
	assert.match(done[0].entity[".metadata"].etag, /^W\//);
	const all = await query("Entities", new TableQuery());
	assert.deepEqual(
		all.map((e) => [name(e), e.A._, e.B?._]),
		[
			["a", 2, 1],
			["b", 2, undefined],
			["c", 2, 1],
			["d", 2, undefined],
			["f", 2, undefined],
		],
	);
});

await check("retrieve in a batch", async () => {
	const one = new TableBatch();
	one.retrieveEntity("p", "a");
	const got = await s.executeBatch("Entities", one);
	assert.equal(got.length, 1);
	assert.equal(got[0].response.statusCode, 200);
	assert.deepEqual([got[0].entity.RowKey._, got[0].entity.A._], ["a", 2]);
	const none = new TableBatch();
	none.retrieveEntity("p", "missing");
	await refused(s.executeBatch("Entities", none), 404, "ResourceNotFound");
});

await check("a batch that fails applies nothing", async () => {
	const before = (await query("Entities", new TableQuery())).map((e) => e[".metadata"].etag);
	const fails = async (status, code, index, fill) => {
		const batch = new TableBatch();
		fill(batch);
		const e = await refused(s.executeBatch("Entities", batch), status, code);
		assert.ok(e.message.startsWith(`${index}:`), e.message);
		assert.deepEqual(
			(await query("Entities", new TableQuery())).map((x) => x[".metadata"].etag),
			before,
		);
	};
	await fails(409, "EntityAlreadyExists", 1, (b) => {
		b.insertEntity(row("x"));
		b.insertEntity(row("a"));
		b.insertEntity(row("y"));
	});
	await fails(404, "ResourceNotFound", 2, (b) => {
		b.insertEntity(row("x"));
		b.deleteEntity(row("a"));
		b.mergeEntity(row("missing"));
	});
	await fails(412, "UpdateConditionNotSatisfied", 0, (b) => {
		b.replaceEntity(
			row("a", { ".metadata": { etag: "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"" } }),
		);
		b.insertEntity(row("x"));
	});
	const twice = new TableBatch();
	twice.insertEntity(row("x"));
	twice.operations.push({ ...twice.operations[0] }); // addOperation would refuse it
	await refused(s.executeBatch("Entities", twice), 400, "InvalidDuplicateRow");
	const missing = new TableBatch();
	missing.insertEntity(row("x"));
	missing.insertEntity(row("y"));
	await refused(s.executeBatch("Missing", missing), 404, "TableNotFound");
});

await check("queries", async () => {
	await s.createTable("Queries");
	const batch = new TableBatch();
	const guid = (n) => `0000000${n}-4567-89ef-0123-456789abcdef`,
		when = (n) => new Date(Date.UTC(2026, 0, n));
	for (let n = 1; n <= 5; n++)
		batch.insertEntity(
			row(String(n), {
				S: edm.String(`it's ${n}`),
				I: edm.Int32(n),
				L: edm.Int64(String(n)),
				D: edm.Double(n + 0.5),
				T: edm.Boolean(n > 3),
				W: edm.DateTime(when(n)),
				G: edm.Guid(guid(n)),
				B: edm.Binary(Buffer.from([0xab, n])),
			}),
		);
	await s.executeBatch("Queries", batch);
	const where = async (...args) =>
		(await query("Queries", new TableQuery().where(...args))).map(name).join("");
	const { QueryComparisons: op } = TableUtilities;
	const expected = [
		[op.EQUAL, "3"],
		[op.NOT_EQUAL, "1245"],
		[op.GREATER_THAN, "45"],
		[op.GREATER_THAN_OR_EQUAL, "345"],
		[op.LESS_THAN, "12"],
		[op.LESS_THAN_OR_EQUAL, "123"],
	];
	const filters = {
		String: (o) => TableQuery.stringFilter("S", o, "it's 3"),
		Int32: (o) => TableQuery.int32Filter("I", o, 3),
		Int64: (o) => TableQuery.int64Filter("L", o, "3"),
		Double: (o) => TableQuery.doubleFilter("D", o, 3.5),
		DateTime: (o) => TableQuery.dateFilter("W", o, when(3)),
		Guid: (o) => TableQuery.guidFilter("G", o, guid(3)),
		Binary: (o) => TableQuery.binaryFilter("B", o, Buffer.from([0xab, 3])),
	};
	for (const [type, filter] of Object.entries(filters))
		for (const [o, want] of expected)
			assert.equal(await where(filter(o)), want, `${type} ${o}`);
	assert.equal(await where(TableQuery.booleanFilter("T", op.EQUAL, true)), "45");
	assert.equal(await where("S == ? or I >= ?", "it's 1", 5), "15");
	assert.equal(await where("PartitionKey eq ? and RowKey gt ? and not (I eq 4)", "p", "3"), "5");
	const some = await query(
		"Queries",
		new TableQuery().select("RowKey", "I", "Nothing").where("I lt ?", 3),
	);
	assert.deepEqual(
		some.map((e) => [e.RowKey._, e.I._, e.S]),
		[
			["1", 1, undefined],
			["2", 2, undefined],
		],
	);
	const top = await s.queryEntities("Queries", new TableQuery().top(2), null);
	assert.deepEqual(top.entries.map(name), ["1", "2"]);
	const next = await s.queryEntities("Queries", new TableQuery().top(3), top.continuationToken);
	assert.deepEqual(next.entries.map(name), ["3", "4", "5"]);
	assert.equal(next.continuationToken, null);
	await refused(where("I equals 3"), 400, "InvalidInput");
	await refused(where("I eq L"), 501, "NotImplemented");
});

await check("continuation over 1500 rows", async () => {
	await s.createTable("Many");
	for (let at = 0; at < 1500; at += 100) {
		const batch = new TableBatch();
		for (let n = at; n < at + 100; n++)
			batch.insertEntity(row(String(n).padStart(5, "0"), { N: edm.Int32(n) }));
		assert.equal((await s.executeBatch("Many", batch)).length, 100);
	}
	const first = await s.queryEntities("Many", null, null);
	assert.equal(first.entries.length, 1000);
	const rest = await s.queryEntities("Many", null, first.continuationToken);
	assert.equal(rest.entries.length, 500);
	assert.equal(rest.continuationToken, null);
	assert.deepEqual(
		[...first.entries, ...rest.entries].map((e) => e.N._),
		Array.from({ length: 1500 }, (_, i) => i),
	);
	const found = await query("Many", new TableQuery().where("N ge ?", 1490).top(3));
	assert.deepEqual(
		found.map((e) => e.N._),
		Array.from({ length: 10 }, (_, i) => 1490 + i),
	);
});

await check("shared access signatures and policies", async () => {
	const until = new Date(Date.now() + 3600e3);
	const by = (policy) =>
		promises(
			azure.createTableServiceWithSas(
				endpoint,
				s.generateSharedAccessSignature("Entities", policy),
			),
		);
	const reader = by({ AccessPolicy: { Permissions: "r", Expiry: until } });
	assert.equal((await reader.retrieveEntity("Entities", "p", "a")).A._, 2);
	assert.equal(
		(await reader.queryEntities("Entities", new TableQuery(), null)).entries.length,
		5,
	);
	await refused(
		reader.insertEntity("Entities", row("x")),
		403,
		"AuthorizationPermissionMismatch",
	);
	const ranged = by({
		AccessPolicy: {
			Permissions: "raud",
			Expiry: until,
			StartPk: "p",
			StartRk: "b",
			EndPk: "p",
			EndRk: "c",
		},
	});
	assert.deepEqual(
		(await ranged.queryEntities("Entities", new TableQuery(), null)).entries.map(name),
		["b", "c"],
	);
	await refused(ranged.deleteEntity("Entities", row("a")), 403, "AuthorizationFailure");
	const batch = new TableBatch();
	batch.insertEntity(row("ba"));
	batch.insertEntity(row("bb"));
	await ranged.executeBatch("Entities", batch);
	const late = by({ AccessPolicy: { Permissions: "r", Expiry: new Date(Date.now() - 3600e3) } });
	await refused(late.retrieveEntity("Entities", "p", "a"), 403, "AuthenticationFailed");

	assert.deepEqual((await s.getTableAcl("Entities")).signedIdentifiers, {});
	const start = new Date("2026-01-02T03:04:05Z");
	await s.setTableAcl("Entities", { policy1: { Permissions: "r", Start: start, Expiry: until } });
	const acl = (await s.getTableAcl("Entities")).signedIdentifiers;
	assert.deepEqual(Object.keys(acl), ["policy1"]);
	assert.equal(acl.policy1.Permissions, "r");
	assert.equal(Date.parse(acl.policy1.Start), start.getTime());
	const byPolicy = by({ Id: "policy1" });
	assert.equal((await byPolicy.retrieveEntity("Entities", "p", "a")).A._, 2);
	await refused(
		byPolicy.deleteEntity("Entities", row("a")),
		403,
		"AuthorizationPermissionMismatch",
	);
	await s.setTableAcl("Entities", {});
	await refused(byPolicy.retrieveEntity("Entities", "p", "a"), 403, "AuthenticationFailed");
	await refused(s.getTableAcl("Missing"), 404, "TableNotFound");
});

await check("a wrong key is AuthenticationFailed", async () => {
	const wrong = promises(
		azure.createTableService(connection.replace(/AccountKey=[^;]*/, "AccountKey=AAAA")),
	);
	await refused(wrong.retrieveEntity("Entities", "p", "a"), 403, "AuthenticationFailed");
	await refused(wrong.createTable("Wrong"), 403, "AuthenticationFailed");
});

await check("service properties and statistics", async () => {
	const before = await s.getServiceProperties();
	assert.equal(before.HourMetrics.Enabled, true);
	assert.equal(before.HourMetrics.RetentionPolicy.Days, 7);
	assert.equal(before.Logging.Read, false);
	await s.setServiceProperties({
		Logging: {
			Version: "1.0",
			Delete: true,
			Read: true,
			Write: false,
			RetentionPolicy: { Enabled: true, Days: 3 },
		},
		Cors: {
			CorsRule: [
				{
					AllowedOrigins: ["http://a.example", "http://b.example"],
					AllowedMethods: ["GET", "MERGE"],
					AllowedHeaders: ["x-ms-*"],
					ExposedHeaders: ["x-ms-request-id"],
					MaxAgeInSeconds: 5,
				},
			],
		},
	});
	const after = await s.getServiceProperties();
	assert.deepEqual([after.Logging.Delete, after.Logging.RetentionPolicy.Days], [true, 3]);
	assert.deepEqual(after.HourMetrics, before.HourMetrics);
	assert.deepEqual(after.Cors.CorsRule[0].AllowedOrigins, [
		"http://a.example",
		"http://b.example",
	]);
	assert.deepEqual(after.Cors.CorsRule[0].AllowedMethods, ["GET", "MERGE"]);
	const stats = await s.getServiceStats();
	assert.equal(stats.GeoReplication.Status, "live");
});
