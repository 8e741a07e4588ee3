// SPDX-License-Identifier: MIT
// @azure/data-tables: queries, with every operator and type, and paging.
import { odata } from "@azure/data-tables";
import { all, assert, check, newTable, pages, properties, refused, rowKeys } from "../check.mjs";

const t = await newTable("Queries");
const guid = (n) => `0000000${n}-4567-89ef-0123-456789abcdef`;
const when = (n) => new Date(Date.UTC(2026, 0, n, 12, 0, 0, 500));

// Rows 1 to 5 of partition p have the same value n in every type; row 9 has other properties only.
const rows = [1, 2, 3, 4, 5].map((n) => ({
	partitionKey: "p",
	rowKey: String(n),
	S: `s${n}`,
	I: n,
	L: BigInt(n),
	D: n + 0.5,
	T: n > 3,
	W: when(n),
	G: { type: "Guid", value: guid(n) },
	B: Uint8Array.of(0xab, n),
}));
await t.submitTransaction(rows.map((e) => ["create", e]));
await t.createEntity({ partitionKey: "p", rowKey: "9", Other: "it's" });
await t.createEntity({ partitionKey: "q", rowKey: "1", S: "s1", I: 1 });

const find = async (filter, select) =>
	(await all(t.listEntities({ queryOptions: { filter, select } })))
		.map((e) => `${e.partitionKey}${e.rowKey}`)
		.join(" ");
const finds = async (filter, want) => assert.equal(await find(filter), want, filter);

async function operators(property, literal) {
	const others = property === "S" || property === "I" ? " q1" : "";
	await finds(`${property} eq ${literal(3)}`, "p3");
	await finds(`${property} ne ${literal(3)}`, `p1 p2 p4 p5${others}`);
	await finds(`${property} gt ${literal(3)}`, "p4 p5");
	await finds(`${property} ge ${literal(3)}`, "p3 p4 p5");
	await finds(`${property} lt ${literal(3)}`, `p1 p2${others}`);
	await finds(`${property} le ${literal(3)}`, `p1 p2 p3${others}`);
	await finds(`${literal(3)} lt ${property}`, "p4 p5");
	await finds(`not (${property} le ${literal(3)})`, others ? "p4 p5 p9" : "p4 p5 p9 q1");
}

await check("String", () => operators("S", (n) => odata`${`s${n}`}`.replace(/^s\d$/, "'$&'")));
await check("Int32", () => operators("I", (n) => odata`${n}`));
await check("Int64 with L", () => operators("L", (n) => `${n}L`));
await check("Int64 from a bigint", () => operators("L", (n) => odata`${BigInt(n)}`));
await check("Double", () => operators("D", (n) => odata`${n + 0.5}`));
await check("DateTime", () => operators("W", (n) => odata`${when(n)}`));
await check("Guid", () => operators("G", (n) => `guid'${guid(n).toUpperCase()}'`));
await check("Binary with X", () => operators("B", (n) => `X'ab0${n}'`));
await check("Binary with binary", () => operators("B", (n) => `binary'AB0${n}'`));

await check("Boolean", async () => {
	await finds(odata`T eq ${true}`, "p4 p5");
	await finds("T ne true", "p1 p2 p3");
	await finds("T", "p4 p5");
	await finds("not T", "p1 p2 p3 p9 q1");
	await finds("T eq false and I gt 1", "p2 p3");
});

await check("keys", async () => {
	await finds(odata`PartitionKey eq ${"p"} and RowKey eq ${"3"}`, "p3");
	await finds("RowKey eq '1'", "p1 q1");
	await finds("PartitionKey gt 'p'", "q1");
	await finds("PartitionKey eq 'p' and RowKey ge '2' and RowKey lt '4'", "p2 p3");
	await finds("PartitionKey eq 'q' or RowKey eq '5'", "p5 q1");
	await finds("PartitionKey ne 'p'", "q1");
	await finds("not (PartitionKey eq 'p' and RowKey gt '1')", "p1 q1");
	await finds("PartitionKey eq 'none'", "");
	await finds(
		"(PartitionKey eq 'p' and RowKey eq '1') or (PartitionKey eq 'q' and RowKey eq '1')",
		"p1 q1",
	);
});

