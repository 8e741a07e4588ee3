// SPDX-License-Identifier: MIT
// @azure/storage-blob: signatures that the library makes, of blobs, containers and accounts.
import {
	AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, BlobSASPermissions, BlobServiceClient,
	BlockBlobClient, ContainerClient, ContainerSASPermissions, generateAccountSASQueryParameters,
	generateBlobSASQueryParameters
} from "@azure/storage-blob";
import { all, assert, check, refused } from "../check.mjs";
import { credential, endpoint, newContainer, options, text } from "./client.mjs";

const soon = () => new Date(Date.now() + 3600e3);
const signed = (values) => generateBlobSASQueryParameters({ expiresOn: soon(), ...values }, credential).toString();
const at = (path, query) => new BlockBlobClient(`${endpoint}/${path}?${query}`, undefined, options);

async function readOnly(version) {
	const name = `v${version}`, c = await newContainer(name);
	await c.getBlockBlobClient("x y").upload("1", 1);
	const read = signed({ containerName: name, blobName: "x y", version,
		permissions: BlobSASPermissions.parse("r"), contentType: "text/html" });
	const blob = at(`${name}/x%20y`, read);
	assert.equal(await text(blob), "1");
	assert.equal((await blob.getProperties()).contentType, "text/html");
	await refused(blob.upload("2", 1), 403, "AuthorizationPermissionMismatch");
	await refused(at(`${name}/other`, read).getProperties(), 403, "AuthenticationFailed");
}

await check("of a blob, in each version", async () => {
	for (const version of ["2015-04-05", "2018-03-28", "2018-11-09", "2020-12-06", "2026-04-06"])
		await readOnly(version);
});

await check("create only", async () => {
	await newContainer("creates");
	const query = signed({ containerName: "creates", blobName: "x", permissions: BlobSASPermissions.parse("c") });
	await at("creates/x", query).upload("1", 1);
	await refused(at("creates/x", query).upload("2", 1), 403, "AuthorizationPermissionMismatch");
});

await check("of a container, with a stored policy", async () => {
	const c = await newContainer("policies");
	await c.getBlockBlobClient("x").upload("1", 1);
	await c.setAccessPolicy(undefined, [{ id: "one", accessPolicy: {
		expiresOn: soon(), permissions: "rl" } }]);
	const policies = (await c.getAccessPolicy()).signedIdentifiers;
	assert.deepEqual(policies.map((p) => [p.id, p.accessPolicy.permissions]), [["one", "rl"]]);
	const query = generateBlobSASQueryParameters(
		{ containerName: "policies", identifier: "one" }, credential).toString();
	const other = new ContainerClient(`${endpoint}/policies?${query}`, undefined, options);
	assert.deepEqual((await all(other.listBlobsFlat())).map((b) => b.name), ["x"]);
	assert.equal(await text(other.getBlobClient("x")), "1");
	await refused(other.getBlockBlobClient("x").upload("2", 1), 403, "AuthorizationPermissionMismatch");
	await c.setAccessPolicy();
	await refused(other.getBlobClient("x").getProperties(), 403, "AuthenticationFailed");
});

await check("of a container", async () => {
	await newContainer("whole");
	const query = signed({ containerName: "whole", permissions: ContainerSASPermissions.parse("rwdl") });
	const c = new ContainerClient(`${endpoint}/whole?${query}`, undefined, options);
	await c.getBlockBlobClient("a/b").upload("1", 1);
	assert.deepEqual((await all(c.listBlobsFlat())).map((b) => b.name), ["a/b"]);
	await c.deleteBlob("a/b");
	await refused(c.delete(), 403, "AuthorizationFailure");
});

await check("of an account", async () => {
	const c = await newContainer("accounts");
	await c.getBlockBlobClient("x").upload("1", 1);
	const query = generateAccountSASQueryParameters({
		expiresOn: soon(), permissions: AccountSASPermissions.parse("rl"),
		resourceTypes: AccountSASResourceTypes.parse("so").toString(),
		services: AccountSASServices.parse("b").toString() }, credential).toString();
	const service = new BlobServiceClient(`${endpoint}?${query}`, undefined, options);
	assert.ok((await all(service.listContainers())).some((x) => x.name === "accounts"));
	assert.equal(await text(service.getContainerClient("accounts").getBlobClient("x")), "1");
	await refused(service.getContainerClient("accounts").create(), 403, "AuthorizationResourceTypeMismatch");
});

await check("public access", async () => {
	const c = await newContainer("open", { access: "blob" });
	await c.getBlockBlobClient("x").upload("1", 1);
	assert.equal((await c.getProperties()).blobPublicAccess, "blob");
	const other = new ContainerClient(`${endpoint}/open`, undefined, options);
	assert.equal(await text(other.getBlobClient("x")), "1");
	await refused(all(other.listBlobsFlat()), 401, "NoAuthenticationInformation");
});
