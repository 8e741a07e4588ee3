// SPDX-License-Identifier: MIT
// What the fragment of the page's address says: #ACCOUNT/VIEW/NAME.

export function addressOf(account, view, name) {
	const parts = name ? [account, view, name] : [account, view];
	return "#" + parts.map(encodeURIComponent).join("/");
}

export function readAddress() {
	let parts = [];
	try {
		parts = location.hash.slice(1).split("/").map(decodeURIComponent);
	} catch { /* somebody typed it */ }
	const [account = "", view = "", name = ""] = parts;
	return { account, view, name };
}
