// SPDX-License-Identifier: MIT
// @azure/storage-blob: page blobs.
import { randomBytes } from "node:crypto";
import { all, assert, check, refused } from "../check.mjs";
import { newContainer } from "./client.mjs";

const GIB = 1024 ** 3;
const ranges = async (blob, ...range) => (await all(blob.listPageRanges(...range))).map((r) => [r.start, r.end]);

await check("pages are written, cleared and listed", async () => {
	const c = await newContainer("disks"), blob = c.getPageBlobClient("a.vhd"), bytes = randomBytes(4096);
	await blob.create(500 * GIB, { blobSequenceNumber: 3, metadata: { os: "none" } });
	await blob.uploadPages(bytes, 8192, 4096);
	await blob.uploadPages(bytes.subarray(0, 512), 400 * GIB, 512);
	await blob.clearPages(9216, 512);
	assert.deepEqual(await ranges(blob), [[8192, 9215], [9728, 12287], [400 * GIB, 400 * GIB + 511]]);
	assert.deepEqual(await ranges(blob, 0, 9000), [[8192, 8999]]);
	const got = await blob.downloadToBuffer(8192, 4096);
	assert.ok(got.subarray(0, 1024).equals(bytes.subarray(0, 1024)));
	assert.ok(got.subarray(1024, 1536).equals(Buffer.alloc(512)));
	const p = await blob.getProperties();
	assert.equal(p.blobType, "PageBlob");
	assert.equal(p.contentLength, 500 * GIB);
	assert.equal(p.blobSequenceNumber, 3);
	await refused(blob.uploadPages(bytes.subarray(0, 512), 100, 512), 416, "InvalidPageRange");
});

await check("page ranges by page", async () => {
	const c = await newContainer("disks2"), blob = c.getPageBlobClient("a.vhd");
	await blob.create(GIB);
	for (let i = 0; i < 5; i++) await blob.uploadPages(Buffer.alloc(512, 1), i * 8192, 512);
	const found = [], pages = [];
	for await (const page of blob.listPageRanges().byPage({ maxPageSize: 2 })) {
		pages.push(page.pageRange.length);
		found.push(...page.pageRange.map((r) => r.start));
	}
	assert.deepEqual(pages, [2, 2, 1]);
	assert.deepEqual(found, [0, 8192, 16384, 24576, 32768]);
});

await check("sizes and sequence numbers", async () => {
	const c = await newContainer("disks3"), blob = c.getPageBlobClient("a.vhd");
	await blob.create(4096);
	await blob.uploadPages(Buffer.alloc(4096, 1), 0, 4096);
	await blob.resize(1024);
	assert.deepEqual(await ranges(blob), [[0, 1023]]);
	assert.equal((await blob.updateSequenceNumber("update", 8)).blobSequenceNumber, 8);
	assert.equal((await blob.updateSequenceNumber("increment")).blobSequenceNumber, 9);
	await refused(blob.uploadPages(Buffer.alloc(512), 0, 512, { conditions: { ifSequenceNumberLessThan: 9 } }),
		412, "SequenceNumberConditionNotMet");
	await refused(blob.getPageRanges(0, 512, { conditions: { ifMatch: '"0x1"' } }), 412, "ConditionNotMet");
});
