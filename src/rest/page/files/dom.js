// SPDX-License-Identifier: MIT
// Small words for the document.

export const at = (id) => document.getElementById(id);

// Makes an element.  A property whose value is a function is an event's handler; undefined, null and
// false leave an attribute out.
export function el(tag, properties = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(properties)) {
		if (typeof value === "function")
			made.addEventListener(name, value);
		else if (value !== undefined && value !== null && value !== false)
			made.setAttribute(name, value === true ? "" : value);
	}
	made.append(...children);
	return made;
}

export function button(text, action, properties = {}) {
	return el("button", { type: "button", click: action, ...properties }, text);
}

// A table's head with these titles.
export function headOf(...titles) {
	return el("thead", {}, el("tr", {}, ...titles.map((title) => el("th", { scope: "col" }, title))));
}

// A table that scrolls by itself, also by keyboard.
export function scrolled(label, ...parts) {
	return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", {}, ...parts));
}

export function say(text) {
	at("status").textContent = text;
}

// Runs an action and shows its error, if any, in the status line.  Returns true if it succeeded.
export async function attempt(action) {
	try {
		say("");
		await action();
		return true;
	} catch (error) {
		if (error.name !== "AbortError")
			say(error.message);
		return false;
	}
}

// Tells what was done, with a button that takes it back.  It stays until the next offer or view.
export function offer(text, label, action) {
	const taker = button(label, async () => {
		taker.disabled = true; // a second click would take back what is back
		if (await attempt(action))
			withdraw();
		taker.disabled = false;
	});
	at("offer").replaceChildren(text + " ", taker);
}

export function focusOffer() {
	at("offer").querySelector("button").focus();
}

export function withdraw() {
	at("offer").replaceChildren();
}
