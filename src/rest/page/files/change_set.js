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
		Object.assign(this, { route, openChange, openConflict, sent, changes: [] });
		this.toggle = el("input", { type: "checkbox", id: "collect", change: () => this.draw() });
		this.label = el("label", { for: "collect" }, this.toggle, " Collect changes");
		this.hint = el("p", { role: "status" });
		this.list = el("ol");
		this.send = button("Send", () => this.sendAll(), { class: "primary" });
		this.panel = el("section", { class: "change-set", "aria-label": "Change set" }, this.hint, this.list,
			el("p", { class: "actions" }, this.send, button("Discard", () => this.clear())));
		this.draw();
	}

	get isOn() {
		return this.toggle.checked;
	}

	find(keys) {
		return this.changes.find((change) => isOf(change, keys));
	}

	// A later change of a row replaces the earlier one.
	add(change) {
		const first = this.changes[0], at = this.changes.findIndex((one) => isOf(one, change.row));
		if (first && first.row.PartitionKey !== change.row.PartitionKey)
			throw new Error(`All changes of a set are of one partition, here ${first.row.PartitionKey}.`);
		if (at < 0 && this.changes.length === BATCH_ROWS)
			throw new Error(`A set has at most ${BATCH_ROWS} changes. Send these first.`);
		this.changes.splice(at < 0 ? this.changes.length : at, at < 0 ? 0 : 1, change);
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

	draw(refused = -1, why = "") {
		const n = this.changes.length;
		this.panel.hidden = !this.isOn && n === 0;
		this.hint.textContent = n === 0
			? "Insert, edit or delete rows of one partition. Nothing is sent until you send all changes together."
			: `Partition ${this.changes[0].row.PartitionKey}: ${n} ${n === 1 ? "change" : "changes"}, all or nothing.`;
		this.send.textContent = n < 2 ? "Send" : `Send ${n} changes`;
		this.send.disabled = n === 0;
		this.list.replaceChildren(...this.changes.map((change, i) => this.line(change, i === refused ? why : "")));
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

	async sendAll() {
		try {
			await sendBatch(this.route.account, this.route.name, this.changes);
		} catch (error) {
			this.draw(error.index ?? 0, error.message);
			return;
		}
		const n = this.changes.length;
		this.clear();
		this.sent(n);
	}
}
