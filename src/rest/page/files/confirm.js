// SPDX-License-Identifier: MIT
// Asks before something is done that cannot be taken back.
import { button, el } from "/dom.js";

// Resolves to true if the user chose `action`.
export function confirmed(question, action) {
	return new Promise((resolve) => {
		const dialog = el("dialog", { "aria-labelledby": "question", close: () => {
			dialog.remove();
			resolve(dialog.returnValue === action);
		} }, el("p", { id: "question" }, question), el("p", { class: "actions" },
			button("Cancel", () => dialog.close("")),
			button(action, () => dialog.close(action), { class: "danger" })));
		document.body.append(dialog);
		dialog.showModal();
	});
}
