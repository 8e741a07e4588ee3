// SPDX-License-Identifier: MIT
// @azure/data-tables: one entity at a time.
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import {
	account,
	all,
	assert,
	check,
	endpoint,
	newTable,
	options,
	properties,
	refused,
	table,
} from "../check.mjs";

const t = await newTable("Entities");
const key = { partitionKey: "p", rowKey: "r" };
const stored = async (rowKey = "r") => properties(await t.getEntity("p", rowKey));

await check("create and get", async () => {
	let headers;
	const made = await t.createEntity(
		{ ...key, Name: "tea", Count: 2 },
		{
			onResponse: (r) => {
				headers = r.headers;
			},
		},
	);
	assert.match(made.etag, /^W\/"datetime'.*Z'"$/);
	assert.equal(headers.get("preference-applied"), "return-no-content");
	const got = await t.getEntity("p", "r");
	assert.equal(got.etag, made.etag);
	assert.ok(Math.abs(Date.parse(got.timestamp) - Date.now()) < 60e3);
	assert.deepEqual(properties(got), { Name: "tea", Count: 2 });
});

await check("create again is EntityAlreadyExists", async () => {
	await refused(t.createEntity({ ...key, Name: "other" }), 409, "EntityAlreadyExists");
	assert.equal((await stored()).Name, "tea");
});

await check("get with select", async () => {
	const select = (...names) => t.getEntity("p", "r", { queryOptions: { select: names } });
	assert.deepEqual(properties(await select("Count")), { Count: 2 });
	const some = await select("rowKey", "Name", "Unknown");
	assert.equal(some.rowKey, "r");
	assert.equal(some.partitionKey, undefined);
	assert.deepEqual(properties(some), { Name: "tea", Unknown: null });
});

await check("update merges or replaces", async () => {
	await t.updateEntity({ ...key, Count: 3, More: true }, "Merge");
	assert.deepEqual(await stored(), { Name: "tea", Count: 3, More: true });
	await t.updateEntity({ ...key, Only: "this" }, "Replace");
	assert.deepEqual(await stored(), { Only: "this" });
});

await check("a merge may change a type, and null leaves a property alone", async () => {
	await t.upsertEntity({ ...key, A: 1, B: "x" }, "Replace");
	await t.updateEntity({ ...key, A: "one", B: null }, "Merge");
	assert.deepEqual(await stored(), { A: "one", B: "x" });
});

await check("the etag guards update and delete", async () => {
	for (const mode of ["Merge", "Replace"]) {
		const old = (await t.upsertEntity({ ...key, V: 1 }, "Replace")).etag;
		const now = (await t.updateEntity({ ...key, V: 2 }, mode, { etag: old })).etag;
		assert.notEqual(now, old);
		await refused(
			t.updateEntity({ ...key, V: 3 }, mode, { etag: old }),
			412,
			"UpdateConditionNotSatisfied",
		);
		assert.deepEqual(await stored(), { V: 2 });
		await t.updateEntity({ ...key, V: 4 }, mode, { etag: "*" });
		assert.deepEqual(await stored(), { V: 4 });
		await refused(t.deleteEntity("p", "r", { etag: now }), 412, "UpdateConditionNotSatisfied");
		await refused(
			t.updateEntity({ ...key, V: 5 }, mode, { etag: "nonsense" }),
			400,
			"InvalidInput",
		);
	}
	const last = await t.getEntity("p", "r");
	let status;
	await t.deleteEntity("p", "r", {
		etag: last.etag,
		onResponse: (r) => {
			status = r.status;
		},
	});
	assert.equal(status, 204);
	await refused(t.getEntity("p", "r"), 404, "ResourceNotFound");
});

await check("update and delete want an entity", async () => {
	const missing = { partitionKey: "p", rowKey: "missing", V: 1 };
	await refused(t.updateEntity(missing, "Merge"), 404, "ResourceNotFound");
	await refused(t.updateEntity(missing, "Replace"), 404, "ResourceNotFound");
	await refused(t.deleteEntity("p", "missing"), 404, "ResourceNotFound");
	await refused(t.getEntity("p", "missing"), 404, "ResourceNotFound");
	await refused(t.getEntity("P", "r"), 404, "ResourceNotFound");
});

