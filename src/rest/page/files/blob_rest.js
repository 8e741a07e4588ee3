// SPDX-License-Identifier: MIT
// The Blob service: the blobs of one container.
import { ask, parseXml, queryOf, textOf } from "/http.js";

const BLOCK = 4 << 20; // bytes of an upload's part

function blobOf(element) {
	const properties = element.getElementsByTagName("Properties")[0];
	return {
		name: textOf(element, "Name"), size: Number(textOf(properties, "Content-Length")),
		kind: textOf(properties, "BlobType").replace("Blob", ""), type: textOf(properties, "Content-Type"),
		changed: textOf(properties, "Last-Modified"),
	};
}

// All ids of a blob have one length.
function blockId(i) {
	return btoa(String(i).padStart(6, "0"));
}

// A browser follows "." and "..", also encoded ones.
export function isReachable(name) {
	return name !== "." && name !== "..";
}

// The name of a blob in a path.  Its slashes are encoded, because a browser would shorten "a/../b".
export function encodedName(name) {
	if (!isReachable(name))
		throw new Error(`A browser cannot ask for a blob with the name ${name}. Use another client.`);
	return encodeURIComponent(name);
}

export class Container {
	constructor(account, name) {
		this.path = `/blob/${account}/${name}`;
	}

	create() {
		return ask(this.path + "?restype=container", { method: "PUT" });
	}

	// A part of the blobs and folders whose names begin with the prefix.
	async list(prefix, marker) {
		const query = queryOf({ restype: "container", comp: "list", delimiter: "/", maxresults: 200, prefix, marker });
		const found = parseXml(await (await ask(`${this.path}?${query}`)).text());
		return {
			folders: [...found.getElementsByTagName("BlobPrefix")].map((one) => textOf(one, "Name")),
			blobs: [...found.getElementsByTagName("Blob")].map(blobOf), next: textOf(found, "NextMarker"),
		};
	}

	// Whether there is a blob with this name.  A list is asked, since browsers log an answer with 404 as an error.
	async has(name) {
		const query = queryOf({ restype: "container", comp: "list", maxresults: 1, prefix: name });
		const found = parseXml(await (await ask(`${this.path}?${query}`)).text());
		return [...found.getElementsByTagName("Blob")].some((blob) => textOf(blob, "Name") === name);
	}

	pathOf(name) {
		return this.path + "/" + encodedName(name);
	}

	delete(name) {
		return ask(this.pathOf(name), { method: "DELETE" });
	}

	// The ranges of a page blob that hold data: { start, end } in bytes, the end behind the last one.
	async pageRanges(name) {
		const found = parseXml(await (await ask(this.pathOf(name) + "?comp=pagelist")).text());
		return [...found.getElementsByTagName("PageRange")].map((range) =>
			({ start: Number(textOf(range, "Start")), end: Number(textOf(range, "End")) + 1 }));
	}

	// Uploads a file as a block blob.  Fails with 409 if there is such a blob at the end, unless it may be replaced.
	async upload(name, file, replace, onProgress) {
		const path = this.pathOf(name), condition = replace ? {} : { "If-None-Match": "*" };
		const type = file.type || "application/octet-stream";
		if (file.size <= BLOCK) {
			await ask(path, { method: "PUT", body: file,
				headers: { ...condition, "x-ms-blob-type": "BlockBlob", "Content-Type": type } });
			onProgress(file.size);
			return;
		}
		const ids = [];
		for (let at = 0; at < file.size; at += BLOCK) {
			ids.push(blockId(ids.length));
			await ask(`${path}?${queryOf({ comp: "block", blockid: ids.at(-1) })}`,
				{ method: "PUT", body: file.slice(at, at + BLOCK) });
			onProgress(Math.min(at + BLOCK, file.size));
		}
		const body = `<BlockList>${ids.map((id) => `<Latest>${id}</Latest>`).join("")}</BlockList>`;
		await ask(path + "?comp=blocklist",
			{ method: "PUT", body, headers: { ...condition, "x-ms-blob-content-type": type } });
	}
}
