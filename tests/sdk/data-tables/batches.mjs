// SPDX-License-Identifier: MIT
// @azure/data-tables: entity group transactions.
import { TableTransaction } from "@azure/data-tables";
import { all, assert, check, newTable, properties, refused, rowKeys } from "../check.mjs";

const t = await newTable("Batches");
const row = (rowKey, more) => ({ partitionKey: "p", rowKey, ...more });
const get = async (rowKey) => properties(await t.getEntity("p", rowKey));
const stored = async () => rowKeys(await all(t.listEntities()));

async function clear() {
	const rows = await all(
		t.listEntities({ queryOptions: { select: ["PartitionKey", "RowKey"] } }),
	);
	if (rows.length) await t.submitTransaction(rows.map((e) => ["delete", e]));
	assert.deepEqual(await stored(), []);
}

// The operation with this index fails with this code, and nothing is applied.
async function failsAt(actions, index, status, code) {
	const before = await all(t.listEntities());
	const e = await refused(t.submitTransaction(actions), status, code);
	assert.ok(e.message.startsWith(`${index}:`), e.message);
	assert.deepEqual(await all(t.listEntities()), before);
}

await check("100 creates, each with its etag", async () => {
	const names = Array.from({ length: 100 }, (_, i) => String(i).padStart(3, "0"));
	const done = await t.submitTransaction(names.map((n, i) => ["create", row(n, { i })]));
	assert.equal(done.status, 202);
	assert.deepEqual(
		done.subResponses.map((r) => r.status),
		Array(100).fill(204),
	);
	assert.deepEqual(
		done.subResponses.map((r) => r.rowKey),
		names,
	);
	const rows = await all(t.listEntities());
	assert.deepEqual(rowKeys(rows), names);
	assert.deepEqual(
		rows.map((e) => e.i),
		names.map((_, i) => i),
	);
	for (const e of rows) assert.equal(done.getResponseForEntity(e.rowKey).etag, e.etag);
	await clear();
});

await check("every kind of operation in one", async () => {
	await t.submitTransaction([
		["create", row("a", { A: 1, B: 1 })],
		["create", row("b", { A: 1, B: 1 })],
		["create", row("c", { A: 1, B: 1 })],
		["create", row("d", { A: 1, B: 1 })],
		["create", row("e", { A: 1, B: 1 })],
	]);
	const done = await t.submitTransaction([
		["update", row("a", { A: 2 }), "Merge"],
		["update", row("b", { A: 2 }), "Replace"],
		["upsert", row("c", { A: 2 }), "Merge"],
		["upsert", row("d", { A: 2 }), "Replace"],
		["delete", row("e")],
		["create", row("f", { A: 2 })],
		["upsert", row("g", { A: 2 }), "Merge"],
		["upsert", row("h", { A: 2 }), "Replace"],
	]);
	assert.deepEqual(
		done.subResponses.map((r) => r.status),
		Array(8).fill(204),
	);
	assert.deepEqual(
		done.subResponses.map((r) => r.etag !== undefined),
		[true, true, true, true, false, true, true, true],
	);
	assert.deepEqual(await stored(), ["a", "b", "c", "d", "f", "g", "h"]);
	assert.deepEqual(await get("a"), { A: 2, B: 1 });
	assert.deepEqual(await get("b"), { A: 2 });
	assert.deepEqual(await get("c"), { A: 2, B: 1 });
	for (const r of ["d", "f", "g", "h"]) assert.deepEqual(await get(r), { A: 2 });
	await clear();
});

await check("TableTransaction collects the operations", async () => {
	const tx = new TableTransaction();
	tx.createEntity(row("x", { A: 1 }));
	tx.upsertEntity(row("y", { A: 2 }), "Replace");
	await t.submitTransaction(tx.actions);
	assert.deepEqual(await stored(), ["x", "y"]);
	await clear();
});

await check("the etag guards an operation of the batch", async () => {
	await t.createEntity(row("a", { A: 1 }));
	const { etag } = await t.getEntity("p", "a");
	await t.submitTransaction([
		["create", row("b")],
		["update", row("a", { A: 2 }), "Replace", { etag }],
	]);
	assert.deepEqual(await get("a"), { A: 2 });
	await failsAt(
		[
			["create", row("c")],
			["delete", row("b")],
			["update", row("a", { A: 3 }), "Merge", { etag }],
		],
		2,
		412,
		"UpdateConditionNotSatisfied",
	);
	assert.deepEqual(await stored(), ["a", "b"]);
	await clear();
});

