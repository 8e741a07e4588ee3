// SPDX-License-Identifier: MIT
// @azure/storage-blob: containers and block blobs.
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { all, assert, check, refused } from "../check.mjs";
import { container, newContainer, service, text } from "./client.mjs";

const names = (blobs) => blobs.map((b) => (b.kind === "prefix" ? ">" : "") + b.name);

await check("create and delete containers", async () => {
	const c = container("photos");
	assert.equal(await c.exists(), false);
	assert.equal((await c.createIfNotExists()).succeeded, true);
	assert.equal((await c.createIfNotExists()).succeeded, false);
	await refused(c.create(), 409, "ContainerAlreadyExists");
	await c.setMetadata({ color: "red & <blue>" });
	assert.deepEqual((await c.getProperties()).metadata, { color: "red & <blue>" });
	await newContainer("photos2");
	assert.deepEqual((await all(service.listContainers({ prefix: "photos", includeMetadata: true }))).map(
		(x) => [x.name, x.metadata?.color]), [["photos", "red & <blue>"], ["photos2", undefined]]);
	await container("photos2").delete();
	await refused(container("photos2").delete(), 404, "ContainerNotFound");
	assert.equal((await c.deleteIfExists()).succeeded, true);
	await refused(container("Bad_Name").create(), 400, "InvalidResourceName");
});

await check("upload and download", async () => {
	const c = await newContainer("updown");
	for (const size of [0, 5, 100000, 9 << 20]) {
		const blob = c.getBlockBlobClient(`a/${size}`), bytes = randomBytes(size);
		const up = await blob.upload(bytes, size, {
			blobHTTPHeaders: { blobContentType: "text/plain", blobCacheControl: "no-cache" },
			metadata: { Key: "value" } });
		assert.deepEqual(Buffer.from(up.contentMD5), createHash("md5").update(bytes).digest());
		assert.ok((await blob.downloadToBuffer()).equals(bytes));
		const p = await blob.getProperties();
		assert.equal(p.contentLength, size);
		assert.equal(p.contentType, "text/plain");
		assert.equal(p.cacheControl, "no-cache");
		assert.equal(p.blobType, "BlockBlob");
		assert.deepEqual(p.metadata, { key: "value" });
		assert.equal(p.etag, up.etag);
	}
	const blob = c.getBlockBlobClient("a/100000");
	assert.equal((await blob.downloadToBuffer(99990, 10)).length, 10);
	const down = await blob.download(5, 10, { rangeGetContentMD5: true });
	assert.equal(down.contentRange, "bytes 5-14/100000");
	assert.equal(down.contentMD5.length, 16);
	await refused(blob.download(100000), 416, "InvalidRange");
	await c.getBlockBlobClient("data").uploadData(Buffer.from("some"));
	assert.equal(await text(c.getBlobClient("data")), "some");
});

await check("a stream of 40 MiB", async () => {
	const c = await newContainer("large"), part = randomBytes(1 << 20), size = 40 << 20;
	const blob = c.getBlockBlobClient("big"), sum = createHash("md5");
	const source = Readable.from((function* () {
		for (let i = 0; i < 40; i++) {
			sum.update(part);
			yield part;
		}
	})());
	await blob.upload(() => source, size);
	const back = createHash("md5");
	for await (const piece of (await blob.download()).readableStreamBody)
		back.update(piece);
	assert.deepEqual(back.digest(), sum.digest());
});

await check("list", async () => {
	const c = await newContainer("lists");
	for (const name of ["a/1", "a/2/x", "b", "ä", "c d?&=<>"])
		await c.getBlockBlobClient(name).upload("x", 1, { metadata: { n: "1" } });
	assert.deepEqual(names(await all(c.listBlobsFlat())), ["a/1", "a/2/x", "b", "c d?&=<>", "ä"]);
	assert.deepEqual(names(await all(c.listBlobsByHierarchy("/"))), [">a/", "b", "c d?&=<>", "ä"]);
	assert.deepEqual(names(await all(c.listBlobsByHierarchy("/", { prefix: "a/" }))), [">a/2/", "a/1"]);
	const found = [];
	for await (const page of c.listBlobsFlat({ includeMetadata: true }).byPage({ maxPageSize: 2 })) {
		assert.ok(page.segment.blobItems.length <= 2);
		for (const item of page.segment.blobItems) {
			assert.deepEqual(item.metadata, { n: "1" });
			assert.equal(item.properties.contentLength, 1);
			found.push(item);
		}
	}
	assert.equal(found.length, 5);
	assert.equal(await text(c.getBlobClient("c d?&=<>")), "x");
});

await check("conditions", async () => {
	const c = await newContainer("conditions"), blob = c.getBlockBlobClient("x");
	const first = (await blob.upload("1", 1)).etag;
	await refused(blob.upload("2", 1, { conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
	const second = (await blob.upload("2", 1, { conditions: { ifMatch: first } })).etag;
	await refused(blob.upload("3", 1, { conditions: { ifMatch: first } }), 412, "ConditionNotMet");
	await refused(blob.getProperties({ conditions: { ifMatch: first } }), 412, "ConditionNotMet");
	await refused(blob.download(0, undefined, { conditions: { ifNoneMatch: second } }), 304, "ConditionNotMet");
	await refused(blob.delete({ conditions: { ifMatch: first } }), 412, "ConditionNotMet");
	await blob.delete({ conditions: { ifMatch: second } });
	assert.equal(await blob.exists(), false);
	assert.equal((await blob.deleteIfExists()).succeeded, false);
});

await check("metadata and properties", async () => {
	const c = await newContainer("properties"), blob = c.getBlockBlobClient("x");
	await blob.upload("1", 1);
	await blob.setMetadata({ a: "1" });
	await blob.setHTTPHeaders({ blobContentType: "text/html", blobContentLanguage: "de" });
	const p = await blob.getProperties();
	assert.deepEqual([p.metadata.a, p.contentType, p.contentLanguage], ["1", "text/html", "de"]);
	await refused(c.getBlobClient("none").setMetadata({}), 404, "BlobNotFound");
});

await check("service", async () => {
	const p = await service.getProperties();
	await service.setProperties({ ...p, cors: [] });
	assert.equal((await service.getAccountInfo()).accountKind, "StorageV2");
	assert.equal((await service.getStatistics()).geoReplication.status, "live");
});
