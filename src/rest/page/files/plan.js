// SPDX-License-Identifier: MIT
// How a filter finds its rows, and what that costs.
import { attempt, button, el } from "/dom.js";
import { data } from "/data.js";

function sentence(found) {
	const rows = (n) => `${n.toLocaleString("en")} ${n === 1 ? "row" : "rows"}`;
	return `Plan: ${found.plan}. It looked at ${rows(found.looked_at)}, and ${rows(found.matched)} matched.`;
}

async function explain(route, filter) {
	const query = new URLSearchParams(filter ? { filter } : {});
	const answer = await data(`/explain/${route.account}/${route.name}?${query}`);
	return JSON.parse(answer.explain);
}

// A button that explains the filter which is typed, and the place where the text appears.
export function planButton(route, filter) {
	const text = el("p", { id: "plan", role: "status" });
	const ask = () => attempt(async () => {
		text.textContent = sentence(await explain(route, filter()));
	});
	return { button: button("Explain", ask), text };
}
