// SPDX-License-Identifier: MIT
// The key space of a table in slices of as many partitions each, and which slice a hot partition is in.

export const SLICES = 64; // at most

export class HeatMap {
	constructor(space) {
		this.space = space; // a KeySpace
		this.firsts = [];   // the first key of each slice
		this.total = 0;     // partitions when the slices were cut
	}

	// The slices are cut anew when the table has changed by more than one of them.
	isStale(total) {
		return Math.abs(total - this.total) * SLICES > this.total;
	}

	async cut(signal) {
		const [first] = await this.space.at(0, 1, signal), { total } = this.space;
		const n = Math.min(SLICES, total), firsts = first ? [first.partition_key] : [];
		for (let i = 1; i < n; i++) {
			const [found] = await this.space.at(Math.floor(i * total / n), 1, signal);
			if (found)
				firsts.push(found.partition_key);
		}
		Object.assign(this, { firsts, total });
	}

	// Keys have the order of UTF-16 units, as JavaScript's strings.
	sliceOf(key) {
		return Math.max(0, this.firsts.findLastIndex((first) => first <= key));
	}

	// The busiest second and the mean of the hottest partition of each slice; null without heat.
	heat(partitions, seconds) {
		const peak = this.firsts.map(() => null), mean = this.firsts.map(() => null);
		for (const p of partitions) {
			const i = this.sliceOf(p.partition_key);
			peak[i] = Math.max(peak[i] ?? 0, p.peak);
			mean[i] = Math.max(mean[i] ?? 0, (p.changed + p.read) / seconds);
		}
		return { peak, mean };
	}
}
