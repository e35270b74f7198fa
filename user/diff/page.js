/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Draws a comparison from the JSON in #data, with what is in common.js. */
(() => {

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const quantiles = ["p50", "p95", "p99"];
const sideColors = ["#4e79a7", "#f28e2b"];
const verdictColors = {worse: "#c4392f", better: "#2e8b57", same: "#667085", cannot_tell: "#b08900"};
const svgSpace = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

const signed = (percent) => percent === null ? "-"
	: percent >= 1000 ? `${(percent / 100 + 1).toFixed(0)}x`
	: `${percent > 0 ? "+" : percent < 0 ? "-" : ""}${Math.abs(percent).toFixed(1)} %`;
const signedTime = (ns) => `${ns < 0 ? "-" : "+"}${duration(Math.abs(ns))}`;
const both = data.classes.filter((one) => one.only_in === null);

function section(title, ...children) {
	const made = element("section", {}, element("h2", {}, title), ...children);

	page.append(made);
	return made;
}

function svg(tag, attributes = {}, ...children) {
	const made = document.createElementNS(svgSpace, tag);

	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

function verdict(name) {
	const made = element("b", {}, words(name));

	made.style.color = verdictColors[name];
	return made;
}

/* --- intervals ------------------------------------------------------------------------------- */

/* The changes that are drawn reach so far, in percent, to both sides of 0. */
const reach = Math.min(200, Math.max(2 * data.margin_percent, ...both.flatMap((one) =>
	quantiles.flatMap((name) => [one.quantiles[name].low_percent, one.quantiles[name].high_percent]
		.filter((value) => value !== null).map(Math.abs)))) * 1.1);

/* One quantile: its change as a dot, the interval as a line, the margin as a band. */
function interval(one) {
	const width = 260, height = 18, middle = height / 2;
	const place = (percent) => width / 2 * (1 + Math.min(Math.max(percent / reach, -1), 1));
	const made = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
		"aria-label": `${signed(one.change_percent)}, between ${signed(one.low_percent)} and ${signed(one.high_percent)}`});
	const color = verdictColors[one.verdict];
	const low = 100 / (1 + data.margin_percent / 100) - 100;

	made.append(svg("rect", {x: place(low), y: 1, height: height - 2,
		width: place(data.margin_percent) - place(low), fill: "var(--grid)"}));
	made.append(svg("line", {x1: place(0), x2: place(0), y1: 0, y2: height, stroke: "var(--dim)"}));
	if (one.low_percent === null)
		return made;
	made.append(svg("line", {x1: place(one.low_percent), x2: place(one.high_percent), y1: middle, y2: middle,
		stroke: color, "stroke-width": 3}));
	made.append(svg("circle", {cx: place(one.change_percent), cy: middle, r: 4, fill: color}));
	return made;
}

function quantileTable(one) {
	return table(["", "A#", "B#", "change#", "", "between", "verdict"], quantiles.map((name) => {
		const row = one.quantiles[name];
		const tells = row.verdict !== "cannot_tell";

		return {cells: [name, duration(row.a_ns), duration(row.b_ns), signed(row.change_percent), interval(row),
			row.low_percent === null ? "" : `${signed(row.low_percent)} to ${signed(row.high_percent)}`,
			element("span", {}, verdict(row.verdict), tells ? "" : `: ${row.reason}`)]};
	}));
}

/* --- distributions --------------------------------------------------------------------------- */

function axisSteps(low, high) {
	const steps = [];

	for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
		for (const factor of high / low < 5 ? [1, 1.5, 2, 3, 4, 5, 7] : high / low < 500 ? [1, 2, 5] : [1])
			steps.push(factor * 10 ** power);
	return steps.filter((step) => step >= low && step <= high);
}

/* The share of steps that took at most so long, of both. */
function curves(one) {
	const width = 560, height = 200, left = 44, bottom = 22, top = 14;
	const curve = one.sides.map((side) => side.curve_ns.map((ns) => Math.max(ns, 1)));
	const low = Math.min(...curve.map((values) => values[0])) * 0.95;
	const high = Math.max(...curve.map((values) => values.at(-1))) * 1.05;
	const x = (ns) => left + Math.log(ns / low) / Math.log(high / low) * (width - left - 8);
	const y = (share) => top + (1 - share) * (height - top - bottom);
	const made = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", class: "curves",
		"aria-label": "share of steps by duration"});
	const text = (at, content, anchor) => svg("text", {...at, fill: "var(--dim)", "font-size": 11,
		"text-anchor": anchor}, content);

	for (const share of [0, 0.5, 0.9, 1])
		made.append(svg("line", {x1: left, x2: width - 8, y1: y(share), y2: y(share), stroke: "var(--grid)"}),
			text({x: left - 6, y: y(share) + 4}, `${100 * share} %`, "end"));
	for (const ns of axisSteps(low, high))
		made.append(svg("line", {x1: x(ns), x2: x(ns), y1: top, y2: height - bottom, stroke: "var(--grid)"}),
			text({x: x(ns), y: height - 6}, duration(ns), "middle"));
	curve.forEach((values, side) => {
		const points = [`${x(values[0])},${y(0)}`];

		values.forEach((ns, i) => {
			points.push(`${x(ns)},${y(i / (values.length - 1))}`);
		});
		made.append(svg("polyline", {points: points.join(" "), fill: "none", stroke: sideColors[side],
			"stroke-width": 2, "stroke-dasharray": side ? "6 3" : "none"}));
	});
	return made;
}

function legend() {
	return element("div", {class: "legend"}, ...["A", "B"].map((name, side) => element("span", {},
		swatch(sideColors[side]), `${name}${side ? " (dashed)" : ""}`)));
}