await check("upsert makes or changes", async () => {
	const row = { partitionKey: "p", rowKey: "up" };
	const made = await t.upsertEntity({ ...row, A: 1 }, "Merge");
	assert.equal((await t.getEntity("p", "up")).etag, made.etag);
	await t.upsertEntity({ ...row, B: 2 }, "Merge");
	assert.deepEqual(await stored("up"), { A: 1, B: 2 });
	await t.upsertEntity({ ...row, C: 3 }, "Replace");
	assert.deepEqual(await stored("up"), { C: 3 });
	await t.upsertEntity({ partitionKey: "p", rowKey: "up2", D: 4 }, "Replace");
	assert.deepEqual(await stored("up2"), { D: 4 });
	await t.deleteEntity("p", "up");
	await t.deleteEntity("p", "up2");
});

await check("each write has a greater timestamp", async () => {
	let last = "";
	for (let i = 0; i < 20; i++) {
		await t.upsertEntity({ ...key, i });
		const got = await t.getEntity("p", "r");
		// Trimmed zeros would spoil the comparison of the texts.
		const stamp = got.timestamp.replace(
			/(?:\.(\d+))?Z$/,
			(_, f) => `.${(f ?? "").padEnd(7, "0")}`,
		);
		assert.ok(stamp > last, `${stamp} after ${last}`);
		last = stamp;
	}
	await t.deleteEntity("p", "r");
});

const awkward = [
	"",
	" ",
	"  two  blanks ",
	"it's",
	"''",
	"'",
	"50%",
	"%25",
	"%41",
	"a+b",
	"a b+c%d&e=f",
	"a,b",
	"(x)",
	"a=b",
	"PartitionKey='x'",
	"{brace}",
	"[x]",
	'"quoted"',
	"<&>",
	"semi;colon",
	"a:b@c!$*~",
	"ü",
	"é",
	"日本語",
	"😀",
	"𝒳\u{10ffff}",
	"\u{e000}",
	"\uffee",
	"x".repeat(512),
	"ü".repeat(512),
	"😀".repeat(256),
];

await check("awkward keys", async () => {
	for (const k of awkward) {
		for (const row of [
			{ partitionKey: k, rowKey: "r" },
			{ partitionKey: "p", rowKey: k },
		]) {
			const name = JSON.stringify(row);
			const { etag } = await t.createEntity({ ...row, K: k });
			const got = await t.getEntity(row.partitionKey, row.rowKey);
			assert.equal(got.partitionKey, row.partitionKey, name);
			assert.equal(got.rowKey, row.rowKey, name);
			assert.deepEqual(properties(got), { K: k }, name);
			await t.updateEntity({ ...row, M: 1 }, "Merge", { etag });
			assert.deepEqual(
				properties(await t.getEntity(row.partitionKey, row.rowKey)),
				{ K: k, M: 1 },
				name,
			);
		}
	}
	assert.equal((await all(t.listEntities())).length, 2 * awkward.length);
	for (const k of awkward) {
		await t.deleteEntity(k, "r");
		await t.deleteEntity("p", k);
	}
	assert.deepEqual(await all(t.listEntities()), []);
});

await check("keys that no key may be", async () => {
	for (const k of ["a/b", "a\\b", "a#b", "a?b", "a\tb", "\u0000", "\u007f", "\u009f"]) {
		await refused(t.createEntity({ partitionKey: k, rowKey: "r" }), 400, "OutOfRangeInput");
		await refused(t.createEntity({ partitionKey: "p", rowKey: k }), 400, "OutOfRangeInput");
	}
	for (const row of [
		{ partitionKey: "x".repeat(513), rowKey: "r" },
		{ partitionKey: "p", rowKey: "x".repeat(513) },
	]) {
		const e = await t.createEntity(row).then(
			() => assert.fail("done"),
			(e) => e,
		);
		assert.equal(e.statusCode, 400, e.message);
		assert.match(e.details.odataError.code, /^(KeyValueTooLarge|PropertyValueTooLarge)$/);
	}
	await refused(t.createEntity({ partitionKey: "p" }), 400, "PropertiesNeedValue");
	await refused(t.createEntity({ rowKey: "r" }), 400, "PropertiesNeedValue");
	assert.deepEqual(await all(t.listEntities()), []);
});