await check("the one that fails is named, and nothing is applied", async () => {
	await t.createEntity(row("taken"));
	await failsAt(
		[
			["create", row("a")],
			["create", row("b")],
			["create", row("taken")],
			["create", row("c")],
		],
		2,
		409,
		"EntityAlreadyExists",
	);
	await failsAt(
		[
			["upsert", row("a"), "Merge"],
			["update", row("missing"), "Merge"],
		],
		1,
		404,
		"ResourceNotFound",
	);
	await failsAt(
		[
			["delete", row("missing")],
			["create", row("a")],
		],
		0,
		404,
		"ResourceNotFound",
	);
	await failsAt(
		[
			["delete", row("taken")],
			["create", row("a", { "a-b": 1 })],
		],
		1,
		400,
		"PropertyNameInvalid",
	);
	await failsAt(
		[
			["create", row("a")],
			["create", row("b", { S: "x".repeat(32769) })],
		],
		1,
		400,
		"PropertyValueTooLarge",
	);
	assert.deepEqual(await stored(), ["taken"]);
	await clear();
});

await check("a row twice is InvalidDuplicateRow", async () => {
	await failsAt(
		[
			["create", row("a")],
			["create", row("b")],
			["upsert", row("a"), "Merge"],
		],
		2,
		400,
		"InvalidDuplicateRow",
	);
	await failsAt(
		[
			["upsert", row("a"), "Merge"],
			["delete", row("a")],
		],
		1,
		400,
		"InvalidDuplicateRow",
	);
});

await check("101 operations are too many", async () => {
	const e = await refused(
		t.submitTransaction(Array.from({ length: 101 }, (_, i) => ["create", row(`r${i}`)])),
		400,
		"InvalidInput",
	);
	assert.match(e.message, /maximum 100 changes/);
	assert.deepEqual(await stored(), []);
});

await check("another partition", async () => {
	// The library checks the keys itself, but reads them once more when it writes the request.
	const other = {
		rowKey: "b",
		keys: ["q", "p"],
		get partitionKey() {
			return this.keys.pop() ?? "q";
		},
	};
	Object.defineProperty(other, "keys", { enumerable: false });
	await failsAt(
		[
			["create", row("a")],
			["create", other],
		],
		1,
		400,
		"CommandsInBatchActOnDifferentPartitions",
	);
});

await check("more than 4 MiB is too much", async () => {
	const S = "x".repeat(32000);
	await t.submitTransaction(
		Array.from({ length: 100 }, (_, i) => ["create", row(`r${i}`, { S })]),
	);
	assert.equal((await stored()).length, 100);
	await clear();
	const twice = { S, T: S };
	const e = await t
		.submitTransaction(Array.from({ length: 100 }, (_, i) => ["create", row(`r${i}`, twice)]))
		.then(
			() => assert.fail("done"),
			(error) => error,
		);
	assert.equal(e.statusCode, 413, e.message);
	assert.equal(e.code, "RequestBodyTooLarge");
	assert.deepEqual(await stored(), []);
});

await check("awkward keys and values in a batch", async () => {
	const keys = [
		"it's",
		"50%",
		"a+b",
		"a b",
		"{brace}",
		"ü日本語😀",
		'"q"',
		"a,b=c",
		"",
		"--changeset_",
	];
	const text = 'line\r\nline\n\n--batch_x--\r\nHTTP/1.1 500 {"odata.error":{}}';
	const done = await t.submitTransaction(keys.map((k) => ["create", row(k, { K: k, text })]));
	assert.deepEqual(
		done.subResponses.map((r) => r.status),
		keys.map(() => 204),
	);
	for (const k of keys) assert.deepEqual(await get(k), { K: k, text });
	await t.submitTransaction(keys.map((k) => ["update", row(k, { K: `${k}!` }), "Merge"]));
	for (const k of keys) assert.deepEqual(await get(k), { K: `${k}!`, text });
	await clear();
});

await check("every type in a batch", async () => {
	const e = row("typed", {
		S: "x",
		T: false,
		I: -7,
		L: 2n ** 62n,
		D: 0.1,
		When: new Date("2026-01-02T03:04:05.678Z"),
		G: { type: "Guid", value: "0123abcd-4567-89ef-0123-456789abcdef" },
		B: Uint8Array.of(0, 255),
	});
	await t.submitTransaction([["create", e]]);
	const got = await get("typed");
	assert.deepEqual({ ...got, B: [...got.B] }, { ...properties(e), B: [0, 255] });
	await clear();
});
