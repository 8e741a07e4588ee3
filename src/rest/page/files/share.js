// SPDX-License-Identifier: MIT
// A dialog that makes a shared access signature: a URL that gives others access for a time.  The server
// signs it; no key is in the browser.
import { encodedName } from "/blob_rest.js";
import { queryOf } from "/http.js";
import { data } from "/data.js";
import { button, el } from "/dom.js";

// Letters in the order in which services want them.
const RIGHTS = {
	table: { r: "read", a: "add", u: "update", d: "delete" },
	queue: { r: "peek", a: "put", u: "update", p: "take and delete" },
	container: { r: "read", a: "append", c: "create", w: "write", d: "delete", l: "list" },
	blob: { r: "read", a: "append", c: "create", w: "write", d: "delete" },
};
const HOURS = [[1, "1 hour"], [24, "1 day"], [168, "7 days"], [720, "30 days"]];

function addressOf(endpoint, account, name, token) {
	const base = endpoint.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
	const [parent, ...rest] = name.split("/");
	return `${base}/${account}/${parent}${rest.length > 0 ? "/" + encodedName(rest.join("/")) : ""}?${token}`;
}

class Share {
	// what: a name of RIGHTS.
	constructor(what, account, name) {
		Object.assign(this, { what, account, name });
		this.letters = Object.entries(RIGHTS[what]).map(([letter, right]) => ({
			letter, right, box: el("input", { type: "checkbox", id: `right-${letter}`, checked: letter === "r" }),
		}));
		this.hours = el("select", { id: "hours" }, ...HOURS.map(([hours, text]) => el("option",
			{ value: hours, selected: hours === 24 }, text)));
		this.result = el("div", { role: "status" });
		this.make = el("button", { type: "submit", class: "primary" }, "Make a link");
		const rights = el("fieldset", {}, el("legend", {}, "Others may"), ...this.letters.map(({ letter, right, box }) =>
			el("label", { for: `right-${letter}` }, box, " " + right)));
		const form = el("form", { submit: (event) => this.submit(event) }, el("h2", { id: "share-title" }, `Share ${name}`),
			rights, el("p", {}, el("label", { for: "hours" }, "for "), this.hours),
			this.result, el("p", { class: "actions" }, el("span", { class: "gap" }),
				button("Close", () => this.dialog.close()), this.make));
		this.dialog = el("dialog", { "aria-labelledby": "share-title", close: () => this.dialog.remove() }, form);
	}

	open() {
		document.body.append(this.dialog);
		this.dialog.showModal();
		this.make.focus();
	}

	async submit(event) {
		event.preventDefault();
		const permissions = this.letters.filter(({ box }) => box.checked).map(({ letter }) => letter).join("");
		const service = RIGHTS[this.what] === RIGHTS.container ? "blob" : this.what;
		try {
			this.show(await data(`/sas/${this.account}?` +
				queryOf({ service, name: this.name, permissions, hours: this.hours.value })));
		} catch (error) {
			this.result.replaceChildren(el("p", { class: "message" }, error.message));
		}
	}

	show({ token, expiry, endpoint }) {
		const text = endpoint === "" ? token : addressOf(endpoint, this.account, this.name, token);
		const hint = endpoint === "" ? "This process has no socket for this service. Put the token behind the URL of the resource. It ends at "
			: "Everybody who has this link has the access, until ";
		const field = el("textarea", { readonly: true, "aria-label": "Link", class: "token", rows: "4" }, text);
		const copy = button("Copy", async () => {
			await navigator.clipboard.writeText(text);
			copy.textContent = "Copied";
		});
		this.result.replaceChildren(field, el("p", { class: "hint" }, `${hint}${new Date(expiry).toLocaleString()}.`), copy);
		field.select();
	}
}

export function shareButton(what, account, name, properties) {
	return button("Share", () => new Share(what, account, name).open(), properties);
}