await check("Timestamp", async () => {
	await finds(odata`Timestamp lt ${new Date(Date.now() - 3600e3)}`, "");
	await finds(odata`Timestamp ge ${new Date(Date.now() - 3600e3)}`, "p1 p2 p3 p4 p5 p9 q1");
});

await check("and, or, not, parentheses", async () => {
	await finds("I eq 1 or I eq 2 and L eq 2L", "p1 p2 q1");
	await finds("(I eq 1 or I eq 2) and L eq 2L", "p2");
	await finds("not (I eq 1) and PartitionKey eq 'p' and not (RowKey eq '9')", "p2 p3 p4 p5");
	await finds("not (not (I eq 2))", "p2");
	await finds("((((I eq 2))))", "p2");
});

await check("a missing property compares false", async () => {
	await finds("Other eq 'x'", "");
	await finds("Other ne 'x'", "p9");
	await finds("Nowhere ne 1", "");
	await finds("not (Nowhere eq 1)", "p1 p2 p3 p4 p5 p9 q1");
});

await check("a wider property compares with a narrower literal", async () => {
	await finds("L eq 3", "p3");
	await finds("L gt 3", "p4 p5");
	await finds("D gt 3", "p3 p4 p5");
	await finds("D lt 3L", "p1 p2");
});

await check("quotes and what a URL would spoil", async () => {
	await finds(odata`Other eq ${"it's"}`, "p9");
	const values = ["a+b&c=d", "50%", "%27", "#?/\\", "ü日本語😀", " ", "'", "''", "; and I eq 1"];
	for (const [i, v] of values.entries())
		await t.createEntity({ partitionKey: "x", rowKey: String(i), V: v });
	for (const [i, v] of values.entries()) await finds(odata`V eq ${v}`, `x${i}`);
	for (const i of values.keys()) await t.deleteEntity("x", String(i));
});

