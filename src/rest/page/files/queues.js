// SPDX-License-Identifier: MIT
// The view of queues: their messages are put, peeked, taken and deleted.
import { listCollections, removeButton } from "/collections.js";
import { attempt, button, el, headOf, scrolled } from "/dom.js";
import { nameForm } from "/name_form.js";
import { Queue } from "/queue_rest.js";
import { shareButton } from "/share.js";

export const id = "queues", title = "Queues";

export function list(account, marker) {
	return listCollections("queue", account, "Queue", marker);
}

// Many clients write base64; the page shows its text if it is UTF-8.
function decoded(text) {
	try {
		const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
		return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
	} catch {
		return text;
	}
}

function encoded(text) {
	return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function time(text) {
	const date = new Date(text);
	return date.getUTCFullYear() >= 9999 ? "never" : date.toLocaleString();
}

function cell(text) {
	return el("td", { title: text }, text);
}

class QueueView {
	constructor(main, route) {
		this.route = route;
		this.queue = new Queue(route.account, route.name);
		this.taken = [];
		this.peeked = [];
		this.text = el("textarea", { id: "message", rows: "2" });
		this.base64 = el("input", { type: "checkbox", id: "base64", change: () => this.draw() });
		this.seconds = el("input", { id: "seconds", type: "number", min: "1", max: "604800", value: "30" });
		this.caption = el("caption");
		this.body = el("tbody", { id: "messages" });
		this.mine = el("tbody", { id: "taken" });
		this.mineBox = el("section", { class: "change-set", "aria-label": "Messages that you took" },
			scrolled("Taken", el("caption", {}, "Taken: hidden from others until the time shown"),
				headOf("Text", "Hidden until", "Taken", ""), this.mine));
		main.append(...this.parts());
	}

	parts() {
		const put = el("form", { submit: (event) => this.put(event) }, el("label", { for: "message" }, "Message"), this.text,
			el("button", { type: "submit", class: "primary" }, "Put"));
		const tools = el("form", { submit: (event) => event.preventDefault() },
			button("Peek", () => this.change(() => null)),
			button("Take one", () => this.take()), el("label", { for: "seconds" }, "hide it for"), this.seconds,
			el("label", { for: "seconds" }, "seconds"),
			el("label", { for: "base64" }, this.base64, " Base64"), el("span", { class: "gap" }),
			shareButton("queue", this.route.account, this.route.name),
			removeButton("queue", this.queue.path, this.route));
		return [put, tools, this.mineBox,
			scrolled("Messages", this.caption, headOf("Text", "Inserted", "Expires", "Taken"), this.body)];
	}

	// Does something and shows the queue anew.
	change(action) {
		return attempt(async () => {
			await action();
			await this.show();
		});
	}

	async show() {
		const [count, peeked] = await Promise.all([this.queue.count(), this.queue.peek()]);
		this.count = count;
		this.peeked = peeked;
		this.draw();
	}

	shownText(message) {
		return this.base64.checked ? decoded(message.text) : message.text;
	}

	draw() {
		const n = this.count ?? 0, shown = this.peeked.length;
		this.caption.textContent =
			`${this.route.name}: ${n} ${n === 1 ? "message" : "messages"}, ${shown} of them visible and shown`;
		this.body.replaceChildren(...this.peeked.map((message) => el("tr", {}, cell(this.shownText(message)),
			cell(time(message.inserted)), cell(time(message.expires)), el("td", { class: "number" }, message.taken))));
		this.mineBox.hidden = this.taken.length === 0;
		this.mine.replaceChildren(...this.taken.map((message) => el("tr", {}, cell(this.shownText(message)),
			cell(time(message.visible)), el("td", { class: "number" }, message.taken), el("td", {},
				button("Delete", () => this.finish(message, () => this.queue.delete(message))), " ",
				button("Give back", () => this.finish(message, () => this.queue.giveBack(message)))))));
	}

	put(event) {
		event.preventDefault();
		void this.change(async () => {
			await this.queue.put(this.base64.checked ? encoded(this.text.value) : this.text.value);
			this.text.value = "";
			this.text.focus();
		});
	}

	take() {
		return this.change(async () => {
			const found = await this.queue.take(this.seconds.value);
			if (found.length === 0)
				throw new Error("No message is visible.");
			this.taken.push(...found);
		});
	}

	drop(message) {
		this.taken = this.taken.filter((one) => one !== message);
		this.draw();
	}

	// The page keeps the receipt if the action fails.
	finish(message, action) {
		return this.change(async () => {
			try {
				await action();
			} catch (error) {
				if (error.status === 404) // somebody else deleted it
					this.drop(message);
				throw error;
			}
			this.drop(message);
		});
	}
}

export function show(main, route) {
	if (route.name !== "")
		return new QueueView(main, route).show();
	main.append(nameForm("Choose a queue, or make one.", "New queue",
		(name) => new Queue(route.account, name).create(), route));
	return null;
}
