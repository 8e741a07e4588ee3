// SPDX-License-Identifier: MIT
// The clients that the scripts of @azure/storage-queue share.
import { QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";
import { account, part } from "../check.mjs";

export const endpoint = part("QueueEndpoint");
export const credential = new StorageSharedKeyCredential(account, part("AccountKey"));
// A failure of the server is to be seen, not to be tried again.
export const options = { retryOptions: { maxTries: 1 } };
export const service = new QueueServiceClient(endpoint, credential, options);
export const queue = (name) => service.getQueueClient(name);

export async function newQueue(name) {
	await queue(name).create();
	return queue(name);
}

export const receive = async (q, more) => (await q.receiveMessages(more)).receivedMessageItems;
export const peek = async (q, more) => (await q.peekMessages(more)).peekedMessageItems;
export const texts = (messages) => messages.map((m) => m.messageText);
