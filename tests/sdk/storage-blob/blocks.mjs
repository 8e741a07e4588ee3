// SPDX-License-Identifier: MIT
// @azure/storage-blob: blobs of blocks, append blobs.
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { all, assert, check, refused } from "../check.mjs";
import { newContainer, text } from "./client.mjs";

const id = (n) => Buffer.from(String(n).padStart(6, "0")).toString("base64");
const blocks = (list) => (list ?? []).map((b) => [b.name, b.size]);

await check("stage and commit blocks", async () => {
	const c = await newContainer("blocks"), blob = c.getBlockBlobClient("x");
	await blob.stageBlock(id(1), "one", 3);
	await blob.stageBlock(id(2), "two2", 4);
	assert.equal(await blob.exists(), false);
	assert.deepEqual((await all(c.listBlobsFlat({ includeUncommitedBlobs: true }))).map((b) => b.name), ["x"]);
	assert.deepEqual(blocks((await blob.getBlockList("uncommitted")).uncommittedBlocks), [[id(1), 3], [id(2), 4]]);
	const done = await blob.commitBlockList([id(2), id(1)], {
		blobHTTPHeaders: { blobContentType: "text/plain" }, metadata: { a: "1" } });
	assert.equal(await text(blob), "two2one");
	const p = await blob.getProperties();
	assert.deepEqual([p.etag, p.contentType, p.metadata.a], [done.etag, "text/plain", "1"]);
	const list = await blob.getBlockList("all");
	assert.deepEqual(blocks(list.committedBlocks), [[id(2), 4], [id(1), 3]]);
	assert.deepEqual(blocks(list.uncommittedBlocks), []);
	await refused(blob.commitBlockList([id(3)]), 400, "InvalidBlockList");
	await refused(blob.stageBlock("YQ==", "x", 1), 400, "InvalidBlobOrBlock");
});

await check("upload a file and a stream in blocks", async () => {
	const c = await newContainer("uploads"), bytes = randomBytes(9_500_000);
	const dir = await mkdtemp(join(tmpdir(), "rowfs-"));
	try {
		await writeFile(join(dir, "f"), bytes);
		const how = { blockSize: 1 << 20, maxSingleShotSize: 1 << 20, concurrency: 5 };
		const file = c.getBlockBlobClient("file"), stream = c.getBlockBlobClient("stream");
		await file.uploadFile(join(dir, "f"), how);
		assert.equal((await file.getBlockList("committed")).committedBlocks.length, 10);
		assert.ok((await file.downloadToBuffer(0, undefined, { blockSize: 1 << 20, concurrency: 5 })).equals(bytes));
		await stream.uploadStream(Readable.from(bytes), 1 << 20, 5);
		assert.ok((await stream.downloadToBuffer()).equals(bytes));
	} finally {
		await rm(dir, { recursive: true });
	}
});

await check("append blobs", async () => {
	const c = await newContainer("appends"), log = c.getAppendBlobClient("log");
	assert.equal((await log.createIfNotExists()).succeeded, true);
	assert.equal((await log.createIfNotExists()).succeeded, false);
	const first = await log.appendBlock("one\n", 4);
	assert.deepEqual([first.blobAppendOffset, first.blobCommittedBlockCount], ["0", 1]);
	const second = await log.appendBlock("two\n", 4, { conditions: { appendPosition: 4 } });
	assert.deepEqual([second.blobAppendOffset, second.blobCommittedBlockCount], ["4", 2]);
	await refused(log.appendBlock("x", 1, { conditions: { appendPosition: 4 } }), 412, "AppendPositionConditionNotMet");
	await refused(log.appendBlock("x", 1, { conditions: { maxSize: 8 } }), 412, "MaxBlobSizeConditionNotMet");
	assert.equal(await text(log), "one\ntwo\n");
	const p = await log.getProperties();
	assert.deepEqual([p.blobType, p.blobCommittedBlockCount], ["AppendBlob", 2]);
	const big = randomBytes(6 << 20);
	await log.appendBlock(big, big.length);
	assert.ok((await log.downloadToBuffer(8)).equals(big));
});
