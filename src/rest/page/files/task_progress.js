// SPDX-License-Identifier: MIT
// How far a long task is: a bar, and a text with the rate and the time left.  Hidden while there is no task.
import { el } from "/dom.js";
import { sizeText } from "/figures.js";

// "1:05"
function timeText(seconds) {
	return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

export class TaskProgress {
	// label: what the task is, for screen readers.
	constructor(label) {
		this.bar = el("progress", { "aria-label": label, value: "0", max: "1" });
		this.text = el("span");
		this.place = el("p", { class: "task", hidden: true }, this.bar, " ", this.text);
	}

	// total: in bytes.
	start(total) {
		Object.assign(this, { total, started: performance.now() });
		this.place.hidden = false;
		this.show("", 0);
	}

	// name: of the part at work; done: of all.
	show(name, done) {
		const seconds = (performance.now() - this.started) / 1000, rate = done / seconds;
		this.bar.value = this.total > 0 ? done / this.total : 1;
		const pace = done > 0 ? `, ${sizeText(Math.round(rate))}/s, ${timeText((this.total - done) / rate)} left` : "";
		this.text.textContent = `${name} ${sizeText(done)} of ${sizeText(this.total)}${pace}`.trim();
	}

	end() {
		this.place.hidden = true;
	}
}
