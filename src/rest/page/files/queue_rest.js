// SPDX-License-Identifier: MIT
// The Queue service: the messages of one queue.
import { ask, parseXml, queryOf, textOf } from "/http.js";

const FIELDS = { id: "MessageId", receipt: "PopReceipt", inserted: "InsertionTime", expires: "ExpirationTime",
	visible: "TimeNextVisible", taken: "DequeueCount", text: "MessageText" };

function bodyOf(text) {
	const message = document.implementation.createDocument(null, "QueueMessage");
	const inner = message.createElement("MessageText");
	inner.append(text);
	message.documentElement.append(inner);
	return new XMLSerializer().serializeToString(message);
}

export class Queue {
	constructor(account, name) {
		this.path = `/queue/${account}/${name}`;
	}

	create() {
		return ask(this.path, { method: "PUT" });
	}

	// How many messages there are, hidden ones too.
	async count() {
		const answer = await ask(this.path + "?comp=metadata");
		return Number(answer.headers.get("x-ms-approximate-messages-count"));
	}

	async messages(query) {
		const found = parseXml(await (await ask(`${this.path}/messages?${queryOf(query)}`)).text());
		return [...found.getElementsByTagName("QueueMessage")].map((message) => Object.fromEntries(
			Object.entries(FIELDS).map(([field, element]) => [field, textOf(message, element)])));
	}

	peek() {
		return this.messages({ peekonly: "true", numofmessages: 32 });
	}

	take(seconds) {
		return this.messages({ numofmessages: 1, visibilitytimeout: seconds });
	}

	put(text) {
		return ask(this.path + "/messages", { method: "POST", body: bodyOf(text) });
	}

	delete({ id, receipt }) {
		return ask(`${this.path}/messages/${id}?${queryOf({ popreceipt: receipt })}`, { method: "DELETE" });
	}

	// Makes a message that was taken visible at once.  Without a body its text stays.
	giveBack({ id, receipt }) {
		const query = queryOf({ popreceipt: receipt, visibilitytimeout: 0 });
		return ask(`${this.path}/messages/${id}?${query}`, { method: "PUT" });
	}
}
