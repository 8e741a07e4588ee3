// SPDX-License-Identifier: MIT
// azure-storage 2.10: its client of blobs: content as blocks, appended and as pages.
import azure from "azure-storage";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { assert, check, connection } from "../check.mjs";
import { promises, refused } from "./client.mjs";

const GIB = 1024 ** 3;
const s = promises(azure.createBlobService(connection));
const plain = azure.createBlobService(connection); // for streams, which are no promises
const stream = (bytes) => Readable.from([bytes], { objectMode: false });

const collected = (source) =>
	new Promise((done, failed) => {
		const parts = [];
		source.on("data", (bytes) => parts.push(bytes));
		source.on("end", () => done(Buffer.concat(parts)));
		source.on("error", failed);
	});

async function content(container, blob, options = {}) {
	const sink = new PassThrough(), got = collected(sink);
	await s.getBlobToStream(container, blob, sink, options);
	return got;
}

// Sends the bytes through the stream that the client's method makes.
const through = (bytes, method, ...how) =>
	new Promise((done, failed) => {
		stream(bytes).pipe(plain[method](...how, (error) => (error ? failed(error) : done())));
	});

const pieces = (blocks) => (blocks ?? []).map((b) => b.Name);
const ranges = (list) => list.map((r) => [r.start, r.end]);

await check("blocks are staged, listed and committed", async () => {
	await s.createContainer("blocks");
	const put = (id, bytes) => s.createBlockFromText(id, "blocks", "a", bytes);
	await put("1", "one");
	await s.createBlockFromStream("2", "blocks", "a", stream(Buffer.from("two")), 3);
	await put("3", "three");
	await refused(s.getBlobProperties("blocks", "a"), 404, "NotFound");
	assert.deepEqual(pieces((await s.listBlocks("blocks", "a", "uncommitted")).UncommittedBlocks), ["1", "2", "3"]);
	await s.commitBlocks("blocks", "a", { LatestBlocks: ["2", "1"] });
	assert.equal(await s.getBlobToText("blocks", "a"), "twoone");
	const all = await s.listBlocks("blocks", "a", "all");
	assert.deepEqual([pieces(all.CommittedBlocks), pieces(all.UncommittedBlocks)], [["2", "1"], []]);
	await put("4", "four");
	await s.commitBlocks("blocks", "a", { CommittedBlocks: ["1"], UncommittedBlocks: ["4"] });
	assert.equal(await s.getBlobToText("blocks", "a"), "onefour");
	await refused(s.commitBlocks("blocks", "a", { LatestBlocks: ["9"] }), 400, "InvalidBlockList");
});

await check("a large file in blocks, and its ranges", async () => {
	await s.createContainer("large");
	const dir = await mkdtemp(join(tmpdir(), "rowfs-"));
	try {
		const file = join(dir, "file"), bytes = randomBytes(40 * 1024 * 1024 + 7);
		await writeFile(file, bytes);
		await s.createBlockBlobFromLocalFile("large", "a", file, {
			blockSize: 4 * 1024 * 1024,
			parallelOperationThreadCount: 4,
			storeBlobContentMD5: true,
		});
		const { contentLength, contentSettings } = await s.getBlobProperties("large", "a");
		assert.equal(Number(contentLength), bytes.length);
		assert.equal(contentSettings.contentMD5, createHash("md5").update(bytes).digest("base64"));
		await s.getBlobToLocalFile("large", "a", join(dir, "copy"), { parallelOperationThreadCount: 4 });
		assert.ok((await readFile(join(dir, "copy"))).equals(bytes));
		const range = { rangeStart: 4194300, rangeEnd: 4194309 };
		assert.ok((await content("large", "a", range)).equals(bytes.subarray(4194300, 4194310)));
	} finally {
		await rm(dir, { recursive: true });
	}
});

await check("streams in both directions", async () => {
	await s.createContainer("streams");
	const bytes = randomBytes(9 * 1024 * 1024);
	await through(bytes, "createWriteStreamToBlockBlob", "streams", "a", { blockSize: 1024 * 1024 });
	assert.ok((await collected(plain.createReadStream("streams", "a"))).equals(bytes));
	await s.createBlockBlobFromStream("streams", "b", stream(bytes), bytes.length);
	assert.ok((await content("streams", "b")).equals(bytes));
});