await check("limits", async () => {
	const many = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`P${i}`, i]));
	await t.createEntity({ ...key, ...many(252) });
	assert.deepEqual(await stored(), many(252));
	await refused(t.upsertEntity({ ...key, ...many(253) }, "Replace"), 400, "TooManyProperties");
	await refused(t.updateEntity({ ...key, One: 1 }, "Merge"), 400, "TooManyProperties");
	await t.upsertEntity({ ...key, S: "x".repeat(32768) }, "Replace");
	assert.equal((await stored()).S.length, 32768);
	await refused(t.upsertEntity({ ...key, S: "x".repeat(32769) }), 400, "PropertyValueTooLarge");
	await t.upsertEntity({ ...key, B: new Uint8Array(65536).fill(7) }, "Replace");
	assert.equal((await stored()).B.length, 65536);
	await refused(
		t.upsertEntity({ ...key, B: new Uint8Array(65537) }),
		400,
		"PropertyValueTooLarge",
	);
	const large = (n) =>
		Object.fromEntries(Array.from({ length: n }, (_, i) => [`P${i}`, "y".repeat(32000)]));
	await t.upsertEntity({ ...key, ...large(16) }, "Replace");
	assert.deepEqual(await stored(), large(16));
	await refused(t.upsertEntity({ ...key, ...large(17) }, "Replace"), 400, "EntityTooLarge");
	await refused(t.upsertEntity({ ...key, ["n".repeat(256)]: 1 }), 400, "PropertyNameTooLong");
	await refused(t.upsertEntity({ ...key, "a-b": 1 }), 400, "PropertyNameInvalid");
	assert.deepEqual(await stored(), large(16));
	await t.deleteEntity("p", "r");
});

await check("many requests at once", async () => {
	const names = Array.from({ length: 200 }, (_, i) => String(i).padStart(3, "0"));
	await Promise.all(
		names.map((rowKey, i) => t.createEntity({ partitionKey: "many", rowKey, i })),
	);
	const got = await Promise.all(names.map((rowKey) => t.getEntity("many", rowKey)));
	assert.deepEqual(
		got.map((e) => e.i),
		names.map((_, i) => i),
	);
	assert.equal(new Set(got.map((e) => e.etag)).size > 1, true);
	await Promise.all(names.map((rowKey) => t.deleteEntity("many", rowKey)));
	assert.deepEqual(await all(t.listEntities()), []);
});

await check("of changes at once none is lost, if each is guarded by the etag", async () => {
	await t.createEntity({ ...key, N: 0 });
	let refusals = 0;
	async function increment() {
		for (;;) {
			const e = await t.getEntity("p", "r");
			try {
				await t.updateEntity({ ...key, N: e.N + 1 }, "Replace", { etag: e.etag });
				return;
			} catch (error) {
				assert.equal(error.statusCode, 412, error.message);
				refusals++;
			}
		}
	}
	await Promise.all(
		Array.from({ length: 10 }, async () => {
			for (let i = 0; i < 10; i++) await increment();
		}),
	);
	assert.deepEqual(await stored(), { N: 100 });
	assert.ok(refusals > 0);
	await t.deleteEntity("p", "r");
});

await check("of creations at once one wins", async () => {
	const tries = await Promise.allSettled(
		Array.from({ length: 20 }, (_, i) => t.createEntity({ ...key, i })),
	);
	assert.equal(tries.filter((r) => r.status === "fulfilled").length, 1);
	for (const r of tries.filter((r) => r.status === "rejected"))
		assert.equal(r.reason.details.odataError.code, "EntityAlreadyExists");
	await t.deleteEntity("p", "r");
});

await check("a missing table is TableNotFound", async () => {
	const none = table("NoSuchTable");
	await refused(none.getEntity("p", "r"), 404, "TableNotFound");
	await refused(none.createEntity(key), 404, "TableNotFound");
	await refused(none.upsertEntity(key), 404, "TableNotFound");
	await refused(none.updateEntity(key, "Replace"), 404, "TableNotFound");
	await refused(none.deleteEntity("p", "r"), 404, "TableNotFound");
	await refused(all(none.listEntities()), 404, "TableNotFound");
	await refused(none.submitTransaction([["create", key]]), 404, "TableNotFound");
});

await check("a wrong key or account is AuthenticationFailed", async () => {
	const wrongKey = Buffer.alloc(32, 1).toString("base64");
	for (const [name, k] of [
		[account, wrongKey],
		["nosuchaccount", wrongKey],
	]) {
		const c = new TableClient(
			endpoint,
			"Entities",
			new AzureNamedKeyCredential(name, k),
			options,
		);
		await refused(c.getEntity("p", "r"), 403, "AuthenticationFailed");
		await refused(c.createEntity(key), 403, "AuthenticationFailed");
		await refused(c.submitTransaction([["create", key]]), 403, "AuthenticationFailed");
	}
	assert.deepEqual(await all(t.listEntities()), []);
});
