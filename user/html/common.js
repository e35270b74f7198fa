/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the pages have in common: words, figures and elements. All text goes in as text nodes: names
 * come from the traced process and are not trusted.
 */
"use strict";

const partColors = {
	own: "#4e79a7", on_cpu: "#4e79a7", cpu_wait: "#e15759", mmap_net: "#b07aa1",
	futex_net: "#f28e2b", ioctl_net: "#76b7b2", read_net: "#59a14f", write_net: "#edc948",
	other_net: "#bab0ac", faults: "#9c755f", disk_wait: "#ff9da7", stopped: "#d37295",
	off_cpu: "#8a8f98", asleep: "#8a8f98", await: "#86bcb6",
};
const causeColors = {
	lock_contention: "#f28e2b", run_queue: "#e15759", cpu_limit: "#a8201a", late_thread: "#d4a017",
	file_io: "#59a14f", socket_io: "#2f7d6d", tiny_writes: "#8cd17d", sleep: "#a0cbe8",
	page_faults: "#9c755f", memory_limit: "#79492f", stopped: "#d37295", gil: "#b6992d",
	garbage_collection: "#499894", driver_calls: "#76b7b2", allocation_churn: "#b07aa1",
	compute: "#1f77b4", gpu_transfer: "#17becf", thread_churn: "#e377c2",
	signal_storm: "#bcbd22", off_cpu: "#7f7f7f", steal: "#4d4d4d", await: "#86bcb6", peer_process: "#9467bd",
	other_calls: "#bab0ac", unknown: "#8da0cb",
};
const partWords = {
	own: "own code", on_cpu: "on a CPU", cpu_wait: "waiting for a CPU", faults: "page faults",
	disk_wait: "waiting for a disk", off_cpu: "off CPU", other_net: "other calls",
};

const words = (name) => name.replaceAll("_", " ");
const partLabel = (name) => partWords[name] ?? words(name.replace(/_net$/, ""));

/* --- text ------------------------------------------------------------------------------------ */

function three(value) {
	if (value >= 99.95)
		return value.toFixed(0);
	return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function duration(ns) {
	if (ns === null || ns === undefined || Number.isNaN(ns))
		return "-";
	if (ns < 999.5)
		return `${Math.round(ns)} ns`;
	for (const [unit, size] of [["us", 1e3], ["ms", 1e6]]) {
		if (ns < size * 999.5)
			return `${three(ns / size)} ${unit}`;
	}
	return `${three(ns / 1e9)} s`;
}

const tenths = (value) => Number.isFinite(value) ? `${value.toFixed(1)} %` : "-";
const count = (value) => Number(value).toLocaleString("en-US");
const percent = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : "-";

/* --- elements -------------------------------------------------------------------------------- */

function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on"))
			made.addEventListener(name.slice(2), value);
		else if (value !== false && value !== null && value !== undefined)
			made.setAttribute(name, value === true ? "" : value);
	}
	made.append(...children.filter((child) => child !== null && child !== undefined)
		.map((child) => child instanceof Node ? child : String(child)));
	return made;
}

function swatch(color) {
	const made = element("span", {class: "swatch"});

	made.style.backgroundColor = color;
	return made;
}

/* rows: arrays of cells. A column whose heading ends in "#" holds numbers. */
function table(headings, rows, onPick) {
	const isNumber = headings.map((heading) => heading.endsWith("#"));
	const cell = (tag, value, i) => element(tag, isNumber[i] ? {class: "number"} : {}, value ?? "");
	const body = rows.map((row) => {
		const line = element("tr", {}, ...row.cells.map((value, i) => cell("td", value, i)));

		if (onPick && row.pick !== undefined) {
			line.className = "pick";
			line.tabIndex = 0;
			line.addEventListener("click", () => onPick(row.pick));
			line.addEventListener("keydown", (event) => {
				if (event.key === "Enter")
					onPick(row.pick);
			});
		}
		return line;
	});
	const head = element("tr", {}, ...headings.map((text, i) => cell("th", text.replace(/#$/, ""), i)));

	return element("div", {class: "wide"}, element("table", {}, element("thead", {}, head),
		element("tbody", {}, ...body)));
}

/* parts: [name, ns] */
function bar(parts) {
	const total = parts.reduce((sum, part) => sum + part[1], 0);
	const made = element("div", {class: "bar"});

	for (const [name, ns] of parts) {
		if (!ns)
			continue;
		const piece = element("i", {title: `${partLabel(name)} ${duration(ns)}`});

		piece.style.width = `${100 * ns / total}%`;
		piece.style.backgroundColor = partColors[name] ?? "#999";
		made.append(piece);
	}
	return made;
}

