// SPDX-License-Identifier: MIT
// The view of blobs: listed by prefix, uploaded, downloaded and deleted; page ranges drawn.
import { Container, isReachable } from "/blob_rest.js";
import { listCollections, removeButton } from "/collections.js";
import { confirmed } from "/confirm.js";
import { attempt, button, el, headOf, say, scrolled } from "/dom.js";
import { sizeText } from "/figures.js";
import { nameForm } from "/name_form.js";
import { drawRanges } from "/page_ranges.js";
import { shareButton } from "/share.js";
import { TaskProgress } from "/task_progress.js";

export const id = "blobs", title = "Blobs";

export function list(account, marker) {
	return listCollections("blob", account, "Container", marker);
}

class BlobView {
	constructor(main, route) {
		this.route = route;
		this.container = new Container(route.account, route.name);
		this.asked = 0;
		this.prefix = el("input", { id: "prefix", placeholder: "folder/", autocomplete: "off", spellcheck: "false" });
		this.files = el("input", { id: "files", type: "file", multiple: true, change: () => this.upload() });
		this.progress = new TaskProgress("Upload");
		this.ranges = el("div");
		this.caption = el("caption");
		this.body = el("tbody", { id: "blobs" });
		this.more = button("More blobs", () => attempt(() => this.add()), { hidden: true });
		main.append(...this.parts());
	}

	parts() {
		const ask = el("form", { submit: (event) => this.submit(event) }, el("label", { for: "prefix" }, "Prefix"),
			this.prefix, el("button", { type: "submit" }, "Show"));
		const tools = el("form", { submit: (event) => event.preventDefault() }, el("label", { for: "files" }, "Upload"),
			this.files, el("span", { class: "gap" }),
			shareButton("container", this.route.account, this.route.name),
			removeButton("container", this.container.path + "?restype=container", this.route));
		return [ask, tools, this.progress.place, this.ranges, scrolled("Blobs", this.caption,
			headOf("Name", "Size", "Kind", "Content type", "Changed", ""), this.body), this.more];
	}

	submit(event) {
		event.preventDefault();
		void attempt(() => this.show());
	}

	choosePrefix(prefix) {
		this.prefix.value = prefix;
		return attempt(() => this.show());
	}

	show() {
		Object.assign(this, { next: "", count: 0, shown: this.prefix.value });
		this.body.replaceChildren();
		this.ranges.replaceChildren();
		return this.add();
	}

	async add() {
		const asked = ++this.asked;
		const { folders, blobs, next } = await this.container.list(this.shown, this.next);
		if (asked !== this.asked) // a later choice replaced this one
			return;
		this.next = next;
		this.more.hidden = next === "";
		this.count += folders.length + blobs.length;
		this.caption.textContent = `${this.route.name}/${this.shown}: ${this.count} ` +
			`${this.count === 1 ? "entry" : "entries"}${next ? " so far" : ""}`;
		this.body.append(...folders.map((name) => this.folderLine(name)), ...blobs.map((blob) => this.blobLine(blob)));
	}

	folderLine(name) {
		return el("tr", {}, el("td", { colspan: "6" }, button(name, () => this.choosePrefix(name),
			{ "aria-label": `Show folder ${name}` })));
	}

	link(name) {
		return isReachable(name) ? el("a", { href: this.container.pathOf(name), download: name.split("/").pop(), title: "Download" }, name)
			: name;
	}

	blobLine(blob) {
		const { name, size, kind, type, changed } = blob;
		const whole = `${this.route.name}/${name}`;
		const actions = el("td", {}, shareButton("blob", this.route.account, whole, { "aria-label": `Share ${name}` }), button("Delete", () => this.remove(name), { "aria-label": `Delete ${name}` }));
		if (kind === "Page")
			actions.prepend(button("Ranges", () => this.showRanges(blob), { "aria-label": `Page ranges of ${name}` }), " ");
		return el("tr", {},
			el("td", {}, this.link(name)),
			el("td", { class: "number", title: `${size} bytes` }, sizeText(size)), el("td", {}, kind), el("td", {}, type),
			el("td", {}, new Date(changed).toLocaleString()), actions);
	}

	showRanges({ name, size }) {
		return attempt(async () => {
			this.ranges.replaceChildren(drawRanges(name, size, await this.container.pageRanges(name)));
		});
	}

	async remove(name) {
		if (await confirmed(`Delete the blob ${name}? It cannot be taken back.`, "Delete"))
			await attempt(async () => {
				await this.container.delete(name);
				await this.show();
			});
	}

	upload() {
		return attempt(async () => {
			const files = [...this.files.files], uploads = [], folder = this.shown.replace(/[^/]*$/, "");
			try {
				for (const file of files)
					uploads.push(await this.agreed(folder + file.name, file));
				await this.send(uploads.filter((one) => one !== null));
			} finally {
				this.files.value = ""; // else the browser does not tell that the same file was chosen again
				this.progress.end();
				await this.show();
			}
			const n = uploads.filter((one) => one !== null).length;
			say(`${n} ${n === 1 ? "file was" : "files were"} uploaded.`);
		});
	}

	// The upload of a file; null if the user keeps the blob that is there.  Nothing is sent before all questions are
	// answered.
	async agreed(name, file) {
		const replace = await this.container.has(name);
		if (replace && !await confirmed(`There is a blob ${name}. Replace it?`, "Replace"))
			return null;
		return { name, file, replace };
	}

	async send(uploads) {
		let done = 0;
		this.progress.start(uploads.reduce((sum, { file }) => sum + file.size, 0));
		for (const { name, file, replace } of uploads) {
			this.progress.show(name, done);
			await this.container.upload(name, file, replace, (sent) => this.progress.show(name, done + sent));
			done += file.size;
		}
	}
}

export function show(main, route) {
	if (route.name !== "")
		return new BlobView(main, route).show();
	main.append(nameForm("Choose a container, or make one.", "New container",
		(name) => new Container(route.account, name).create(), route));
	return null;
}
