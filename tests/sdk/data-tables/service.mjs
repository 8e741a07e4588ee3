// SPDX-License-Identifier: MIT
// @azure/data-tables: service properties, statistics, and both ways to ask for them.
import { assert, check, endpoint, newTable, service } from "../check.mjs";

const s = service();
const plain = (properties) =>
	JSON.parse(
		JSON.stringify({
			logging: properties.logging,
			hourMetrics: properties.hourMetrics,
			minuteMetrics: properties.minuteMetrics,
			cors: properties.cors,
		}),
	);

await check("the default properties", async () => {
	assert.deepEqual(plain(await s.getProperties()), {
		logging: {
			version: "1.0",
			delete: false,
			read: false,
			write: false,
			retentionPolicy: { enabled: false },
		},
		hourMetrics: {
			version: "1.0",
			enabled: true,
			includeAPIs: true,
			retentionPolicy: { enabled: true, days: 7 },
		},
		minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
		cors: [],
	});
});

await check("what is set is kept, what is not named stays", async () => {
	const before = plain(await s.getProperties());
	const logging = {
		version: "1.0",
		delete: true,
		read: false,
		write: true,
		retentionPolicy: { enabled: true, days: 5 },
	};
	let status;
	await s.setProperties(
		{ logging },
		{
			onResponse: (r) => {
				status = r.status;
			},
		},
	);
	assert.equal(status, 202);
	assert.deepEqual(plain(await s.getProperties()), { ...before, logging });
	const minuteMetrics = {
		version: "1.0",
		enabled: true,
		includeAPIs: false,
		retentionPolicy: { enabled: true, days: 365 },
	};
	await s.setProperties({ minuteMetrics });
	assert.deepEqual(plain(await s.getProperties()), { ...before, logging, minuteMetrics });
	await s.setProperties(before);
	assert.deepEqual(plain(await s.getProperties()), before);
});

const rule = (allowedOrigins, more) => ({
	allowedOrigins,
	allowedMethods: "GET,PUT",
	allowedHeaders: "x-ms-*,content-type",
	exposedHeaders: "x-ms-request-id",
	maxAgeInSeconds: 60,
	...more,
});

await check("CORS rules", async () => {
	const cors = [
		rule("http://a.example,http://b.example"),
		rule("*", { allowedHeaders: "", exposedHeaders: "" }),
	];
	await s.setProperties({ cors });
	assert.deepEqual(plain(await s.getProperties()).cors, cors);
	await s.setProperties({ logging: (await s.getProperties()).logging });
	assert.equal((await s.getProperties()).cors.length, 2);
	const six = Array.from({ length: 6 }, (_, i) => rule(`http://${i}.example`));
	const e = await s.setProperties({ cors: six }).then(
		() => assert.fail("six"),
		(e) => e,
	);
	assert.equal(e.statusCode, 400, e.message);
	assert.deepEqual(plain(await s.getProperties()).cors, cors);
});

await check("a browser's preflight and request", async () => {
	await newTable("Cors");
	await s.setProperties({ cors: [rule("http://a.example")] });
	const ask = (origin, method, headers = "x-ms-date") =>
		fetch(`${endpoint}/Cors`, {
			method: "OPTIONS",
			headers: {
				Origin: origin,
				"Access-Control-Request-Method": method,
				"Access-Control-Request-Headers": headers,
			},
		});
	const yes = await ask("http://a.example", "PUT");
	assert.equal(yes.status, 200);
	assert.equal(yes.headers.get("access-control-allow-origin"), "http://a.example");
	assert.equal(yes.headers.get("access-control-allow-methods"), "PUT");
	assert.equal(yes.headers.get("access-control-allow-headers"), "x-ms-date");
	assert.equal(yes.headers.get("access-control-max-age"), "60");
	assert.equal(yes.headers.get("access-control-allow-credentials"), "true");
	for (const no of [
		await ask("http://c.example", "PUT"),
		await ask("http://a.example", "DELETE"),
		await ask("http://a.example", "PUT", "authorization"),
	])
		assert.equal(no.status, 403);
	const get = await fetch(`${endpoint}/Cors`, { headers: { Origin: "http://a.example" } });
	await get.text();
	assert.ok(get.status >= 400); // not signed, which is no reason to hide the answer from the page
	assert.equal(get.headers.get("access-control-allow-origin"), "http://a.example");
	await s.setProperties({ cors: [] });
	assert.equal((await ask("http://a.example", "PUT")).status, 403);
});

await check("bad properties are refused", async () => {
	const before = plain(await s.getProperties());
	const e = await s.setProperties({}).then(
		() => assert.fail("empty"),
		(e) => e,
	);
	assert.equal(e.statusCode, 400, e.message);
	const metrics = (days) => ({
		version: "1.0",
		enabled: true,
		includeAPIs: true,
		retentionPolicy: { enabled: true, days },
	});
	for (const days of [0, 366]) {
		const e = await s.setProperties({ hourMetrics: metrics(days) }).then(
			() => assert.fail("days"),
			(e) => e,
		);
		if (e.statusCode !== undefined)
			// some values the library itself refuses
			assert.equal(e.statusCode, 400, e.message);
	}
	assert.deepEqual(plain(await s.getProperties()), before);
});

await check("statistics", async () => {
	const stats = await s.getStatistics();
	assert.equal(stats.geoReplication.status, "live");
	assert.ok(Math.abs(stats.geoReplication.lastSyncTime - Date.now()) < 24 * 3600e3);
});
