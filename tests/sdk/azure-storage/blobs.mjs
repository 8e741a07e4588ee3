// SPDX-License-Identifier: MIT
// azure-storage 2.10: its client of blobs: containers, properties, leases, copies, snapshots and SAS.
import azure from "azure-storage";
import { assert, check, connection, part } from "../check.mjs";
import { promises, refused } from "./client.mjs";

const s = promises(azure.createBlobService(connection));
const names = (list) => list.entries.map((e) => e.name);
const text = (container, blob, options = {}) => s.getBlobToText(container, blob, options);

await check("containers and their lists", async () => {
	await s.createContainer("apple-1", { metadata: { kind: "fruit" } });
	await refused(s.createContainer("apple-1"), 409, "ContainerAlreadyExists");
	assert.equal((await s.createContainerIfNotExists("apple-1")).created, false);
	assert.equal((await s.createContainerIfNotExists("apple-2")).created, true);
	await s.createContainer("pear");
	assert.equal((await s.doesContainerExist("pear")).exists, true);
	assert.equal((await s.doesContainerExist("none")).exists, false);
	assert.deepEqual(names(await s.listContainersSegmented(null)), ["apple-1", "apple-2", "pear"]);
	const apples = await s.listContainersSegmentedWithPrefix("apple", null, { maxResults: 1 });
	assert.deepEqual(names(apples), ["apple-1"]);
	const rest = await s.listContainersSegmentedWithPrefix("apple", apples.continuationToken);
	assert.deepEqual(names(rest), ["apple-2"]);
	assert.deepEqual((await s.getContainerMetadata("apple-1")).metadata, { kind: "fruit" });
	await s.setContainerMetadata("apple-1", { kind: "pome" });
	assert.deepEqual((await s.getContainerProperties("apple-1")).metadata, { kind: "pome" });
	await s.deleteContainer("apple-2");
	await refused(s.deleteContainer("apple-2"), 404, "ContainerNotFound");
	assert.equal(await s.deleteContainerIfExists("apple-2"), false);
});

await check("blobs and their lists", async () => {
	await s.createContainer("list");
	for (const name of ["a/1", "a/2", "b/1", "c"]) await s.createBlockBlobFromText("list", name, name);
	assert.deepEqual(names(await s.listBlobsSegmented("list", null)), ["a/1", "a/2", "b/1", "c"]);
	const first = await s.listBlobsSegmentedWithPrefix("list", "a/", null, { maxResults: 1 });
	assert.deepEqual(names(first), ["a/1"]);
	const next = await s.listBlobsSegmentedWithPrefix("list", "a/", first.continuationToken);
	assert.deepEqual(names(next), ["a/2"]);
	assert.deepEqual(names(await s.listBlobDirectoriesSegmented("list", null)), ["a/", "b/"]);
	assert.equal((await s.doesBlobExist("list", "c")).exists, true);
	await s.deleteBlob("list", "c");
	await refused(s.deleteBlob("list", "c"), 404, "BlobNotFound");
	assert.equal(await s.deleteBlobIfExists("list", "c"), false);
	assert.equal((await s.doesBlobExist("list", "c")).exists, false);
});

await check("properties, metadata and conditions", async () => {
	await s.createContainer("props");
	const contentSettings = { contentType: "text/plain", contentLanguage: "de", cacheControl: "no-cache" };
	const made = await s.createBlockBlobFromText("props", "a", "hello", { contentSettings, metadata: { one: "1" } });
	const got = await s.getBlobProperties("props", "a");
	assert.equal(got.etag, made.etag);
	assert.deepEqual([got.contentLength, got.blobType], ["5", "BlockBlob"]);
	for (const [name, value] of Object.entries(contentSettings)) assert.equal(got.contentSettings[name], value);
	await s.setBlobProperties("props", "a", { contentType: "text/html" });
	await s.setBlobMetadata("props", "a", { two: "2" });
	const changed = await s.getBlobProperties("props", "a");
	assert.deepEqual([changed.contentSettings.contentType, changed.metadata], ["text/html", { two: "2" }]);
	assert.equal(changed.contentSettings.contentLanguage, undefined);
	assert.deepEqual((await s.getBlobMetadata("props", "a")).metadata, { two: "2" });
	const stale = { accessConditions: { EtagMatch: made.etag } };
	await refused(s.setBlobMetadata("props", "a", { three: "3" }, stale), 412, "ConditionNotMet");
	await s.setBlobMetadata("props", "a", {}, { accessConditions: { EtagMatch: changed.etag } });
	const isNew = { accessConditions: { EtagNonMatch: "*" } };
	await refused(s.createBlockBlobFromText("props", "a", "x", isNew), 409, "BlobAlreadyExists");
});