await check("select", async () => {
	const list = async (select, filter) =>
		all(t.listEntities({ queryOptions: { select, filter } }));
	const got = await list(["RowKey", "I", "Other"], "PartitionKey eq 'p'");
	assert.deepEqual(
		got.map((e) => [e.partitionKey, e.rowKey, e.timestamp, e.I, e.Other]),
		[
			[undefined, "1", undefined, 1, null],
			[undefined, "2", undefined, 2, null],
			[undefined, "3", undefined, 3, null],
			[undefined, "4", undefined, 4, null],
			[undefined, "5", undefined, 5, null],
			[undefined, "9", undefined, null, "it's"],
		],
	);
	for (const e of got) assert.match(e.etag, /^W\//);
	// What is filtered need not be selected.
	assert.deepEqual(properties((await list(["S"], "I eq 2"))[0]), { S: "s2" });
});

await check("what is no filter", async () => {
	for (const filter of [
		"I eq",
		"I eq 1 and",
		"eq 1",
		"I eq 1)",
		"(I eq 1",
		"I equals 1",
		"aaa bbb ccc",
		"S eq 'open",
		"I eq 1 I eq 2",
		"W eq datetime'never'",
		"G eq guid'x'",
		"B eq X'0'",
		"I EQ 1",
	])
		await refused(find(filter), 400, "InvalidInput");
	for (const filter of [
		"I eq L",
		"1 eq 1",
		"startswith(S,'s')",
		"substringof('s',S)",
		"I add 1 eq 2",
	])
		await refused(find(filter), 501, "NotImplemented");
});

const many = await newTable("Many");
const name = (n) => String(n).padStart(5, "0");
const range = (a, b) => Array.from({ length: b - a }, (_, i) => name(a + i));
for (let at = 0; at < 2500; at += 100)
	await many.submitTransaction(
		range(at, at + 100).map((rowKey, i) => [
			"create",
			{ partitionKey: at < 1200 ? "a" : "b", rowKey, N: at + i },
		]),
	);

await check("2500 rows, all and by pages", async () => {
	assert.deepEqual(rowKeys(await all(many.listEntities())), range(0, 2500));
	const got = await pages(many.listEntities(), 1000);
	assert.deepEqual(got.flatMap(rowKeys), range(0, 2500));
	assert.deepEqual(
		got.map((p) => p.length),
		[1000, 1000, 500],
	);
	assert.equal(got[2].continuationToken, undefined);
	const small = await pages(many.listEntities(), 70);
	assert.deepEqual(small.flatMap(rowKeys), range(0, 2500));
	assert.deepEqual(
		small.slice(0, -1).map((p) => p.length),
		Array(35).fill(70),
	);
});

await check("no page without a size has more than 1000 rows", async () => {
	const first = await many.listEntities().byPage().next();
	assert.equal(first.value.length, 1000);
	assert.ok(first.value.continuationToken);
});

await check("a continuation token goes on where the page ended", async () => {
	const first = await many.listEntities().byPage({ maxPageSize: 333 }).next();
	const rest = await pages(many.listEntities(), 500, first.value.continuationToken);
	assert.deepEqual(rest.flatMap(rowKeys), range(333, 2500));
	// Another query with the same token; rows that are gone do not matter to it.
	await many.deleteEntity("a", name(333));
	await many.deleteEntity("a", name(334));
	const filtered = await pages(
		many.listEntities({ queryOptions: { filter: "N lt 340" } }),
		5,
		first.value.continuationToken,
	);
	assert.deepEqual(filtered.flatMap(rowKeys), range(335, 340));
	for (const n of [333, 334])
		await many.createEntity({ partitionKey: "a", rowKey: name(n), N: n });
});

await check("pages of a filtered query", async () => {
	const where = async (filter, size) =>
		(await pages(many.listEntities({ queryOptions: { filter } }), size)).flatMap(rowKeys);
	assert.deepEqual(await where("N ge 2400", 7), range(2400, 2500));
	assert.deepEqual(await where("PartitionKey eq 'b' and N lt 1300", 33), range(1200, 1300));
	assert.deepEqual(
		await where("PartitionKey eq 'a' and RowKey ge '01150'", 20),
		range(1150, 1200),
	);
	assert.deepEqual(await where("RowKey eq '00007' or RowKey eq '02007'", 1), [
		name(7),
		name(2007),
	]);
	assert.deepEqual(await where("N lt 0", 1000), []);
});

await check("a page ends before it is larger than 4 MiB", async () => {
	const u = await newTable("Large");
	const large = Object.fromEntries(
		Array.from({ length: 14 }, (_, i) => [`P${i}`, "y".repeat(32000)]),
	);
	for (let i = 0; i < 24; i++)
		await u.createEntity({ partitionKey: "p", rowKey: String(i).padStart(2, "0"), ...large });
	const got = await all(u.listEntities().byPage());
	assert.deepEqual(
		got.flatMap((page) => page.map((e) => e.rowKey)),
		Array.from({ length: 24 }, (_, i) => String(i).padStart(2, "0")),
	);
	assert.ok(got.length >= 3 && got.length <= 12, `${got.length} pages`);
	assert.equal(got[0][0].P13, large.P13);
	const few = await all(u.listEntities({ queryOptions: { select: ["RowKey"] } }));
	assert.equal(few.length, 24);
});

await check("keys of every kind are passed by a continuation token", async () => {
	const u = await newTable("TokenKeys");
	const keys = ["", " ", "!", "%", "'", "+", "=", "a b", "~", "ü", "日本", "\u{e000}", "😀"];
	for (const partitionKey of keys)
		for (const rowKey of keys) await u.createEntity({ partitionKey, rowKey });
	const got = await pages(u.listEntities(), 1);
	const seen = got.flat().map((e) => JSON.stringify([e.partitionKey, e.rowKey]));
	assert.equal(seen.length, keys.length ** 2);
	assert.equal(new Set(seen).size, keys.length ** 2);
	// In the order of the UTF-16 units, which is JavaScript's.
	const order = [...keys].sort();
	assert.deepEqual(
		seen,
		order.flatMap((p) => order.map((r) => JSON.stringify([p, r]))),
	);
});

await check("bad page sizes and tokens", async () => {
	await refused(pages(many.listEntities(), 1001), 400, "InvalidInput");
	await refused(pages(many.listEntities(), -1), 400, "InvalidInput");
	const token = Buffer.from(JSON.stringify({ nextPartitionKey: "not ours", nextRowKey: "x" }));
	await refused(pages(many.listEntities(), 10, token.toString("base64")), 400, "InvalidInput");
	assert.deepEqual(
		await all(many.listEntities({ queryOptions: { filter: "  " } })).then((r) => r.length),
		2500,
	);
});