await check("append blobs", async () => {
	await s.createContainer("logs");
	await s.createOrReplaceAppendBlob("logs", "a");
	assert.equal((await s.appendBlockFromText("logs", "a", "one\n")).appendOffset, "0");
	const second = await s.appendBlockFromStream("logs", "a", stream(Buffer.from("two\n")), 4);
	assert.deepEqual([second.appendOffset, second.committedBlockCount], ["4", "2"]);
	await refused(s.appendBlockFromText("logs", "a", "x", { appendPosition: 1 }), 412, "AppendPositionConditionNotMet");
	await refused(s.appendBlockFromText("logs", "a", "x", { maxBlobSize: 8 }), 412, "MaxBlobSizeConditionNotMet");
	await s.appendFromText("logs", "a", "three\n");
	await s.appendFromStream("logs", "a", stream(Buffer.from("four\n")), 5);
	assert.equal(await s.getBlobToText("logs", "a"), "one\ntwo\nthree\nfour\n");
	await s.createAppendBlobFromText("logs", "b", "new");
	assert.equal((await s.getBlobProperties("logs", "b")).blobType, "AppendBlob");
	await refused(s.createBlockFromText("1", "logs", "b", "x"), 409, "InvalidBlobType");
});

await check("pages are written, cleared and listed", async () => {
	await s.createContainer("disks");
	const bytes = randomBytes(4096);
	await s.createPageBlob("disks", "a.vhd", 500 * GIB, { blobSequenceNumber: 3 });
	await s.createPagesFromStream("disks", "a.vhd", stream(bytes), 8192, 12287);
	await s.createPagesFromStream("disks", "a.vhd", stream(bytes.subarray(0, 512)), 400 * GIB, 400 * GIB + 511);
	await s.clearPageRange("disks", "a.vhd", 9216, 9727);
	assert.deepEqual(ranges(await s.listPageRanges("disks", "a.vhd")),
		[[8192, 9215], [9728, 12287], [400 * GIB, 400 * GIB + 511]]);
	const within = { rangeStart: 0, rangeEnd: 8703 };
	assert.deepEqual(ranges(await s.listPageRanges("disks", "a.vhd", within)), [[8192, 8703]]);
	const got = await content("disks", "a.vhd", { rangeStart: 8192, rangeEnd: 12287 });
	bytes.fill(0, 1024, 1536);
	assert.ok(got.equals(bytes));
	const wrong = s.createPagesFromStream("disks", "a.vhd", stream(bytes), 8192, 12287, {
		accessConditions: { EtagMatch: '"0x1"' },
	});
	await refused(wrong, 412, "ConditionNotMet");
});

await check("sizes and sequence numbers of page blobs", async () => {
	const numbers = azure.BlobUtilities.SequenceNumberAction;
	await s.createPageBlob("disks", "b.vhd", 4096);
	await s.createPagesFromStream("disks", "b.vhd", stream(Buffer.alloc(4096, 1)), 0, 4095);
	await s.resizePageBlob("disks", "b.vhd", 1024);
	assert.deepEqual(ranges(await s.listPageRanges("disks", "b.vhd")), [[0, 1023]]);
	await s.setPageBlobSequenceNumber("disks", "b.vhd", numbers.UPDATE, 8);
	await s.setPageBlobSequenceNumber("disks", "b.vhd", numbers.INCREMENT, undefined);
	assert.equal((await s.getBlobProperties("disks", "b.vhd")).sequenceNumber, "9");
});

await check("the difference of page ranges to a snapshot", async () => {
	await s.createPageBlob("disks", "c.vhd", 8192);
	await s.createPagesFromStream("disks", "c.vhd", stream(Buffer.alloc(1024, 1)), 0, 1023);
	const before = await s.createBlobSnapshot("disks", "c.vhd");
	await s.createPagesFromStream("disks", "c.vhd", stream(Buffer.alloc(512, 2)), 4096, 4607);
	await s.clearPageRange("disks", "c.vhd", 512, 1023);
	const found = await s.getPageRangesDiff("disks", "c.vhd", before);
	assert.deepEqual(found.map((r) => [r.start, r.end, r.isCleared]), [[4096, 4607, false], [512, 1023, true]]);
});

await check("a file as a page blob", async () => {
	const dir = await mkdtemp(join(tmpdir(), "rowfs-"));
	try {
		const file = join(dir, "disk"), bytes = Buffer.concat([randomBytes(1024), Buffer.alloc(8 * 1024 * 1024), randomBytes(1024)]);
		await writeFile(file, bytes);
		await s.createPageBlobFromLocalFile("disks", "d.vhd", file);
		assert.ok((await content("disks", "d.vhd")).equals(bytes));
		const found = ranges(await s.listPageRanges("disks", "d.vhd"));
		assert.deepEqual([found[0][0], found.at(-1)[1]], [0, bytes.length - 1]);
	} finally {
		await rm(dir, { recursive: true });
	}
});
