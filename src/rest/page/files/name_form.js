// SPDX-License-Identifier: MIT
// A form that makes a table, a queue or a container.
import { attempt, el } from "/dom.js";

export function nameForm(hint, label, create, route) {
	const name = el("input", { id: "new-name", required: true, spellcheck: "false", autocomplete: "off" });
	const form = el("form", {
		submit(event) {
			event.preventDefault();
			void attempt(async () => {
				await create(name.value);
				await route.listNames();
				route.open(name.value);
			});
		},
	}, el("label", { for: "new-name" }, label), name, el("button", { type: "submit" }, "Make"));
	return el("div", {}, el("p", { class: "hint" }, hint), form);
}