await check("leases", async () => {
	await s.createContainer("leases");
	await s.createBlockBlobFromText("leases", "a", "1");
	const { id } = await s.acquireLease("leases", "a", { leaseDuration: 15 });
	await refused(s.createBlockBlobFromText("leases", "a", "2"), 412, "LeaseIdMissing");
	await s.createBlockBlobFromText("leases", "a", "3", { leaseId: id });
	await s.renewLease("leases", "a", id);
	const other = "11111111-2222-3333-4444-555555555555";
	assert.equal((await s.changeLease("leases", "a", id, other)).id, other);
	await s.releaseLease("leases", "a", other);
	await s.acquireLease("leases", "a", { leaseDuration: -1 });
	await s.breakLease("leases", "a", { leaseBreakPeriod: 0 });
	assert.equal((await s.getBlobProperties("leases", "a")).lease.state, "broken");
	assert.equal(await text("leases", "a"), "3");
});

await check("snapshots and copies", async () => {
	await s.createContainer("shots");
	await s.createBlockBlobFromText("shots", "a", "before");
	const snapshotId = await s.createBlobSnapshot("shots", "a", { metadata: { kept: "yes" } });
	await s.createBlockBlobFromText("shots", "a", "after");
	assert.equal(await text("shots", "a", { snapshotId }), "before");
	const listed = await s.listBlobsSegmented("shots", null, { include: "snapshots" });
	assert.deepEqual(listed.entries.map((e) => e.snapshot), [undefined, snapshotId]);
	await refused(s.deleteBlob("shots", "a"), 409, "SnapshotsPresent");
	const copied = await s.startCopyBlob(`${s.getUrl("shots", "a")}?snapshot=${snapshotId}`, "shots", "b");
	assert.equal(copied.copy.status, "success");
	assert.equal(await text("shots", "b"), "before");
	const done = s.abortCopyBlob("shots", "b", copied.copy.id);
	await refused(done, 409, "NoPendingCopyOperation");
	await s.deleteBlob("shots", "a", { deleteSnapshots: azure.BlobUtilities.SnapshotDeleteOptions.BLOB_AND_SNAPSHOTS });
	assert.deepEqual(names(await s.listBlobsSegmented("shots", null, { include: "snapshots" })), ["b"]);
});

await check("tiers", async () => {
	await s.createContainer("tiers");
	await s.createBlockBlobFromText("tiers", "a", "x");
	await s.setBlobTier("tiers", "a", "Archive");
	await refused(text("tiers", "a"), 409, "BlobArchived");
	await s.setBlobTier("tiers", "a", "Hot");
	assert.equal(await text("tiers", "a"), "x");
});

await check("properties and statistics of the service", async () => {
	const rule = {
		AllowedOrigins: ["http://a.example"],
		AllowedMethods: ["GET"],
		AllowedHeaders: [],
		ExposedHeaders: [],
		MaxAgeInSeconds: 60,
	};
	await s.setServiceProperties({ Cors: { CorsRule: [rule] } });
	assert.deepEqual((await s.getServiceProperties()).Cors.CorsRule[0].AllowedOrigins, ["http://a.example"]);
	await s.setServiceProperties({ Cors: {} });
	assert.equal((await s.getServiceStats()).GeoReplication.Status, "live");
	for (const path of [[null, null], ["list", null], ["list", "a/1"]])
		assert.equal((await s.getAccountProperties(...path)).AccountKind, "StorageV2");
});

await check("a SAS, by its own terms and by a stored policy, and public access", async () => {
	await s.createContainer("sas");
	await s.createBlockBlobFromText("sas", "a", "hello");
	const end = new Date(Date.now() + 3600e3), host = part("BlobEndpoint");
	const by = (token) => promises(azure.createBlobServiceWithSas(host, token));
	const own = s.generateSharedAccessSignature("sas", "a", { AccessPolicy: { Permissions: "r", Expiry: end } },
		{ contentType: "text/x-own" });
	assert.ok(s.getUrl("sas", "a", own).startsWith(`${host}/sas/a?`));
	assert.equal((await by(own).getBlobProperties("sas", "a")).contentSettings.contentType, "text/x-own");
	await refused(by(own).createBlockBlobFromText("sas", "a", "x"), 403, "AuthorizationPermissionMismatch");
	await s.setContainerAcl("sas", { writers: { Permissions: "w", Expiry: end } });
	assert.equal((await s.getContainerAcl("sas")).signedIdentifiers.writers.Permissions, "w");
	const policy = by(s.generateSharedAccessSignature("sas", undefined, { Id: "writers" }));
	await policy.createBlockBlobFromText("sas", "b", "new");
	await refused(policy.getBlobProperties("sas", "b"), 403, "Forbidden");
	await s.setContainerAcl("sas", null, { publicAccessLevel: "blob" });
	const anonymous = promises(azure.createBlobServiceAnonymous(host));
	assert.equal(await anonymous.getBlobToText("sas", "b"), "new");
	await refused(anonymous.deleteBlob("sas", "b"), 401, "NoAuthenticationInformation");
});
