// SPDX-License-Identifier: MIT
// Requests a second and latencies, from the counters that /live has.  They only grow, so the difference of
// two answers is what happened in between.

export const nameOf = (operation) => `${operation.front_end} ${operation.operation}`;

// A latency that `percent` percent of the requests did not exceed: the limit of their bucket, in us.  Null
// without requests.
export function percentile(buckets, limits, longest, percent) {
	const count = buckets.reduce((sum, n) => sum + n, 0);
	let seen = 0;
	for (const [i, n] of buckets.entries()) {
		seen += n;
		if (seen > 0 && seen * 100 >= count * percent)
			return Math.min(limits[i] ?? longest, longest);
	}
	return null;
}

function difference(now, before) {
	return {
		front_end: now.front_end,
		operation: now.operation,
		max_us: now.max_us,
		refused: now.refused - (before?.refused ?? 0),
		failed: now.failed - (before?.failed ?? 0),
		buckets: now.buckets.map((n, i) => n - (before?.buckets[i] ?? 0)),
	};
}

function sumOf(operations) {
	const sum = { max_us: 0, refused: 0, failed: 0, buckets: [] };
	for (const o of operations) {
		sum.max_us = Math.max(sum.max_us, o.max_us);
		sum.refused += o.refused;
		sum.failed += o.failed;
		o.buckets.forEach((n, i) => { sum.buckets[i] = (sum.buckets[i] ?? 0) + n; });
	}
	return sum;
}

function line(operation, limits, seconds) {
	const { buckets, max_us, refused, failed } = operation;
	return {
		...operation,
		rate: buckets.reduce((sum, n) => sum + n, 0) / seconds,
		refused: refused / seconds,
		failed: failed / seconds,
		p50: percentile(buckets, limits, max_us, 50),
		p99: percentile(buckets, limits, max_us, 99),
	};
}

// Returns { all, operations }: figures a second, most frequent operations first.  `before` and `now` are
// answers of /live.
export function between(before, now) {
	const seconds = (now.now_us - before.now_us) / 1e6, limits = now.bucket_limits_us;
	const known = new Map(before.operations.map((o) => [nameOf(o), o]));
	const changes = now.operations.map((o) => difference(o, known.get(nameOf(o))));
	const operations = changes.map((o) => line(o, limits, seconds)).filter((o) => o.rate > 0);
	operations.sort((a, b) => b.rate - a.rate);
	return { all: line(sumOf(changes), limits, seconds), operations };
}

export function timeText(us) {
	if (us === null || us === undefined)
		return "–";
	if (us < 1000)
		return `${us} µs`;
	return us < 1e6 ? `${(us / 1000).toFixed(1)} ms` : `${(us / 1e6).toFixed(2)} s`;
}

export function sizeText(bytes) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	for (; bytes >= 1024 && i < units.length - 1; i++)
		bytes /= 1024;
	return `${i === 0 ? bytes : bytes.toFixed(1)} ${units[i]}`;
}

export const rateText = (n) => n >= 10 || n === 0 ? String(Math.round(n)) : n.toFixed(1);
