// SPDX-License-Identifier: MIT
// The partitions of a table by their position.  The server finds a position by passing over keys, so this
// keeps the keys that were seen, and asks from the nearest one.
import { data } from "/data.js";

const SKIP_MAX = 200000; // of one request
const KEPT = 2000;       // keys that are remembered

export class KeySpace {
	constructor(account, table) {
		this.path = `/partitions/${account}/${table}?`;
		this.seen = []; // { index, key }, in order
		this.total = 0;
	}

	async ask(query, signal) {
		const found = await data(this.path + new URLSearchParams(query), signal);
		if (found.total !== this.total) // positions have moved
			this.seen = [];
		this.total = found.total;
		return found;
	}

	remember(index, key) {
		const at = this.seen.findIndex((one) => one.index >= index);
		if (at < 0)
			this.seen.push({ index, key });
		else if (this.seen[at].index > index)
			this.seen.splice(at, 0, { index, key });
		if (this.seen.length > KEPT)
			this.seen.splice(Math.floor(Math.random() * KEPT), 1);
	}

	// The last one that was seen for which before() is true; else a place ahead of the first partition.
	nearest(before) {
		return this.seen.findLast(before) ?? { index: -1 };
	}

	// Passes over partitions behind `one`, which may be no partition.  Returns the last one passed.
	async pass(one, query, signal) {
		const after = one.index < 0 ? {} : { after: one.key };
		const found = await this.ask({ ...after, ...query, top: 0 }, signal);
		const last = found.skipped > 0 ? { index: one.index + found.skipped, key: found.last } : one;
		if (found.skipped > 0)
			this.remember(last.index, last.key);
		return { last, skipped: found.skipped };
	}

	// `top` partitions from this position on.
	async at(index, top, signal) {
		let one = this.nearest((seen) => seen.index < index);
		while (index - one.index - 1 > SKIP_MAX) {
			const { last, skipped } = await this.pass(one, { skip: SKIP_MAX }, signal);
			if (skipped === 0)
				return [];
			one = last;
		}
		const after = one.index < 0 ? {} : { after: one.key };
		const { partitions } = await this.ask({ ...after, skip: index - one.index - 1, top }, signal);
		if (partitions.length > 0)
			this.remember(index + partitions.length - 1, partitions.at(-1).partition_key);
		return partitions;
	}

	// How many partitions have a smaller key.
	async positionOf(key, signal) {
		let one = this.nearest((seen) => seen.key < key), skipped;
		do
			({ last: one, skipped } = await this.pass(one, { skip: SKIP_MAX, until: key }, signal));
		while (skipped === SKIP_MAX);
		return one.index + 1;
	}
}
