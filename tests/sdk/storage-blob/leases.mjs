// SPDX-License-Identifier: MIT
// @azure/storage-blob: leases of blobs and containers.
import { assert, check, refused } from "../check.mjs";
import { newContainer, text } from "./client.mjs";

await check("lease a blob", async () => {
	const c = await newContainer("leases"), blob = c.getBlockBlobClient("x");
	await blob.upload("1", 1);
	const lease = blob.getBlobLeaseClient(), { leaseId } = await lease.acquireLease(15);
	assert.equal(leaseId, lease.leaseId);
	const p = await blob.getProperties();
	assert.deepEqual([p.leaseState, p.leaseStatus, p.leaseDuration], ["leased", "locked", "fixed"]);
	await refused(blob.upload("2", 1), 412, "LeaseIdMissing");
	await refused(blob.getBlobLeaseClient().acquireLease(15), 409, "LeaseAlreadyPresent");
	await blob.upload("2", 1, { conditions: { leaseId } });
	assert.equal(await text(blob), "2");
	await lease.renewLease();
	const other = "0f0f0f0f-0000-4000-8000-000000000000";
	assert.equal((await lease.changeLease(other)).leaseId, other);
	await refused(blob.delete({ conditions: { leaseId } }), 412, "LeaseIdMismatchWithBlobOperation");
	await lease.releaseLease();
	assert.equal((await blob.getProperties()).leaseState, "available");
	await lease.acquireLease(-1);
	assert.equal((await lease.breakLease(0)).leaseTime, 0);
	await refused(lease.renewLease(), 409, "LeaseIsBrokenAndCannotBeRenewed");
	for await (const item of c.listBlobsFlat())
		assert.equal(item.properties.leaseState, "broken");
	await blob.delete();
});

await check("lease a container", async () => {
	const c = await newContainer("leases2"), lease = c.getBlobLeaseClient();
	const { leaseId } = await lease.acquireLease(-1);
	assert.equal((await c.getProperties()).leaseDuration, "infinite");
	await refused(c.delete(), 412, "LeaseIdMissing");
	await c.getBlockBlobClient("x").upload("1", 1);
	await c.delete({ conditions: { leaseId } });
	assert.equal(await c.exists(), false);
});
