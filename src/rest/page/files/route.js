// SPDX-License-Identifier: MIT
// What the fragment of the page's address says: #ACCOUNT/VIEW/NAME/FILTER.

export function addressOf(account, view, name, filter) {
	const parts = [account, view, name, filter].filter((part) => part);
	return "#" + parts.map(encodeURIComponent).join("/");
}

export function readAddress() {
	let parts = [];
	try {
		parts = location.hash.slice(1).split("/").map(decodeURIComponent);
	} catch { /* somebody typed it */ }
	const [account = "", view = "", name = "", filter = ""] = parts;
	return { account, view, name, filter };
}

// The filter for the rows of one partition.
export function partitionFilter(key) {
	return `PartitionKey eq '${key.replaceAll("'", "''")}'`;
}
