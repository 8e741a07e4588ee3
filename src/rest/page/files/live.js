// SPDX-License-Identifier: MIT
// The view of what the server is doing, once a second.  Its parts draw, and may read more; this module asks and keeps
// the samples of the last minutes.
import { data } from "/data.js";
import { button, el, say } from "/dom.js";
import { between } from "/figures.js";
import { Heat } from "/live_heat.js";
import { Requests } from "/live_requests.js";
import { Store } from "/live_store.js";

const PERIOD_MS = 1000;
const KEPT = 300; // samples: five minutes

export const id = "live";
export const title = "Live";

class Live {
	constructor(parts) {
		this.parts = parts;
		this.samples = [];
		this.complaint = "";
		this.turn = 0; // of run(); an answer to an earlier one comes too late
	}

	add(now) {
		const sample = { ...now, ...between(this.before, now), time: Date.now() / 1000 };
		this.samples.push(sample);
		if (this.samples.length > KEPT)
			this.samples.shift();
		for (const part of this.parts)
			part.draw(this.samples);
	}

	async look(turn) {
		try {
			const now = await data("/live");
			for (const part of this.parts)
				await part.read?.(now);
			if (turn !== this.turn)
				return;
			if (this.before)
				this.add(now);
			this.before = now;
			this.recover();
		} catch (error) {
			if (turn === this.turn)
				this.complain(error.message);
		}
		if (turn === this.turn)
			this.timer = setTimeout(() => this.look(turn), PERIOD_MS);
	}

	complain(text) {
		this.complaint = text;
		say(text);
	}

	// Takes back the complaint, and no message of another part.
	recover() {
		if (this.complaint !== "")
			this.complain("");
	}

	run(on) {
		const turn = ++this.turn;
		clearTimeout(this.timer);
		this.before = null;
		if (on)
			void this.look(turn);
	}

	end() {
		this.run(false);
		for (const part of this.parts)
			part.end();
	}
}

export function show(main, { account, signal }) {
	const parts = [new Requests(), new Heat(signal), new Store(account, signal)];
	const live = new Live(parts);
	const pause = button("Pause", () => {
		const paused = pause.getAttribute("aria-pressed") !== "true";
		pause.setAttribute("aria-pressed", String(paused));
		live.run(!paused);
	}, { "aria-pressed": "false" });
	main.className = "live";
	main.append(pause, ...parts.map((part) => part.place));
	// A hidden page asks for nothing.
	document.addEventListener("visibilitychange",
		() => live.run(!document.hidden && pause.getAttribute("aria-pressed") === "false"), { signal });
	signal.addEventListener("abort", () => live.end());
	live.run(!document.hidden);
}
