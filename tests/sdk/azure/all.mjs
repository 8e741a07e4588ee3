// SPDX-License-Identifier: MIT
// azure 0.7 of 2012, x-ms-version 2011-08-18: everything goes over ATOM.  HOSTSTYLE=1 leaves the
// account out of the path, as the library does for everything but the emulator.
import azure from "azure";
import ServiceClient from "azure/lib/services/core/serviceclient.js";
import { assert, account, check, credential, endpoint } from "../check.mjs";

const { SharedKeyLiteTable, TableQuery } = azure;
const host = new URL(endpoint).origin;

// ROWFS_CONNECTION's account, however the library would make of it what it did with the emulator's.
function client({ key = credential.key, lite = false } = {}) {
	const service = azure.createTableService(account, key, host);
	service.usePathStyleUri = process.env.HOSTSTYLE !== "1";
	if (lite) service.authenticationProvider = new SharedKeyLiteTable(account, key);
	// Slips of 0.7.19: it would give the results of a batch to nobody, and throw when one fails.
	service._normalizeError = ServiceClient._normalizeError;
	const parts = service.processResponse;
	service.processResponse = (...args) =>
		parts
			.apply(service, args)
			?.map((part) => ({ ...part, isSuccessful: part.response.isSuccessful }));
	return service;
}

// The method as a promise of what its callback is given behind the error.
const on = (service, method, ...args) =>
	new Promise((resolve, reject) => {
		service[method](...args, (error, ...results) => (error ? reject(error) : resolve(results)));
	});
const s = client();
const all = (method, ...args) => on(s, method, ...args);
const call = async (method, ...args) => (await all(method, ...args))[0];

async function refused(promise, ...wanted) {
	const e = await promise.then(
		() => assert.fail(`${wanted} expected, but it was done`),
		(error) => error,
	);
	if (e.statusCode === undefined) throw e;
	assert.deepEqual([e.statusCode, e.code], wanted, e.message);
	return e;
}

const row = (rowKey, more, partitionKey = "p") => ({
	PartitionKey: partitionKey,
	RowKey: rowKey,
	...more,
});
const typed = (type, value) => ({ $: { type }, _: value });
const name = (entity) => entity.RowKey;
const get = (rowKey, table = "Entities") => call("queryEntity", table, "p", rowKey);

// The row's own properties.
async function stored(rowKey, table) {
	const { PartitionKey, RowKey, Timestamp, _, ...rest } = await get(rowKey, table);
	assert.deepEqual([PartitionKey, RowKey], ["p", rowKey]);
	assert.ok(Timestamp instanceof Date);
	return rest;
}

const nextPage = (more) =>
	new Promise((resolve, reject) => {
		more.getNextPage((error, ...results) => (error ? reject(error) : resolve(results)));
	});

// Every page of a query.
async function query(tableQuery) {
	let [found, more] = await all("queryEntities", tableQuery);
	for (let page; more.hasNextPage(); found = [...found, ...page])
		[page, more] = await nextPage(more);
	return found;
}

async function batch(fill) {
	s.beginBatch();
	try {
		fill();
		return await call("commitBatch");
	} finally {
		s.rollback();
	}
}

await check("tables", async () => {
	assert.deepEqual(await call("queryTables"), []);
	const made = await call("createTable", "Apples");
	assert.equal(made.TableName, "Apples");
	assert.match(made._.id, /Tables\('Apples'\)$/);
	assert.equal(made._.link, "Tables('Apples')");
	await refused(call("createTable", "Apples"), 409, "TableAlreadyExists");
	assert.equal(await call("createTableIfNotExists", "Bananas"), true);
	await all("createTableIfNotExists", "Bananas");
	assert.equal((await call("getTable", "Apples")).TableName, "Apples");
	await refused(call("getTable", "Missing"), 404, "ResourceNotFound");
	const names = (tables) => tables.map((t) => t.TableName);
	assert.deepEqual(names(await call("queryTables")), ["Apples", "Bananas"]);
	assert.deepEqual(names(await call("queryTables", { prefix: "Ban" })), ["Bananas"]);
	const from = await all("queryTables", { prefix: "App" });
	assert.deepEqual(names(from[0]), ["Apples"]);
	assert.equal(from[1].hasNextPage(), false);
	assert.equal(await call("deleteTable", "Apples"), true);
	await refused(call("deleteTable", "Apples"), 404, "ResourceNotFound");
	await call("deleteTable", "Bananas");
	assert.deepEqual(await call("queryTables"), []);
	await call("createTable", "Entities");
	await refused(call("createTable", "Tables"), 400, "InvalidInput");
});

