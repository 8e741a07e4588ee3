// SPDX-License-Identifier: MIT
// A dialog that edits, inserts and deletes one row.  A change has the ETag of the row that was opened;
// if somebody changed the row meanwhile, the dialog shows the versions side by side.
import { button, el, say } from "/dom.js";
import { compare } from "/compare.js";
import { PropertyList } from "/property_list.js";
import { newRow, plainRow } from "/types.js";

const CONFLICTS = new Set([404, 409, 412]);

function keyField(id) {
	return el("input", { id, spellcheck: "false", autocomplete: "off" });
}

export class RowEditor {
	// table has read(keys), which returns null for a row that is not there, apply(change), and
	// focus(change), which moves the focus behind a change.
	constructor(table) {
		this.table = table;
		this.opened = 0; // counts; an answer to an earlier one comes too late
		this.sending = null; // the count for which a change is under way
		this.title = el("h2", { id: "editor-title" });
		this.keys = { PartitionKey: keyField("edit-pk"), RowKey: keyField("edit-rk") };
		this.properties = new PropertyList();
		this.message = el("div", { role: "alert", class: "message" });
		this.remove = button("Delete", () => this.send("delete"), { class: "danger" });
		this.save = el("button", { type: "submit", class: "primary" }, "Save");
		const keys = el("div", { class: "fields" },
			el("label", { for: "edit-pk" }, "PartitionKey"), this.keys.PartitionKey,
			el("label", { for: "edit-rk" }, "RowKey"), this.keys.RowKey);
		const form = el("form", { submit: (event) => this.submit(event) },
			this.title, keys, this.properties.element, this.message,
			el("p", { class: "actions" }, this.remove, el("span", { class: "gap" }),
				button("Cancel", () => this.dialog.close()), this.save));
		this.dialog = el("dialog", { "aria-labelledby": "editor-title", class: "editor" }, form);
	}

	// Opens a row as the grid has it; null: a new one.  The fields show `fields`.  `replaces` is the collected
	// change that a new one replaces.
	open(row, fields = row ?? {}, replaces = null) {
		Object.assign(this, { base: row, replaces, opened: this.opened + 1 });
		this.title.textContent = row ? "Edit a row" : "New row";
		for (const [name, field] of Object.entries(this.keys)) {
			field.value = fields[name] ?? "";
			field.readOnly = row !== null;
		}
		this.remove.hidden = row === null;
		this.save.textContent = row ? "Save" : "Insert";
		this.properties.fill(fields);
		this.message.replaceChildren();
		if (!this.dialog.open)
			this.dialog.showModal();
	}

	// Opens a change that was refused because of the row in the store.
	openConflict(change) {
		this.openChange(change);
		return this.during(() => this.showConflict(change, new Error("The table refused this change.")));
	}

	// Opens a change that was collected.
	openChange(change) {
		this.open(change.before ?? null, change.kind === "delete" ? change.before : change.row, change);
	}

	// Runs an action for the row that is open, and shows its error there; in the status line if another row was
	// opened meanwhile.  A second click does nothing.
	async during(action) {
		const { opened } = this;
		if (this.sending === opened)
			return;
		this.sending = opened;
		this.message.replaceChildren();
		try {
			await action(opened);
		} catch (error) {
			if (opened === this.opened && this.dialog.open)
				this.message.replaceChildren(el("p", {}, error.message));
			else
				say(error.message);
		}
		if (this.sending === opened)
			this.sending = null;
	}

	submit(event) {
		event.preventDefault();
		void this.send(this.base ? "update" : "insert");
	}

	changeOf(kind) {
		const row = newRow({ PartitionKey: this.keys.PartitionKey.value, RowKey: this.keys.RowKey.value });
		if (kind !== "delete")
			this.properties.writeTo(row);
		return { kind, row, etag: this.base?.["odata.etag"], before: this.base, replaces: this.replaces };
	}

	send(kind) {
		return this.during(async (opened) => {
			const change = this.changeOf(kind);
			try {
				await this.table.apply(change);
			} catch (error) {
				if (opened !== this.opened || !CONFLICTS.has(error.status))
					throw error;
				return this.showConflict(change, error);
			}
			if (opened !== this.opened)
				return null;
			this.dialog.close();
			return this.table.focus(change);
		});
	}

	async showConflict(change, error) {
		const { opened } = this, current = await this.table.read(change.row);
		if (opened !== this.opened)
			return;
		if (current === null && change.kind === "insert")
			throw error; // such as a table that is not there
		const mine = change.kind === "delete" ? null : change.row;
		const versions = [["In the store", current], ["Yours", mine]];
		if (change.before)
			versions.unshift(["When you opened it", change.before]);
		const what = current === null ? "Somebody deleted this row meanwhile."
			: change.before ? "Somebody changed this row meanwhile." : "There is such a row already.";
		this.message.replaceChildren(el("p", {}, what),
			el("div", { class: "scroll" }, compare(versions)),
			el("p", { class: "actions" }, ...this.choices(change, current)));
		this.message.scrollIntoView({ block: "end" });
	}

	choices(change, current) {
		if (current === null)
			return change.kind === "delete" ? [] : [button("Insert it anew", () => {
				this.base = null;
				return this.send("insert");
			})];
		const mine = change.kind === "delete" ? "Delete it all the same" : "Overwrite with yours";
		return [button("Take the row of the store", () => this.open(current, current, this.replaces)), button(mine, () => {
			this.base = current;
			return this.send(change.kind === "insert" ? "update" : change.kind);
		})];
	}
}

// The change that takes back the deletion of this row.
export function undoOf(row) {
	return { kind: "insert", row: plainRow(row) };
}
