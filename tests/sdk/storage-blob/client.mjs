// SPDX-License-Identifier: MIT
// The clients that the scripts of @azure/storage-blob share.
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { account, part } from "../check.mjs";

export const endpoint = part("BlobEndpoint");
export const credential = new StorageSharedKeyCredential(account, part("AccountKey"));
// A failure of the server is to be seen, not to be tried again.
export const options = { retryOptions: { maxTries: 1 } };
export const service = new BlobServiceClient(endpoint, credential, options);
export const container = (name) => service.getContainerClient(name);

export async function newContainer(name, more) {
	await container(name).create(more);
	return container(name);
}

export const text = async (blob, ...range) => (await blob.downloadToBuffer(...range)).toString();