await check("insert and query", async () => {
	const made = await call("insertEntity", "Entities", row("r", { Name: "tea", Count: 2 }));
	assert.deepEqual([made.Name, made.Count, made.RowKey], ["tea", 2, "r"]);
	assert.match(made._.etag, /^W\/"datetime'.*'"$/);
	assert.match(made._.id, /Entities\(PartitionKey='p',RowKey='r'\)$/);
	assert.equal(made._.link, "Entities(PartitionKey='p',RowKey='r')");
	assert.deepEqual(await stored("r"), { Name: "tea", Count: 2 });
	const got = await get("r");
	assert.equal(got._.etag, made._.etag);
	assert.deepEqual(got.Timestamp, made.Timestamp);
	await refused(call("insertEntity", "Entities", row("r")), 409, "EntityAlreadyExists");
	await refused(call("insertEntity", "Entities", { RowKey: "r" }), 400, "PropertiesNeedValue");
	await refused(get("missing"), 404, "ResourceNotFound");
	await refused(get("r", "Missing"), 404, "TableNotFound");
	const e = await refused(call("insertEntity", "Missing", row("r")), 404, "TableNotFound");
	assert.match(e.message, /^The table specified does not exist\./);
});

await check("update, merge, and what was not there", async () => {
	await call("mergeEntity", "Entities", row("r", { More: true }));
	assert.deepEqual(await stored("r"), { Name: "tea", Count: 2, More: true });
	const changed = await call("updateEntity", "Entities", row("r", { Only: "this" }));
	assert.match(changed._.etag, /^W\//);
	assert.deepEqual(await stored("r"), { Only: "this" });
	await call("insertOrMergeEntity", "Entities", row("r", { A: 1 }));
	await call("insertOrReplaceEntity", "Entities", row("new", { A: 1 }));
	await call("insertOrMergeEntity", "Entities", row("new2", { A: 1 }));
	assert.deepEqual(await stored("r"), { Only: "this", A: 1 });
	await call("insertOrReplaceEntity", "Entities", row("r", { A: 2 }));
	assert.deepEqual(
		[await stored("r"), await stored("new"), await stored("new2")],
		[{ A: 2 }, { A: 1 }, { A: 1 }],
	);
	await call("mergeEntity", "Entities", row("r", { A: null, B: 1 }));
	assert.deepEqual(await stored("r"), { A: 2, B: 1 }); // a null changes nothing
	await call("mergeEntity", "Entities", row("r", { A: "retyped" }));
	assert.deepEqual(await stored("r"), { A: "retyped", B: 1 });
	for (const method of ["mergeEntity", "updateEntity", "deleteEntity"])
		await refused(call(method, "Entities", row("missing")), 404, "ResourceNotFound");
	assert.equal(await call("deleteEntity", "Entities", row("new")), true);
	await call("deleteEntity", "Entities", row("new2"));
});

await check("the etag guards", async () => {
	const guarded = { checkEtag: true };
	const old = await get("r");
	await call("updateEntity", "Entities", { ...old, V: 2 }, guarded);
	for (const method of ["updateEntity", "mergeEntity", "deleteEntity"])
		await refused(
			call(method, "Entities", old, guarded),
			412,
			"UpdateConditionNotSatisfied",
		);
	assert.equal((await stored("r")).V, 2);
	const changed = await call("mergeEntity", "Entities", await get("r"), guarded);
	await call("deleteEntity", "Entities", { ...row("r"), ...changed }, guarded);
	await refused(get("r"), 404, "ResourceNotFound");
});

await check("every type", async () => {
	const guid = "0123abcd-4567-89ef-0123-456789abcdef",
		when = new Date("2012-03-04T05:06:07.089Z");
	const values = {
		S: "it's <b> & \"x\" ]]> ü日本語",
		T: true,
		F: false,
		I: -7,
		Zero: 0,
		L: 4294967296123,
		D: 0.1,
		Tiny: 1e-300,
		W: when,
		Empty: "",
	};
	await call(
		"insertEntity",
		"Entities",
		row("typed", {
			...values,
			G: typed("Edm.Guid", guid),
			B: typed("Edm.Binary", "binary"),
			Long: typed("Edm.Int64", "42"),
			Whole: typed("Edm.Double", "3"),
			N: typed("Edm.Double", "NaN"),
			P: typed("Edm.Double", "INF"),
			Null: null,
		}),
	);
	const got = await stored("typed");
	delete values.Empty; // the library sends it as a null
	const more = { G: guid, B: "binary", Long: 42, Whole: 3, N: NaN };
	const { P, ...rest } = got; // which it does not understand
	assert.ok(Number.isNaN(P) || P === Infinity);
	assert.deepEqual(rest, { ...values, ...more });
	await call("updateEntity", "Entities", await get("typed")); // what was read can be written
	assert.deepEqual((await stored("typed")).W, when);
	const wrong = row("wrong", { I: typed("Edm.Int32", "x") });
	await refused(call("insertEntity", "Entities", wrong), 400, "InvalidInput");
	const strange = row("wrong", { I: typed("Edm.Strange", "x") });
	await refused(call("insertEntity", "Entities", strange), 400, "InvalidInput");
	await call("deleteEntity", "Entities", row("typed"));
});

await check("strings and keys", async () => {
	// Of U+10000 and beyond the library sends nothing.
	for (const text of [
		"  blanks around  ",
		"two\nlines\tand a tab",
		"<entry xmlns='x'>&amp;&#65;</entry>",
		"50% a+b a b+c%d&e=f {x} (y)",
		"\uE000 é e\u0301 \u00A0",
		"x".repeat(32768),
	]) {
		await call("insertOrReplaceEntity", "Entities", row("text", { S: text }));
		assert.deepEqual(await stored("text"), { S: text });
	}
	await call("deleteEntity", "Entities", row("text"));
	for (const k of ["50%", "a+b", "a b+c%d&e=f", "(x)", "{x}", "<&>", "ü日本語", "x".repeat(512)]) {
		const made = await call("insertEntity", "Entities", row(k, { K: k }));
		assert.equal(made.RowKey, k);
		assert.deepEqual(await stored(k), { K: k });
		await call("mergeEntity", "Entities", row(k, { M: 1 }));
		assert.deepEqual(await stored(k), { K: k, M: 1 });
		await call("deleteEntity", "Entities", row(k));
	}
	// The library does not double a quote in a key: it can be made, not named.
	await call("insertEntity", "Entities", row("it's"));
	await refused(get("it's"), 400, "InvalidInput");
	await batch(() => s.insertOrReplaceEntity("Entities", row("ok")));
	assert.deepEqual((await query(TableQuery.select().from("Entities"))).map(name), ["it's", "ok"]);
	await call("deleteTable", "Entities");
	await call("createTable", "Entities");
});

await check("a batch of every kind", async () => {
	const made = await batch(() => {
		for (const r of ["a", "b", "c", "d", "e"])
			s.insertEntity("Entities", row(r, { A: 1, B: 1 }));
	});
	assert.deepEqual(
		made.map((r) => [r.response.statusCode, r.response.headers["Content-ID"]]),
		[1, 2, 3, 4, 5].map((n) => [201, String(n)]),
	);
	assert.ok(made[0].response.body.entry, JSON.stringify(made[0].response.body));
	const done = await batch(() => {
		s.mergeEntity("Entities", row("a", { A: 2 }));
		s.updateEntity("Entities", row("b", { A: 2 }));
		s.insertOrMergeEntity("Entities", row("c", { A: 2 }));
		s.insertOrReplaceEntity("Entities", row("d", { A: 2 }));
		s.deleteEntity("Entities", row("e"));
		s.insertEntity("Entities", row("f", { A: 2 }));
	});
	assert.deepEqual(
		done.map((r) => r.response.statusCode),
		[204, 204, 204, 204, 204, 201],
	);
	assert.match(done[0].response.headers.ETag, /^W\//);
	assert.deepEqual(
		(await query(TableQuery.select().from("Entities"))).map((e) => [name(e), e.A, e.B]),
		[
			["a", 2, 1],
			["b", 2, undefined],
			["c", 2, 1],
			["d", 2, undefined],
			["f", 2, undefined],
		],
	);
});

await check("a batch that fails applies nothing", async () => {
	const state = async () =>
		(await query(TableQuery.select().from("Entities"))).map((e) => e._.etag);
	const before = await state();
	const fails = async (code, index, fill) => {
		const e = await batch(fill).then(
			() => assert.fail(`${code} expected, but it was done`),
			(error) => error,
		);
		assert.equal(e.code, code, e.message);
		assert.ok(e.message.startsWith(`${index}:`), e.message);
		assert.deepEqual(await state(), before);
	};
	await fails("EntityAlreadyExists", 1, () => {
		s.insertEntity("Entities", row("x"));
		s.insertEntity("Entities", row("a"));
	});
	await fails("ResourceNotFound", 2, () => {
		s.insertEntity("Entities", row("x"));
		s.deleteEntity("Entities", row("a"));
		s.mergeEntity("Entities", row("missing"));
	});
	await fails("UpdateConditionNotSatisfied", 0, () => {
		const old = row("a", { _: { etag: "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"" } });
		s.updateEntity("Entities", old, { checkEtag: true });
		s.insertEntity("Entities", row("x"));
	});
	await fails("CommandsInBatchActOnDifferentPartitions", 1, () => {
		s.insertEntity("Entities", row("x"));
		s.insertEntity("Entities", row("x", {}, "other"));
	});
	await fails("InvalidDuplicateRow", 1, () => {
		s.insertEntity("Entities", row("x"));
		s.insertEntity("Entities", row("x"));
	});
	await fails("TableNotFound", 0, () => s.insertEntity("Missing", row("x")));
});

await check("queries", async () => {
	await call("createTable", "Queries");
	const when = (n) => new Date(Date.UTC(2012, 0, n));
	await batch(() => {
		for (let n = 1; n <= 5; n++)
			s.insertEntity(
				"Queries",
				row(String(n), {
					S: `it's ${n}`,
					I: n,
					L: typed("Edm.Int64", String(n)),
					D: n + 0.5,
					T: n > 3,
					W: when(n),
				}),
			);
	});
	const from = () => TableQuery.select().from("Queries");
	const found = async (tableQuery) => (await query(tableQuery)).map(name).join("");
	assert.equal(await found(from()), "12345");
	assert.equal(await found(from().where("S == ?", "it's 3")), "3");
	assert.equal(await found(from().where("I > ?", 3)), "45");
	assert.equal(await found(from().where("L <= ?", 2)), "12");
	assert.equal(await found(from().where("D >= ?", 4.5)), "45");
	assert.equal(await found(from().where("T == ?", true)), "45");
	assert.equal(await found(from().where("W < ?", when(3))), "12");
	assert.equal(await found(from().where("I == ?", 1).or("I == ?", 5)), "15");
	assert.equal(await found(from().where("I != ?", 1).and("I < ?", 4)), "23");
	assert.equal(await found(from().where("PartitionKey == ? && RowKey > ?", "p", "3")), "45");
	assert.equal(await found(from().whereKeys("p")), "12345");
	assert.equal(await found(from().where("!(I == ?)", 4)), "1235");
	const some = await query(TableQuery.select("RowKey", "I", "Nothing").from("Queries"));
	assert.deepEqual(
		some.map((e) => [e.RowKey, e.I, e.Nothing, e.S]),
		[1, 2, 3, 4, 5].map((n) => [String(n), n, null, undefined]),
	);
	assert.equal(await found(from().where("I == ?", 99)), "");
	const [first, more] = await all("queryEntities", from().top(2));
	assert.deepEqual(first.map(name), ["1", "2"]);
	assert.equal(more.hasNextPage(), true);
	const [second, end] = await nextPage(more);
	assert.deepEqual(second.map(name), ["3", "4"]);
	const [third, none] = await nextPage(end);
	assert.deepEqual([third.map(name), none.hasNextPage()], [["5"], false]);
	await refused(query(from().where("I equals 3")), 400, "InvalidInput");
	await refused(query(from().top(1001)), 400, "InvalidInput");
});

await check("continuation over 1500 rows", async () => {
	await call("createTable", "Many");
	for (let at = 0; at < 1500; at += 100)
		await batch(() => {
			for (let n = at; n < at + 100; n++)
				s.insertEntity("Many", row(String(n).padStart(5, "0"), { N: n }));
		});
	const [first, more] = await all("queryEntities", TableQuery.select().from("Many"));
	assert.equal(first.length, 1000);
	const [rest, end] = await nextPage(more);
	assert.deepEqual([rest.length, end.hasNextPage()], [500, false]);
	assert.deepEqual(
		[...first, ...rest].map((e) => e.N),
		Array.from({ length: 1500 }, (_, i) => i),
	);
});

await check("service properties", async () => {
	const properties = await call("getServiceProperties");
	assert.equal(properties.Metrics.Version, "1.0");
	properties.Logging = {
		Version: "1.0",
		Delete: true,
		Read: true,
		Write: false,
		RetentionPolicy: { Enabled: true, Days: 3 },
	};
	await call("setServiceProperties", properties);
	assert.deepEqual(await call("getServiceProperties"), properties);
});

await check("keys, right and wrong, and SharedKeyLite", async () => {
	const wrong = client({ key: "AAAA" });
	await refused(on(wrong, "createTable", "Wrong"), 403, "AuthenticationFailed");
	await refused(
		on(wrong, "queryEntity", "Entities", "p", "a"),
		403,
		"AuthenticationFailed",
	);
	const lite = client({ lite: true });
	await on(lite, "insertEntity", "Entities", row("lite & b", { L: 1 }));
	assert.equal((await on(lite, "queryEntity", "Entities", "p", "lite & b"))[0].L, 1);
	await on(lite, "getServiceProperties");
	lite.beginBatch();
	lite.deleteEntity("Entities", row("lite & b"));
	await on(lite, "commitBatch");
});
