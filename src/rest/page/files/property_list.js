// SPDX-License-Identifier: MIT
// The properties of a row as fields: a name, a type and a value each.
import { button, el } from "/dom.js";
import { TYPES, hintOf, isKey, mistake, ownNames, setProperty, shortName, textOf, typeOf, valueOf } from "/types.js";

function typeField(type) {
	const options = TYPES.map((one) => el("option", { value: one, selected: one === type }, shortName(one)));
	return el("select", { "aria-label": "Type" }, ...options);
}

function valueField(type, text) {
	if (type === "Edm.Boolean")
		return el("select", { "aria-label": "Value", class: "value" },
			el("option", {}, "true"), el("option", { selected: text === "false" }, "false"));
	const field = el(type === "Edm.String" ? "textarea" : "input",
		{ "aria-label": "Value", class: "value", rows: "1", placeholder: hintOf(type), spellcheck: "false" });
	field.value = text;
	return field;
}

class Property {
	constructor(name, type, text) {
		this.name = el("input", { "aria-label": "Name", spellcheck: "false", autocomplete: "off" });
		this.name.value = name;
		this.type = typeField(type);
		this.type.addEventListener("change", () => this.setValueField(this.value.value));
		this.value = valueField(type, text);
		this.original = { type, text, shown: this.value.value };
		const remove = button("×", () => this.remove(), { title: "Remove" });
		const label = () => remove.setAttribute("aria-label", `Remove property ${this.name.value}`);
		this.name.addEventListener("input", label);
		label();
		this.item = el("li", {}, this.name, this.type, this.value, remove);
	}

	// A field turns "\r\n" into "\n", so an unchanged one gives the original.
	get text() {
		const { type, text, shown } = this.original, { value } = this.value;
		return this.type.value === type && value === shown ? text : value;
	}

	setValueField(text) {
		const field = valueField(this.type.value, text);
		this.value.replaceWith(field);
		this.value = field;
	}

	remove() {
		const next = this.item.nextElementSibling ?? this.item.previousElementSibling;
		this.item.remove();
		next?.querySelector("input").focus();
	}

	// Why it cannot be sent; the field is marked for the browser and for screen readers.
	check(taken) {
		const name = this.name.value.trim(), wrong = mistake(this.type.value, this.text);
		const field = name === "" || isKey(name) || taken.has(name) ? this.name : this.value;
		const why = name === "" ? "A property needs a name."
			: isKey(name) ? `${name} is the name of a key or of the time of a change. Choose another one.`
			: taken.has(name) ? `There are two properties ${name}.`
				: wrong && `${name}: ${wrong}`;
		this.name.removeAttribute("aria-invalid");
		this.value.removeAttribute("aria-invalid");
		if (why !== "") {
			field.setAttribute("aria-invalid", "true");
			field.focus();
			throw new Error(why);
		}
		taken.add(name);
	}
}

export class PropertyList {
	constructor() {
		this.list = el("ul", { class: "properties" });
		this.element = el("div", {}, this.list,
			button("Add a property", () => this.add("", "Edm.String", "").name.focus()));
		this.all = new Map();
	}

	add(name, type, text) {
		const property = new Property(name, type, text);
		this.list.append(property.item);
		this.all.set(property.item, property);
		return property;
	}

	fill(row) {
		this.list.replaceChildren();
		this.all.clear();
		for (const name of ownNames(row))
			this.add(name, typeOf(row, name), textOf(valueOf(row, name)));
	}

	// Adds the properties to a row.  Throws an error that says which one is wrong.
	writeTo(row) {
		const taken = new Set(), shown = [...this.list.children].map((item) => this.all.get(item));
		for (const property of shown)
			property.check(taken);
		for (const { name, type, text } of shown)
			setProperty(row, name.value.trim(), type.value, text);
		return row;
	}
}
