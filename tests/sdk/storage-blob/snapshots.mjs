// SPDX-License-Identifier: MIT
// @azure/storage-blob: snapshots.
import { all, assert, check, refused } from "../check.mjs";
import { newContainer, text } from "./client.mjs";

await check("snapshots of a blob", async () => {
	const c = await newContainer("snapshots"), blob = c.getBlockBlobClient("x");
	await blob.upload("1", 1);
	const { snapshot } = await blob.createSnapshot({ metadata: { a: "1" } });
	await blob.upload("2", 1);
	const old = blob.withSnapshot(snapshot);
	assert.equal(await text(old), "1");
	assert.equal(await text(blob), "2");
	assert.equal((await old.getProperties()).metadata.a, "1");
	assert.deepEqual((await all(c.listBlobsFlat({ includeSnapshots: true }))).map((b) => b.snapshot),
		[undefined, snapshot]);
	await refused(blob.delete(), 409, "SnapshotsPresent");
	assert.equal((await (await blob.beginCopyFromURL(old.url)).pollUntilDone()).copyStatus, "success");
	assert.equal(await text(blob), "1");
	await old.delete();
	await blob.createSnapshot();
	await blob.delete({ deleteSnapshots: "include" });
	assert.equal((await all(c.listBlobsFlat({ includeSnapshots: true }))).length, 0);
});

await check("page ranges since a snapshot", async () => {
	const c = await newContainer("snapshots2"), blob = c.getPageBlobClient("a.vhd");
	await blob.create(4096);
	await blob.uploadPages(Buffer.alloc(1024, 1), 0, 1024);
	const { snapshot } = await blob.createSnapshot();
	await blob.uploadPages(Buffer.alloc(512, 2), 0, 512);
	await blob.clearPages(512, 512);
	const diff = await blob.getPageRangesDiff(0, 4096, snapshot);
	assert.deepEqual(diff.pageRange.map((r) => r.offset), [0]);
	assert.deepEqual(diff.clearRange.map((r) => r.offset), [512]);
});
