// SPDX-License-Identifier: MIT
// Changes of one partition that the user collects and sends together.
import { BATCH_ROWS, sendBatch } from "/batch.js";
import { button, el } from "/dom.js";

const VERBS = { insert: "Insert", update: "Update", delete: "Delete" };

function isOf(change, keys) {
	return change.row.PartitionKey === keys.PartitionKey && change.row.RowKey === keys.RowKey;
}

export class ChangeSet {
	// openChange is called with a change that the user chose, openConflict with one that was refused, sent
	// when all are in the store.
	constructor(route, { openChange, openConflict, sent }) {
		Object.assign(this, { route, openChange, openConflict, sent, changes: [], sending: false });
		this.toggle = el("input", { type: "checkbox", id: "collect", change: () => this.draw() });
		this.label = el("label", { for: "collect" }, this.toggle, " Collect changes");
		this.hint = el("p", { role: "status" });
		this.list = el("ol");
		this.message = el("p", { role: "alert", class: "message" });
		this.send = button("Send", () => this.sendAll(), { class: "primary" });
		this.panel = el("section", { class: "change-set", "aria-label": "Change set" }, this.hint, this.list, this.message,
			el("p", { class: "actions" }, this.send, button("Discard", () => this.clear())));
		this.draw();
	}

	get isOn() {
		return this.toggle.checked;
	}

	find(keys) {
		return this.changes.find((change) => isOf(change, keys));
	}

	// A later change of a row replaces the earlier one; change.replaces is a change that had other keys.
	add(change) {
		const isReplaced = (one) => one === change.replaces || isOf(one, change.row);
		const others = this.changes.filter((one) => !isReplaced(one)), [first] = others;
		if (first && first.row.PartitionKey !== change.row.PartitionKey)
			throw new Error(`All changes of a set are of one partition, here ${first.row.PartitionKey}.`);
		if (others.length === BATCH_ROWS)
			throw new Error(`A set has at most ${BATCH_ROWS} changes. Send these first.`);
		const at = this.changes.findIndex(isReplaced);
		others.splice(at < 0 ? others.length : at, 0, change);
		this.changes = others;
		this.draw();
	}

	remove(change) {
		this.changes = this.changes.filter((one) => one !== change);
		this.draw();
	}

	clear() {
		this.changes = [];
		this.draw();
	}

	// refused: the change that the table refused, and why.
	draw(refused = null, why = "") {
		const n = this.changes.length;
		this.panel.hidden = !this.isOn && n === 0;
		this.hint.textContent = n === 0
			? "Insert, edit or delete rows of one partition. Nothing is sent until you send all changes together."
			: `Partition ${this.changes[0].row.PartitionKey}: ${n} ${n === 1 ? "change" : "changes"}, all or nothing.`;
		this.send.textContent = n < 2 ? "Send" : `Send ${n} changes`;
		this.send.disabled = n === 0 || this.sending;
		this.message.textContent = "";
		this.list.replaceChildren(...this.changes.map((change) => this.line(change, change === refused ? why : "")));
	}

	line(change, why) {
		const line = el("li", {},
			button(`${VERBS[change.kind]} ${change.row.RowKey}`, () => this.openChange(change), { class: "link" }),
			" ", button("×", () => this.remove(change),
				{ class: "link", "aria-label": `Leave out row ${change.row.RowKey}`, title: "Leave out" }));
		if (why !== "")
			line.append(el("span", { role: "alert", class: "message" }, `Nothing was changed: ${why} `),
				button("Compare", () => this.openConflict(change)));
		return line;
	}

	// The user may go on collecting meanwhile.
	async sendAll() {
		const sent = [...this.changes];
		this.sending = true;
		this.draw();
		try {
			await sendBatch(this.route.account, this.route.name, sent);
			this.changes = this.changes.filter((change) => !sent.includes(change));
			this.endSending();
			this.sent(sent.length);
		} catch (error) {
			this.endSending(error, sent);
		}
	}

	endSending(error, sent) {
		this.sending = false;
		this.draw(sent?.[error.index], error?.message);
		if (error && error.index === undefined)
			this.message.textContent = `${error.message} It is not known whether the changes were made.`;
	}
}