/* --- classes --------------------------------------------------------------------------------- */

/* Mean time by part of both, those that changed most first; null where it is not known. */
function partTable(one) {
	const [a, b] = one.sides.map((side) => side.parts_ns);

	if (!a || !b || Object.keys(a).join() !== Object.keys(b).join())
		return element("p", {class: "dim"}, "The parts of the time are not known of both.");
	const rows = Object.keys(a).filter((name) => a[name] || b[name])
		.sort((left, right) => Math.abs(b[right] - a[right]) - Math.abs(b[left] - a[left]));

	return element("div", {}, bar(Object.entries(a)), bar(Object.entries(b)),
		table(["mean time in", "A#", "B#", "change#"], [...rows.map((name) => ({cells: [
			element("span", {}, swatch(partColors[name] ?? "#999"), partLabel(name)),
			duration(a[name]), duration(b[name]), signedTime(b[name] - a[name])]})),
		{cells: ["step", ...one.sides.map((side) => duration(side.mean_ns)),
			signedTime(one.sides[1].mean_ns - one.sides[0].mean_ns)]}]));
}

function causeTable(one) {
	const [a, b] = one.sides.map((side) => side.causes);
	const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
	const cell = (side) => side ? `${count(side.steps)}, +${duration(side.extra_ns)}` : "-";
	const extra = (name) => (a[name]?.extra_ns ?? 0) + (b[name]?.extra_ns ?? 0);

	if (!names.length)
		return element("p", {class: "dim"}, "No step of it was escalated.");
	names.sort((left, right) => extra(right) - extra(left));
	return table(["escalated for", "A#", "B#"], names.map((name) => ({cells: [
		element("span", {}, swatch(causeColors[name] ?? "#e15759"), words(name)), cell(a[name]), cell(b[name])]})));
}

function oneClass(one) {
	const [a, b] = one.sides;
	const compared = a.compared_steps < a.steps || b.compared_steps < b.steps
		? `, of sizes that both have ${count(a.compared_steps)} and ${count(b.compared_steps)}` : "";
	const made = section(`${one.function}, ${one.size}`,
		element("p", {}, verdict(one.verdict),
			`: ${count(a.steps)} steps in A, ${count(b.steps)} in B${compared}`,
			one.size_by_size ? "; each size is held against the same size" : "",
			one.regression ? `; a regression of ${data.threshold_percent} % or more` : ""),
		quantileTable(one),
		element("div", {class: "pair"}, element("div", {}, legend(), curves(one)),
			element("div", {}, partTable(one), causeTable(one))));

	made.className = "class";
}

function onlyTable() {
	const only = data.classes.filter((one) => one.only_in !== null);

	if (!only.length)
		return;
	section("Only in one of them", table(["", "function", "size", "steps#", "p50#", "share of its time#"],
		only.map((one) => {
			const side = one.only_in === "a" ? 0 : 1;
			const all = data.classes.reduce((sum, each) => sum + each.sides[side].total_ns, 0);

			return {cells: [side ? "B" : "A", one.function, one.size, count(one.sides[side].steps),
				duration(one.quantiles.p50[side ? "b_ns" : "a_ns"]),
				percent(one.sides[side].total_ns, all)]};
		})));
}

function overview() {
	page.replaceChildren(element("h1", {}, `${data.sides[0].path} and ${data.sides[1].path}`),
		element("p", {class: "dim"}, "A is what was before, B what is now; all changes are from A to B"));
	page.append(element("div", {class: data.verdict === "worse" || !data.comparable ? "verdict warn" : "verdict",
		id: "verdict"}, element("p", {}, data.headline),
		...data.doubts.map((doubt) => element("p", doubt.serious ? {class: "serious"} : {class: "dim"},
			`${doubt.serious ? "! " : ""}${doubt.text}`))));
	if (both.length)
		section("Changes", table(["function", "size", "steps A#", "steps B#", ...quantiles.map((name) => `${name}#`), "verdict"],
			both.map((one, i) => ({pick: i, cells: [one.function, one.size, ...one.sides.map((side) => count(side.steps)),
				...quantiles.map((name) => {
					const made = element("span", {}, signed(one.quantiles[name].change_percent));

					made.style.color = verdictColors[one.quantiles[name].verdict];
					return made;
				}), verdict(one.verdict)]})),
			(i) => document.querySelectorAll("section.class")[i].scrollIntoView()));
}

function method() {
	const names = {tool_version: "ferrum-bpftrace", commit_sha: "commit", env_hash: "environment", detail: "--detail",
		gpu_records: "GPU records"};
	const facts = ["path", "file", "steps", "steps_left_out", "windows", "window_ns", "lost", "compared_percent",
		"host", "arch", "kernel", "tool_version", "detail", "gpu_records", "model", "concurrency", "commit_sha",
		"env_hash"];
	const shown = (side, name) => side[name] === null ? "-" : name === "window_ns" ? duration(side[name])
		: typeof side[name] === "number" ? count(side[name]) : side[name];

	section("Can this be trusted?",
		element("p", {}, `With a probability of ${data.confidence_percent} % all ${data.comparisons} intervals hold at
			once; correlation between steps is taken into account. Same means that the whole interval is within
			${data.margin_percent} %, the grey band.`),
		table(["", "A", "B"], facts.map((name) => ({cells: [names[name] ?? words(name.replace(/_ns$/, "")),
			...data.sides.map((side) => shown(side, name))]}))));
}

overview();
both.forEach(oneClass);
onlyTable();
method();
document.documentElement.dataset.ready = "1";
})();
