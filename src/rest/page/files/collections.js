// SPDX-License-Identifier: MIT
// Queues and containers are listed; tables too are removed.
import { ask, parseXml, queryOf, textOf } from "/http.js";
import { confirmed } from "/confirm.js";
import { attempt, button } from "/dom.js";

// A part of the names of the service ("queue" or "blob"), whose XML calls one `element`.
export async function listCollections(service, account, element, marker) {
	const query = queryOf({ comp: "list", maxresults: 100, marker });
	const found = parseXml(await (await ask(`/${service}/${account}?${query}`)).text());
	const values = [...found.getElementsByTagName(element)].map((one) => textOf(one, "Name"));
	return { values, next: textOf(found, "NextMarker") || null };
}

// A button that removes what is shown, after a question.
export function removeButton(what, path, route) {
	return button(`Delete this ${what}`, async () => {
		if (!await confirmed(`Delete ${route.name} with all that it holds? It cannot be taken back.`, "Delete"))
			return;
		await attempt(async () => {
			await ask(path, { method: "DELETE" });
			route.guard(() => false); // changes that were not sent have no table
			await route.listNames();
			route.open("");
		});
	}, { class: "danger" });
}
