// SPDX-License-Identifier: MIT
// The types of properties: found in a row, and written from text.

const INTEGER = /^[+-]?\d+$/, NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const UNBOUND = new Set(["NaN", "Infinity", "-Infinity"]);
const RULES = new Map([
	["Edm.String", { hint: "any text", fits: () => true }],
	["Edm.Boolean", { hint: "true or false", fits: (text) => text === "true" || text === "false" }],
	["Edm.Int32", {
		hint: "a whole number from -2147483648 to 2147483647",
		fits: (text) => INTEGER.test(text) && Number(text) === (Number(text) | 0),
	}],
	["Edm.Int64", {
		hint: "a whole number from -9223372036854775808 to 9223372036854775807",
		fits: (text) => INTEGER.test(text) && BigInt.asIntN(64, toBigInt(text)) === toBigInt(text),
	}],
	["Edm.Double", {
		hint: "a number such as 2.5 or 1e9, or NaN, Infinity, -Infinity",
		fits: (text) => UNBOUND.has(text) || (NUMBER.test(text) && Number.isFinite(Number(text))),
	}],
	["Edm.DateTime", {
		hint: "a time in UTC such as 2026-01-31T12:00:00Z",
		fits: (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,7})?)?Z$/.test(text),
	}],
	["Edm.Guid", {
		hint: "a GUID such as c9da6455-213d-42c9-9a79-3e9149a57833",
		fits: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
	}],
	["Edm.Binary", {
		hint: "bytes in base64",
		fits: (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text),
	}],
]);
const KEYS = new Set(["PartitionKey", "RowKey", "Timestamp"]);

// A browser without JSON's source texts takes 2.0 for 2, and would change types: Chrome before 114, Firefox
// before 135 and Safari before 18.4.
export const KEEPS_TYPES = typeof JSON.rawJSON === "function";

export const TYPES = [...RULES.keys()];

function toBigInt(text) {
	return BigInt(text.replace("+", ""));
}

export function isKey(name) {
	return KEYS.has(name);
}

// A row with keys only.  It has no prototype: a property may have the name "__proto__".
export function newRow({ PartitionKey, RowKey }) {
	return Object.assign(Object.create(null), { PartitionKey, RowKey });
}

// The value of a property, or undefined; "toString" and others are in every object.
export function valueOf(row, name) {
	return Object.hasOwn(row, name) ? row[name] : undefined;
}

// A value as text, from which setProperty() makes the same value.
export function textOf(value) {
	return Object.is(value, -0) ? "-0.0" : String(value);
}

// A row as JSON; JSON.stringify alone makes 0 of -0.0.
export function jsonOf(row) {
	return JSON.stringify(row, (_, value) => Object.is(value, -0) ? JSON.rawJSON("-0.0") : value);
}

// JSON has types of its own for these; the others are annotated.
export function typeOf(row, name) {
	const value = valueOf(row, name), annotated = row[name + "@odata.type"];
	if (annotated)
		return annotated;
	if (typeof value === "boolean")
		return "Edm.Boolean";
	if (typeof value === "number")
		return Number.isInteger(value) ? "Edm.Int32" : "Edm.Double";
	return "Edm.String";
}

export function shortName(type) {
	return type.replace("Edm.", "");
}

export function hintOf(type) {
	return RULES.get(type).hint;
}

// The names of all properties, with the keys and Timestamp.
export function names(row) {
	return Object.keys(row).filter((name) => !name.includes("odata."));
}

// The names of the properties that a user may change.
export function ownNames(row) {
	return names(row).filter((name) => !KEYS.has(name));
}

// Why this text is no value of the type, or "".
export function mistake(type, text) {
	return RULES.get(type).fits(text) ? "" : `It must be ${hintOf(type)}.`;
}

// Adds a property to a row.  The text has no mistake.
export function setProperty(row, name, type, text) {
	if (type === "Edm.Boolean")
		row[name] = text === "true";
	else if (type === "Edm.Int32")
		row[name] = Number(text) + 0; // "-0" is 0
	else
		row[name] = type === "Edm.Double" && !UNBOUND.has(text) ? Number(text) : text;
	if (type !== "Edm.Boolean" && type !== "Edm.Int32" && type !== "Edm.String")
		row[name + "@odata.type"] = type;
}

export function sameValue(one, other, name) {
	const value = valueOf(one, name);
	return Object.is(value, valueOf(other, name)) && (value === undefined || typeOf(one, name) === typeOf(other, name));
}

// The row as a change sends it: its keys and its own properties.
export function plainRow(row) {
	const plain = newRow(row);
	for (const name of ownNames(row))
		setProperty(plain, name, typeOf(row, name), textOf(valueOf(row, name)));
	return plain;
}
