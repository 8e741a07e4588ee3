// SPDX-License-Identifier: MIT
// @azure/storage-blob: copies.
import { randomBytes } from "node:crypto";
import { assert, check, refused } from "../check.mjs";
import { newContainer, text } from "./client.mjs";

await check("copy a blob", async () => {
	const c = await newContainer("copies"), from = c.getBlockBlobClient("x");
	const to = c.getBlockBlobClient("y"), bytes = randomBytes(3 << 20);
	await from.upload(bytes, bytes.length, { metadata: { a: "1" } });
	const poller = await to.beginCopyFromURL(from.url), done = await poller.pollUntilDone();
	assert.equal(done.copyStatus, "success");
	assert.ok((await to.downloadToBuffer()).equals(bytes));
	const p = await to.getProperties();
	assert.deepEqual([p.copyId, p.copySource, p.metadata.a], [done.copyId, from.url, "1"]);
	await refused(to.abortCopyFromURL(done.copyId), 409, "NoPendingCopyOperation");
	for await (const item of c.listBlobsFlat({ includeCopy: true, prefix: "y" }))
		assert.equal(item.properties.copyStatus, "success");
	await from.upload("other", 5);
	assert.equal((await to.syncCopyFromURL(from.url)).copyStatus, "success");
	assert.equal(await text(to), "other");
	const { etag } = await from.getProperties();
	await refused(to.beginCopyFromURL(from.url, { sourceConditions: { ifNoneMatch: etag } }),
		412, "SourceConditionNotMet");
	const made = c.getBlockBlobClient("z");
	await made.syncUploadFromURL(from.url);
	assert.equal(await text(made), "other");
	await refused(to.beginCopyFromURL("http://example.com/x/y"), 404, "CannotVerifyCopySource");
});
