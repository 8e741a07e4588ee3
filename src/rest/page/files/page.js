// SPDX-License-Identifier: MIT
// The frame: the account, the views, and what a view lists.  The fragment of the address says what
// is shown, so the browser's history works: #ACCOUNT/VIEW/NAME.
//
// A view is a module:
//   id, title             in the address, and for people
//   list(account, token)  optional: a part of its names, { values, next }
//   show(main, route)     fills the empty element; route has account, name (or ""), filter (or ""), a
//                         signal that is aborted when something else is shown, listNames(), which lists
//                         the names anew, open(name), which shows another one, and guard(isUnsent), after
//                         which the page asks before it leaves unsent changes
import * as rest from "/rest.js";
import * as blobs from "/blobs.js";
import * as live from "/live.js";
import * as partitions from "/partitions.js";
import * as queues from "/queues.js";
import * as snapshots from "/snapshots.js";
import * as tables from "/tables.js";
import { at, attempt, el, withdraw } from "/dom.js";
import { addressOf, readAddress } from "/route.js";

const VIEWS = [tables, partitions, snapshots, queues, blobs, live];
let shown = { account: null, view: null, end: new AbortController(), isUnsent: () => false };
let listing = 0; // counts; an answer to an earlier one comes too late

function mark(links, current) {
	for (const link of links) {
		if (link === current)
			link.setAttribute("aria-current", "page");
		else
			link.removeAttribute("aria-current");
	}
}

function markName(name) {
	const links = [...at("names").querySelectorAll("a")];
	mark(links, links.find((link) => link.textContent === name));
}

async function addNames(view, account, token) {
	const turn = ++listing, found = await view.list(account, token);
	if (turn !== listing)
		return;
	at("names").append(...found.values.map((name) =>
		el("li", {}, el("a", { href: addressOf(account, view.id, name) }, name))));
	at("more-names").hidden = found.next === null;
	at("more-names").onclick = () => attempt(() => addNames(view, account, found.next));
	markName(readAddress().name);
}

// Shows the names of the view once more: one was made or removed.
function listNames() {
	const { view, account } = shown;
	at("names").replaceChildren();
	at("more-names").hidden = true;
	listing++;
	return view.list ? addNames(view, account, null) : null;
}

function drawViews(account, view) {
	at("views").replaceChildren(...VIEWS.map((one) =>
		el("li", {}, el("a", { href: addressOf(account, one.id) }, one.title))));
	const links = [...at("views").querySelectorAll("a")];
	mark(links, links[VIEWS.indexOf(view)]);
}

function routeOf(name) {
	const { account, view, end } = shown;
	return {
		account, name, listNames, signal: end.signal,
		guard: (isUnsent) => { shown.isUnsent = isUnsent; },
		open: (other) => { location.hash = addressOf(account, view.id, other); },
	};
}

// The browser's own question: nothing else happens before the answer.  The address has changed already.
function mayLeave() {
	if (!shown.isUnsent() || window.confirm("There are changes that were not sent. Leave them?"))
		return true;
	history.replaceState(null, "", shown.address);
	at("account").value = shown.account;
	return false;
}

// Tells the browser and screen readers that something else is shown.  The focus stays in the list of accounts, so
// the arrow keys go through it.
function announce(before, name) {
	const { account, view } = shown;
	document.title = [name, view.title, account, "rowfs"].filter((part) => part !== "").join(" – ");
	if (before.view !== null && document.activeElement !== at("account"))
		at("main").focus();
}

function show() {
	if (!mayLeave())
		return null;
	const asked = readAddress();
	const account = [...at("account").options].some((option) => option.value === asked.account)
		? asked.account : at("account").options[0].value;
	const view = VIEWS.find((one) => one.id === asked.view) ?? VIEWS[0];
	const before = shown, main = el("section");
	before.end.abort();
	withdraw();
	shown = { account, view, end: new AbortController(), isUnsent: () => false, address: location.href };
	at("account").value = account;
	drawViews(account, view);
	at("main").replaceChildren(main);
	announce(before, asked.name);
	return attempt(async () => {
		const listed = before.account !== account || before.view !== view ? listNames() : null;
		markName(asked.name);
		await view.show(main, { ...routeOf(asked.name), filter: asked.filter });
		await listed;
	});
}

async function start() {
	const names = await rest.accounts();
	at("account").replaceChildren(...names.map((name) => new Option(name, name)));
	if (names.length === 0)
		throw new Error("There is no account yet.");
	at("account").addEventListener("change", () => {
		location.hash = addressOf(at("account").value, shown.view.id);
	});
	window.addEventListener("hashchange", show);
	window.addEventListener("beforeunload", (event) => {
		if (shown.isUnsent())
			event.preventDefault();
	});
	await show();
}

void attempt(start);
