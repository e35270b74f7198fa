/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Draws the report from the JSON in #data, with what is in common.js. */
(() => {

const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report;
const columns = data.points.columns;
const page = document.getElementById("page");
const pointCount = columns.number.length;
const windowNs = Math.max(report.window_ns, 1);

const clock = (ns) => new Date(data.realtime_ms + ns / 1e6).toISOString().slice(11, 23);

function section(title, ...children) {
	const made = element("section", {}, element("h2", {}, title), ...children);

	page.append(made);
	return made;
}

/* --- steps ----------------------------------------------------------------------------------- */

const causeText = new Map(data.points.words);
const kindNames = new Map(data.kinds.map((kind) => [kind.kind, kind]));

function partsOf(i) {
	const names = columns.flags[i] & 2 ? data.part_names : data.probe_part_names;
	const parts = [];

	names.forEach((name, part) => {
		const values = columns[`part${part}`];

		if (name && values && values[i])
			parts.push([name, values[i]]);
	});
	return parts;
}

const causeOf = (i) => columns.cause[i] ? data.cause_names[columns.cause[i] - 1] : null;
const causeColor = (name) => name ? causeColors[name] ?? "#e15759" : null;

const state = {
	kind: data.kinds.reduce((best, kind) => {
		const steps = kind.timeline.slots.reduce((sum, slot) =>
			sum + slot.parts.reduce((a, b) => a + b, 0), 0);
		/* Intervals have the time of all threads. */
		const isBetter = !best || !best.kind || (kind.kind && steps > best.steps);
		return isBetter ? {kind: kind.kind, steps} : best;
	}, null)?.kind ?? 0,
	from: 0,
	to: windowNs,
	log: true,
	hidden: new Set(),
	marked: -1,
};

/* Of the kind that is shown, by time. */
let shown = [];
const kindReports = new Map(report.kinds.map((kind) => [kind.number, kind]));
const kindReport = () => kindReports.get(state.kind) ?? report.kinds[0];

/* Several files may have a function of one name. */
function kindLabel(number) {
	const name = kindNames.get(number)?.name ?? kindReports.get(number)?.name;
	const path = kindReports.get(number)?.path;

	return path && report.kinds.filter((kind) => kind.name === name).length > 1 ? `${name} (${path})` : name;
}

function select() {
	shown = [];
	for (let i = 0; i < pointCount; i++) {
		if (columns.kind[i] === state.kind)
			shown.push(i);
	}
	shown.sort((a, b) => columns.start[a] - columns.start[b]);
}

/* --- charts ---------------------------------------------------------------------------------- */

const charts = [];
const left = 66, right = 8, top = 6, bottom = 22;

function theme() {
	const style = getComputedStyle(document.documentElement);
	const value = (name) => style.getPropertyValue(name).trim();

	return {text: value("--dim"), grid: value("--grid"), line: value("--line"), back: value("--back"),
		strong: value("--text")};
}

/* A canvas over time. draw(context, frame) paints the inside. */
function chart(parent, height, draw) {
	const canvas = element("canvas", {height, tabindex: 0});
	const made = {canvas, draw, height, frame: null};

	parent.append(canvas);
	charts.push(made);
	zoomable(made);
	return made;
}

function paint(made) {
	const ratio = window.devicePixelRatio || 1;
	const width = made.canvas.clientWidth;
	const context = made.canvas.getContext("2d");
	const frame = {width, height: made.height, x0: left, x1: width - right, y0: top,
		y1: made.height - bottom, theme: theme()};

	made.canvas.width = Math.round(width * ratio);
	made.canvas.height = Math.round(made.height * ratio);
	made.canvas.style.height = `${made.height}px`;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = "12px system-ui, sans-serif";
	frame.x = (ns) => frame.x0 + (ns - state.from) / (state.to - state.from) * (frame.x1 - frame.x0);
	made.frame = frame;
	timeAxis(context, frame);
	made.draw(context, frame);
	if (made.dragged) {
		context.fillStyle = "rgb(90 130 220 / 25%)";
		context.fillRect(made.dragged[0], frame.y0, made.dragged[1] - made.dragged[0],
			frame.y1 - frame.y0);
	}
}

function niceStep(range, pieces) {
	const rough = range / pieces;
	const power = 10 ** Math.floor(Math.log10(rough));
	return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function timeAxis(context, frame) {
	const step = niceStep((state.to - state.from) / 1e9, Math.max(frame.width / 110, 2));
	const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));

	context.textAlign = "center";
	context.textBaseline = "top";
	for (let at = Math.ceil(state.from / 1e9 / step) * step; at <= state.to / 1e9; at += step) {
		const x = frame.x(at * 1e9);

		context.fillStyle = frame.theme.grid;
		context.fillRect(x, frame.y0, 1, frame.y1 - frame.y0);
		context.fillStyle = frame.theme.text;
		context.fillText(`${at.toFixed(digits)} s`, Math.min(x, frame.x1 - 12), frame.y1 + 5);
	}
}

/* Of durations, from low to high. Sets frame.y. */
function durationAxis(context, frame, low, high) {
	const place = state.log ? Math.log10 : (value) => value;
	const bounds = state.log ? [Math.log10(Math.max(low * 0.8, 1)), Math.log10(high * 1.25)] : [0, high * 1.05];
	const lines = [];

	frame.y = (ns) => frame.y1 - (place(Math.max(ns, 1)) - bounds[0]) / (bounds[1] - bounds[0]) *
		(frame.y1 - frame.y0);
	if (state.log) {
		const decades = bounds[1] - bounds[0];
		const factors = decades < 1.5 ? [1, 2, 3, 5, 7] : decades < 3 ? [1, 2, 5] : [1];

		for (let power = Math.floor(bounds[0]); power <= bounds[1]; power++)
			factors.forEach((factor) => lines.push(factor * 10 ** power));
	} else {
		const step = niceStep(bounds[1], 5);

		for (let at = 0; at <= bounds[1]; at += step)
			lines.push(at);
	}
	context.textAlign = "right";
	context.textBaseline = "middle";
	for (const ns of lines) {
		const y = ns ? frame.y(ns) : frame.y1;

		if (y < frame.y0 || y > frame.y1)
			continue;
		context.fillStyle = frame.theme.grid;
		context.fillRect(frame.x0, y, frame.x1 - frame.x0, 1);
		context.fillStyle = frame.theme.text;
		context.fillText(duration(ns), frame.x0 - 6, y);
	}
}

function redraw() {
	charts.forEach(paint);
	document.getElementById("range").textContent = state.from > 0 || state.to < windowNs
		? `${duration(state.from)} to ${duration(state.to)}` : "";
}

/* Paper is white, whatever the screen is; a chart has the colours with which it was drawn. */
function forPaper(is) {
	document.documentElement.classList.toggle("paper", is);
	redraw();
}

function zoom(from, to) {
	state.from = Math.max(from, 0);
	state.to = Math.min(to, windowNs);
	if (state.to - state.from < 1e4)
		state.to = state.from + 1e4;
	redraw();
}

function zoomable(made) {
	let begin = null;
	const at = (event) => {
		const x = event.clientX - made.canvas.getBoundingClientRect().left;
		return Math.min(Math.max(x, made.frame.x0), made.frame.x1);
	};
	const time = (x) => state.from + (x - made.frame.x0) / (made.frame.x1 - made.frame.x0) *
		(state.to - state.from);

	made.canvas.addEventListener("pointerdown", (event) => {
		if (event.button)
			return;
		begin = at(event);
		made.canvas.setPointerCapture(event.pointerId);
	});
	made.canvas.addEventListener("pointermove", (event) => {
		if (begin === null) {
			made.hover?.(event);
			return;
		}
		made.dragged = [Math.min(begin, at(event)), Math.max(begin, at(event))];
		paint(made);
	});
	made.canvas.addEventListener("pointerup", (event) => {
		const end = at(event), first = begin;

		begin = null;
		made.dragged = null;
		if (first !== null && Math.abs(end - first) > 4)
			zoom(time(Math.min(first, end)), time(Math.max(first, end)));
		else
			paint(made);
	});
	made.canvas.addEventListener("pointerleave", hideTip);
	made.canvas.addEventListener("dblclick", () => zoom(0, windowNs));
	made.canvas.addEventListener("keydown", (event) => {
		if (event.key === "Escape")
			zoom(0, windowNs);
	});
}

/* --- the tip --------------------------------------------------------------------------------- */

const tip = element("div", {id: "tip", hidden: true, role: "status"});

function hideTip() {
	tip.hidden = true;
}

function showTip(x, y, ...children) {
	tip.replaceChildren(...children);
	tip.hidden = false;
	tip.style.left = `${Math.max(4, Math.min(x + 14, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
	tip.style.top = `${y + 14}px`;
}

function describe(i) {
	const cause = causeOf(i), parts = partsOf(i), arg = columns.arg[i];
	const kind = kindNames.get(columns.kind[i]);
	const usual = columns.usual[i];
	const lines = [element("b", {}, `#${columns.number[i]} ${kindLabel(columns.kind[i]) ?? "step"} ${duration(columns.total[i])}`)];

	if (usual)
		lines.push(`, usually ${duration(usual)}`);
	lines.push(element("div", {class: "dim"}, `${clock(columns.start[i])} UTC, ${duration(columns.start[i])} into the window, thread ${columns.tid[i]}`,
		arg !== null && kind?.arg ? `, ${kind.arg} ${count(arg)}` : ""));
	if (cause)
		lines.push(element("div", {}, swatch(causeColor(cause)), element("b", {}, words(cause)),
			causeText.has(columns.number[i]) ? `: ${causeText.get(columns.number[i])}` : ""));
	lines.push(bar(parts));
	lines.push(element("table", {}, ...parts.sort((a, b) => b[1] - a[1]).map(([name, ns]) =>
		element("tr", {}, element("td", {}, swatch(partColors[name] ?? "#999"), partLabel(name)),
			element("td", {class: "number"}, duration(ns)),
			element("td", {class: "number"}, percent(ns, columns.total[i]))))));
	if (!(columns.flags[i] & 4))
		lines.push(element("div", {class: "dim"}, "records of this step were lost or cut off"));
	return lines;
}

/* --- every step ------------------------------------------------------------------------------ */

function drawSteps(context, frame) {
	const inside = shown.filter((i) => columns.start[i] >= state.from && columns.start[i] <= state.to &&
		!state.hidden.has(causeOf(i)));
	let low = Infinity, high = 0;

	for (const i of inside) {
		low = Math.min(low, columns.total[i]);
		high = Math.max(high, columns.total[i]);
	}
	durationAxis(context, frame, high ? Math.max(low, 1) : 1e3, high || 1e9);
	frame.inside = inside;
	context.fillStyle = "#4e79a7";
	for (const i of inside) {
		if (!columns.cause[i])
			context.fillRect(frame.x(columns.start[i]) - 1, frame.y(columns.total[i]) - 1, 2, 2);
	}
	for (const i of inside) {
		if (!columns.cause[i])
			continue;
		context.fillStyle = causeColor(causeOf(i));
		context.beginPath();
		context.arc(frame.x(columns.start[i]), frame.y(columns.total[i]), 3.5, 0, 7);
		context.fill();
	}
	if (state.marked >= 0 && columns.kind[state.marked] === state.kind) {
		context.strokeStyle = frame.theme.strong;
		context.lineWidth = 2;
		context.beginPath();
		context.arc(frame.x(columns.start[state.marked]), frame.y(columns.total[state.marked]), 8, 0, 7);
		context.stroke();
	}
}

/* The nearest point within 14 pixels; escalated ones first. */
function nearest(made, event) {
	const box = made.canvas.getBoundingClientRect();
	const x = event.clientX - box.left, y = event.clientY - box.top;
	let best = -1, least = 14 ** 2;

	for (const i of made.frame.inside) {
		const dx = made.frame.x(columns.start[i]) - x, dy = made.frame.y(columns.total[i]) - y;
		const distance = (dx * dx + dy * dy) * (columns.cause[i] ? 0.4 : 1);

		if (distance < least) {
			least = distance;
			best = i;
		}
	}
	return best;
}

function stepChart(parent) {
	const made = chart(parent, 260, drawSteps);

	made.canvas.id = "steps";
	made.hover = (event) => {
		const i = nearest(made, event);

		if (i < 0)
			hideTip();
		else
			showTip(event.pageX, event.pageY, ...describe(i));
	};
	return made;
}

/* --- over time ------------------------------------------------------------------------------- */

const timeline = () => kindNames.get(state.kind)?.timeline ?? {width: windowNs, slots: []};

/* Several slots together, where they would be narrower than so many pixels. */
function slotsInView(frame, least) {
	const {width, slots} = timeline();
	const pixels = width / (state.to - state.from) * (frame.x1 - frame.x0);
	const together = Math.max(1, Math.ceil(least / pixels));
	const made = [];

	for (let i = 0; i < slots.length; i += together) {
		const from = i * width, to = (i + together) * width;

		if (to <= state.from || from >= state.to)
			continue;
		made.push({from, to, slots: slots.slice(i, i + together)});
	}
	return made;
}

function binsOf(group) {
	const bins = new Map();

	for (const slot of group.slots)
		slot.bins.forEach(([bin, n]) => bins.set(bin, (bins.get(bin) ?? 0) + n));
	return [...bins].sort((a, b) => a[0] - b[0]);
}

const binMiddle = (bin) => ((data.bins[bin] ?? 0) + (data.bins[bin + 1] ?? data.bins[bin])) / 2;

function quantile(bins, share) {
	const total = bins.reduce((sum, bin) => sum + bin[1], 0);
	let seen = 0;

	for (const [bin, n] of bins) {
		seen += n;
		if (seen >= Math.ceil(share * total))
			return binMiddle(bin);
	}
	return null;
}

const quantiles = [["p50", 0.5, "#4e79a7"], ["p95", 0.95, "#f28e2b"], ["p99", 0.99, "#e15759"]];

/* Groups of some fifty steps, so that a percentile means something, but no wider than 40 pixels. */
function quantileWidth(frame) {
	const {width, slots} = timeline();
	const steps = slots.reduce((sum, slot) => sum + slot.bins.reduce((n, bin) => n + bin[1], 0), 0);
	const pixels = width * slots.length / (state.to - state.from) * (frame.x1 - frame.x0);

	return Math.min(Math.max(3, 50 * pixels / Math.max(steps, 1)), 40);
}

function drawQuantiles(context, frame) {
	const groups = slotsInView(frame, quantileWidth(frame)).map((group) => ({at: (group.from + group.to) / 2,
		bins: binsOf(group)})).filter((group) => group.bins.length);
	let low = Infinity, high = 0;

	for (const group of groups) {
		low = Math.min(low, quantile(group.bins, 0.5));
		high = Math.max(high, quantile(group.bins, 0.99));
	}
	durationAxis(context, frame, high ? Math.max(low, 1) : 1e3, high || 1e9);
	context.save();
	context.beginPath();
	context.rect(frame.x0, frame.y0, frame.x1 - frame.x0, frame.y1 - frame.y0);
	context.clip();
	for (const [, share, color] of quantiles) {
		context.strokeStyle = color;
		context.lineWidth = 1.5;
		context.beginPath();
		groups.forEach((group, i) => {
			const x = frame.x(group.at), y = frame.y(quantile(group.bins, share));

			if (i)
				context.lineTo(x, y);
			else
				context.moveTo(x, y);
		});
		context.stroke();
	}
	context.restore();
}

function drawParts(context, frame) {
	const groups = slotsInView(frame, 3);
	const names = kindNames.size && shown.length && !(columns.flags[shown[0]] & 2)
		? data.probe_part_names : data.part_names;
	const sums = groups.map((group) => names.map((name, part) =>
		group.slots.reduce((sum, slot) => sum + slot.parts[part], 0)));
	/* Shares of the time that passed: several threads in steps at once make more than 100 %. */
	const share = (group, ns) => ns / (group.to - group.from);
	const high = Math.max(0.01, ...groups.map((group, i) => share(group, sums[i].reduce((a, b) => a + b, 0))));
	const height = frame.y1 - frame.y0;

	context.textAlign = "right";
	context.textBaseline = "middle";
	for (let at = 0; at <= high; at += niceStep(high, 4)) {
		const y = frame.y1 - at / (high * 1.05) * height;

		context.fillStyle = frame.theme.grid;
		context.fillRect(frame.x0, y, frame.x1 - frame.x0, 1);
		context.fillStyle = frame.theme.text;
		context.fillText(`${Math.round(100 * at)} %`, frame.x0 - 6, y);
	}
	context.save();
	context.beginPath();
	context.rect(frame.x0, frame.y0, frame.x1 - frame.x0, height);
	context.clip();
	groups.forEach((group, i) => {
		const x = frame.x(group.from), width = Math.max(frame.x(group.to) - x - 0.5, 1);
		let y = frame.y1;

		names.forEach((name, part) => {
			const tall = share(group, sums[i][part]) / (high * 1.05) * height;

			if (!tall)
				return;
			context.fillStyle = partColors[name] ?? "#999";
			context.fillRect(x, y - tall, width, tall);
			y -= tall;
		});
	});
	drawGpu(context, frame, groups, (ratio) => frame.y1 - ratio / (high * 1.05) * height);
	context.restore();
}

const gpuOf = (slots) => slots.reduce(([busy, known], slot) =>
	[busy + (slot.gpu?.[0] ?? 0), known + (slot.gpu?.[1] ?? 0)], [0, 0]);

/* How much of the time that passed the GPU was busy in steps, as a line over the parts. */
function drawGpu(context, frame, groups, y) {
	let drawn = false;

	context.strokeStyle = frame.theme.strong;
	context.lineWidth = 1.5;
	context.beginPath();
	for (const group of groups) {
		const [busy, known] = gpuOf(group.slots);

		if (!known) {
			drawn = false;
			continue;
		}
		const at = y(busy / (group.to - group.from));
		if (drawn)
			context.lineTo(frame.x(group.from), at);
		else
			context.moveTo(frame.x(group.from), at);
		context.lineTo(frame.x(group.to), at);
		drawn = true;
	}
	context.stroke();
}

function drawHeat(context, frame) {
	const groups = slotsInView(frame, 3).map((group) => ({...group, bins: binsOf(group)}));
	const used = groups.flatMap((group) => group.bins.map((bin) => bin[0]));
	const most = Math.max(1, ...groups.flatMap((group) => group.bins.map((bin) => bin[1])));
	if (!used.length)
		return;
	const low = Math.min(...used), high = Math.max(...used);

	durationAxis(context, frame, Math.max(data.bins[low], 1), data.bins[high + 1] ?? data.bins[high]);
	for (const group of groups) {
		const x = Math.max(frame.x(group.from), frame.x0);
		const width = Math.max(Math.min(frame.x(group.to), frame.x1) - x, 1);

		for (const [bin, n] of group.bins) {
			const y0 = frame.y(data.bins[bin + 1] ?? data.bins[bin]);
			const y1 = Math.min(frame.y(Math.max(data.bins[bin], 1)), frame.y1);
			const hot = Math.log1p(n) / Math.log1p(most);

			context.fillStyle = `hsl(${210 - 190 * hot} 75% ${62 - 14 * hot}%)`;
			context.fillRect(x, y0, width, Math.max(y1 - y0, 1));
		}
	}
}

/* --- the page -------------------------------------------------------------------------------- */

function header() {
	const process = report.processes.find((p) => p.threads?.some((t) => t.steps)) ?? report.processes[0];
	const title = process ? `${process.comm || "?"}[${process.pid}]` : report.tag;
	const start = new Date(data.realtime_ms).toISOString().replace("T", " ").slice(0, 19);

	page.replaceChildren(element("h1", {}, `${data.kinds.map((kind) => kindLabel(kind.kind)).join(", ") || "no steps"}: ${title} on ${report.host}`),
		element("p", {class: "dim"}, `${duration(report.window_ns)} from ${start} UTC, Linux ${report.kernel_release}, ` +
			`ferrum-bpftrace ${report.tool_version}, ${report.tag}`));
	if (process?.cmdline)
		page.append(element("p", {class: "dim"}, process.cmdline.length > 200 ? `${process.cmdline.slice(0, 200)}…` : process.cmdline));
}

/*
 * The first block of the text report: the headline and the findings, rejoined from its lines. Below a
 * hang, lines that begin with four spaces are lines of their own; the part "Hangs" has the threads.
 */
function verdict() {
	const block = data.text.split("\n\n")[0].split("\n");
	const joined = [];
	let ofHang = false;

	for (const line of block) {
		if (/^\s{2}/.test(line) && joined.length && !(ofHang && /^ {4}\S/.test(line))) {
			joined[joined.length - 1] += ` ${line.trim()}`;
			continue;
		}
		if (!line.startsWith(" "))
			ofHang = line.startsWith("! hang:");
		if (line.trim())
			joined.push(line);
	}
	const kept = joined.filter((line) => !line.startsWith("    ") || line.startsWith("    it ended"));
	page.append(element("div", {class: kept.some((line) => line.startsWith("!")) ? "verdict warn" : "verdict", id: "verdict"},
		...kept.map((line) => element("p", {class: line.startsWith(" ") ? "below" : null}, line.trim()))));
}

/* Of a sampled function only the steps that began while its probes were on are known. */
function stepsPerSecond(kind) {
	const share = kind?.sampling ? kind.sampling.watched_percent / 100 : 1;

	return kind && share ? three(kind.steps / share / (windowNs / 1e9)) : "-";
}

const seenIn = (sampling) => `${tenths(sampling.watched_percent)} of the time`;

function cards() {
	const kind = kindReport();
	/* Of no step the figures are not 0, but unknown: none has returned. */
	const figures = kind?.duration?.count ? kind.duration : {};
	const lost = report.lost.total;
	const items = [
		["steps", kind ? count(kind.steps) : "0"],
		[kind?.sampling ? `steps per second (seen in ${seenIn(kind.sampling)})` : "steps per second", stepsPerSecond(kind)],
		["p50", duration(figures.p50_ns)], ["p95", duration(figures.p95_ns)],
		["p99", duration(figures.p99_ns)], ["max", duration(figures.max_ns)],
		["escalated", count(report.escalations.escalated)],
		["lost records", count(lost), lost > 0],
		["cost to the target", tenths(report.cost?.added_percent),
			report.cost && report.cost.added_percent > 1],
	];

	return element("div", {class: "cards", id: "cards"}, ...items.map(([label, value, warn]) =>
		element("div", {class: warn ? "card warn" : "card"}, label, element("b", {}, value))));
}

const inSteps = (n) => `in ${count(n)} ${n === 1 ? "step" : "steps"}`;

/* Who had the CPU, as far as that was seen. */
function takers(taken) {
	const share = (label, ns) => [ns, `${label} ${percent(ns, taken.waited_ns)}`];
	const by = taken.by.slice(0, 3).map(({pid, name, cgroup, ns}) => share(name === null
		? `many processes of cgroup ${cgroup}`
		: `${name} (${pid === null ? "several processes" : `pid ${pid}`}${
			cgroup && cgroup !== "/" ? `, cgroup ${cgroup}` : ""})`, ns));
	const all = [share("its own threads", taken.own_threads_ns), ...by].sort((a, b) => b[0] - a[0])
		.concat([share("nobody (the CPU was idle)", taken.idle_ns)]);

	return `taken by, of the ${duration(taken.waited_ns)} that were seen: ${
		all.filter(([ns]) => ns >= 0.02 * taken.waited_ns).map(([, text]) => text).join(", ")}`;
}

function wakers(cause) {
	const list = cause.woken_by.map(({name, pid, own, perhaps, steps}) => `${perhaps ? "perhaps " : ""}${
		own ? `its own thread ${name}` : pid === null ? name : `${name} (pid ${pid})`} ${inSteps(steps)}`);

	if (cause.woken_by_interrupt)
		list.push(`an interrupt (a timer or a device) ${inSteps(cause.woken_by_interrupt)}`);
	return list.length ? `woken by ${list.join(", ")}` : null;
}

/* What is known of a cause besides its evidence: lines below it. */
function reasonsOf(cause) {
	const after = cause.worst_waker_after_ns ? `, ${duration(cause.worst_waker_after_ns)} after the wait began` : "";
	const steps = cause.explained_steps + cause.unexplained_steps;

	return [
		cause.stack && `in ${cause.stack}`,
		cause.worst_waker_stack && `ended in ${cause.worst_waker_stack}${after}`,
		cause.worst_holder_stack && `held in ${cause.worst_holder_stack}`,
		/* Who held the lock or ended the wait is more than what all others did. */
		!cause.worst_holder_stack && !cause.worst_waker_stack && cause.worst_others && `meanwhile ${cause.worst_others}`,
		cause.cpu_taken && takers(cause.cpu_taken),
		cause.woken_by && wakers(cause),
		cause.grown_functions?.length && `grew: ${cause.grown_functions.slice(0, 3).map((grown) =>
			`${grown.name} ${duration(grown.ns)} ${inSteps(grown.steps)}`).join(", ")}`,
		cause.unexplained_steps && `not known in ${count(cause.unexplained_steps)} of ${count(steps)} steps, as that was not looked at then`,
	].filter((line) => line);
}

function causes() {
	const list = report.escalations.causes;

	if (!list.length)
		return;
	section("Why steps were slow", table(["cause", "steps#", "extra time#", "worst#", "evidence", "what to do"],
		list.map((cause) => ({
			pick: cause.worst_step,
			cells: [element("span", {}, swatch(causeColor(cause.cause)), words(cause.cause)), count(cause.steps),
				duration(cause.extra_ns), `#${cause.worst_step} ${duration(cause.worst_duration_ns)}`,
				element("div", {}, cause.worst_evidence, ...reasonsOf(cause).map((line) => element("div", {class: "dim"}, line))),
				cause.advice],
		})), markNumber));
}

const doingWords = {cpu: "on a CPU", cpu_wait: "waiting for a CPU", kernel: "asleep outside of calls", unknown: "not known"};

/* Threads that were in the same place. */
function groupRow(group) {
	const {threads: n, tids, name, doing, call} = group;
	const who = n === 1 ? `thread ${tids[0]}` : `${count(n)} threads (${tids.join(", ")}${n > tids.length ? ", …" : ""})`;
	const inCall = call && `${call}${group.call_ns === null ? "" : ` for ${duration(group.call_ns)}`}`;
	const state = doing === call ? inCall : `${doingWords[doing] ?? doing}${inCall ? `, in ${inCall}` : ""}`;

	return {cells: [name ? `${who} "${name}"` : who, state, group.stack ? `${group.near ? "near " : ""}${group.stack}` : ""]};
}

function hangs() {
	if (!report.hang_count)
		return;
	const more = report.hang_count - report.hangs.length;

	section("Hangs", ...report.hangs.flatMap((hang) => [element("p", {}, hang.text),
		hang.threads.length ? table(["threads", "in", "where"], hang.threads.map(groupRow)) : null,
		hang.threads_not_shown ? element("p", {class: "dim"}, `${count(hang.threads_not_shown)} more threads`) : null]),
	more > 0 ? element("p", {class: "dim"}, `and ${count(more)} more`) : null).id = "hangs";
}

/* A step of a table: show it in the chart. */
function markNumber(number) {
	const i = columns.number.indexOf(number);

	if (i < 0)
		return;
	state.marked = i;
	if (columns.kind[i] !== state.kind)
		choose(columns.kind[i]);
	const reach = Math.max(columns.total[i] * 6, windowNs / 40);
	zoom(columns.start[i] + columns.total[i] / 2 - reach, columns.start[i] + columns.total[i] / 2 + reach);
	document.getElementById("steps").scrollIntoView({block: "center"});
}

function causeLegend() {
	const present = [...new Set(shown.map(causeOf))].sort();

	return [null, ...present.filter((name) => name)].map((name) => element("button", {
		class: state.hidden.has(name) ? "off" : "", type: "button", title: "show or hide",
		onclick: () => {
			if (!state.hidden.delete(name))
				state.hidden.add(name);
			choose(state.kind);
		},
	}, swatch(name ? causeColor(name) : "#4e79a7"), name ? words(name) : "not escalated"));
}

function partLegend() {
	const total = new Map();

	for (const slot of timeline().slots)
		slot.parts.forEach((ns, part) => total.set(part, (total.get(part) ?? 0) + ns));
	const all = [...total.values()].reduce((a, b) => a + b, 0);
	const known = !shown.length || columns.flags[shown[0]] & 2;

	const [busy, gpuKnown] = gpuOf(timeline().slots);

	return [...total].filter((entry) => entry[1]).map(([part, ns]) => {
		const name = (known ? data.part_names : data.probe_part_names)[part] ?? data.part_names[part];
		return element("span", {}, swatch(partColors[name] ?? "#999"), `${partLabel(name)} ${percent(ns, all)}`);
	}).concat(gpuKnown ? [element("span", {class: "strong"}, `line: GPU busy ${percent(busy, gpuKnown)}`)] : []);
}

function slowest() {
	const worst = [...shown].sort((a, b) => columns.total[b] - columns.total[a]).slice(0, 12);
	const arg = kindNames.get(state.kind)?.arg;

	return table(["step", "at#", "took#", ...(arg ? [`${arg}#`] : []), "where the time went", "cause"], worst.map((i) => ({
		pick: columns.number[i],
		cells: [`#${columns.number[i]}`, duration(columns.start[i]), duration(columns.total[i]),
			...(arg ? [columns.arg[i] === null ? "" : count(columns.arg[i])] : []), bar(partsOf(i)),
			causeOf(i) ? words(causeOf(i)) : ""],
	})), markNumber);
}

function stepsSection() {
	const {seen, stride, escalated_kept: kept} = data.points;
	const first = kept < report.escalations.escalated ? `first ${count(kept)} ` : "";
	const made = section("Every step", element("div", {class: "tools"},
		data.kinds.length > 1 ? element("label", {}, "step function ", element("select", {id: "kind",
			onchange: (event) => choose(Number(event.target.value))}, ...data.kinds.map((kind) =>
			element("option", {value: kind.kind, selected: kind.kind === state.kind}, kindLabel(kind.kind))))) : null,
		element("label", {}, element("input", {type: "checkbox", checked: true, id: "log",
			onchange: (event) => { state.log = event.target.checked; redraw(); }}), " log scale"),
		element("button", {type: "button", id: "reset", onclick: () => zoom(0, windowNs)}, "whole window"),
		element("span", {class: "dim"}, "Drag to zoom all charts, double-click for the whole window."),
		element("span", {class: "dim", id: "range"})));

	if (stride > 1)
		made.append(element("p", {class: "dim"}, `${count(pointCount)} of ${count(seen)} steps are drawn: ` +
			`the ${first}escalated ones, and of ${stride} others in a row the longest. The other charts have all steps.`));
	stepChart(made);
	made.append(element("div", {class: "legend", id: "causes"}));
}

function timeSections() {
	const time = element("div"), parts = element("div"), heat = element("div"), slow = element("div", {id: "slowest"});

	time.append(element("h2", {}, "Percentiles over time"));
	chart(time, 220, drawQuantiles).canvas.id = "quantiles";
	time.append(element("div", {class: "legend"}, ...quantiles.map(([name, , color]) =>
		element("span", {}, swatch(color), name)), element("span", {class: "dim"}, "to within 7 %")));
	parts.append(element("h2", {}, "Where the time went"));
	chart(parts, 220, drawParts).canvas.id = "parts";
	parts.append(element("div", {class: "legend", id: "part-legend"}));
	page.append(element("div", {class: "pair"}, time, parts));
	heat.append(element("h2", {}, "How many steps took how long"));
	chart(heat, 260, drawHeat).canvas.id = "heat";
	page.append(element("div", {class: "pair"}, heat, slow));
}

function classes() {
	const rows = report.kinds.flatMap((kind) => (kind.classes ?? []).map((group) => ({cells: [kindLabel(kind.number),
		group.by === "work_ns" ? `work ${duration(group.from)} to ${duration(group.to)}` : `${group.by} ${count(group.from)} to ${count(group.to)}`,
		count(group.steps), duration(group.total_ns), duration(group.tail?.median?.mean_ns), duration(group.tail?.slowest?.mean_ns)]})));

	if (rows.length)
		section("Classes of steps", table(["step function", "class", "steps#", "total#", "median ones#", "slowest 1 %#"], rows));
}

function threads() {
	const withCalls = report.detail !== "probes";
	const rows = report.processes.flatMap((process) => (process.threads ?? []).map((thread) => ({
		busy: thread.cpu_ns + thread.cpu_wait_ns,
		cells: [`${process.comm}[${process.pid}]`, String(thread.tid), thread.name, thread.steps ? "yes" : "", duration(thread.cpu_ns),
			duration(thread.cpu_wait_ns), duration(thread.blocked_ns),
			...(withCalls ? [count(thread.calls), duration(thread.syscall_ns)] : [])]})));

	if (rows.length)
		section("Threads", table(["process", "thread#", "name", "steps", "on a CPU#", "waiting for a CPU#", "blocked#",
			...(withCalls ? ["calls#", "time in calls#"] : [])], rows.sort((a, b) => b.busy - a.busy).slice(0, 40)));
}

function calls() {
	const rows = report.processes.flatMap((process) => (process.syscalls ?? []).map((call) => ({total: call.total_ns,
		cells: [`${process.comm}[${process.pid}]`, call.name, call.category, count(call.calls), count(call.errors), duration(call.total_ns), duration(call.mean_ns), duration(call.max_ns)]})));

	if (rows.length)
		section("System calls", table(["process", "call", "category", "calls#", "errors#", "total#", "mean#", "max#"],
			rows.sort((a, b) => b.total - a.total).slice(0, 20)));
}

function gpu() {
	const rows = report.gpu_processes.filter((process) => process.armed || process.kernels).map((process) => ({cells: [
		String(process.pid), process.status, count(process.kernels), count(process.memcpys), count(process.joined), count(process.unjoined),
		count(process.cupti_dropped + process.ring_lost), process.clock]}));

	const kinds = report.kinds.filter((kind) => kind.gpu?.total_ns).map((kind) => {
		const figures = kind.gpu, share = (ns) => percent(ns, figures.total_ns);
		const bound = Object.entries(figures.bound).sort((a, b) => b[1] - a[1])[0];

		return {cells: [kindLabel(kind.number), share(figures.busy_ns), share(figures.host_wait_ns), share(figures.launch_ns),
			share(figures.queue_ns), share(figures.unattributed_ns), words(bound[0]), count(figures.kernels)]};
	});

	if (kinds.length)
		section("GPU in steps", table(["step function", "busy#", "idle: host wait#", "launch calls#", "queue#", "not attributed#", "mostly bound by", "kernels#"], kinds));
	if (rows.length)
		section("GPU records", table(["process", "status", "kernels#", "copies#", "joined#", "not joined#", "lost#", "clock"], rows));
}

const lostWords = {
	calls: "calls: missing from the trace, but counted", steps: "steps: missing from all step figures",
	threads: "threads: not traced, nothing of them is counted", begins: "step begins: on threads that are not traced",
	processes: "processes: not traced, nothing of them is counted", files: "file names: their calls are counted",
};

/* What is missing from the figures, and from which; a line for each. */
function losses() {
	const lines = Object.entries(report.lost).filter(([name, n]) => name !== "total" && n)
		.map(([name, n]) => `Lost ${count(n)} ${lostWords[name] ?? name}.`);

	if (report.unseen_calls)
		lines.push(`System calls of all processes together that were not seen: up to ${count(report.unseen_calls)}. ` +
			"Counts of calls may be too low by that.");
	if (report.skipped_records)
		lines.push(`Damaged or unknown records that were skipped: ${count(report.skipped_records)}.`);
	if (report.unkept_records)
		lines.push(`Records that found no room: ${count(report.unkept_records)}. ` +
			"Some names of threads, code or GPU work are missing, but no step or call.");
	for (const process of report.gpu_processes) {
		const lost = process.cupti_dropped + process.ring_lost;

		if (lost)
			lines.push(`Lost ${count(lost)} GPU records of process ${process.pid}: the GPU looks idle there.`);
		if (process.no_buffer)
			lines.push(`Lost buffers of GPU records of process ${process.pid}: ${count(process.no_buffer)}.`);
	}
	return lines.length ? lines : ["No record was lost."];
}

function costOfTracing(cost) {
	const share = `${tenths(cost.added_percent)} of the target's time`;

	if (cost.added_percent === null)
		return "What tracing adds to the target was not measured.";
	if (report.detail === "probes")
		return `A traced step costs up to ${duration(cost.per_step_ns)}: ${share}. System calls cost nothing, as none is traced.`;
	return `A traced system call costs ${three(cost.per_call_ps / 1000)} ns, a step up to ${duration(cost.per_step_ns)}: ${share}. ` +
		`Calls shorter than ${duration(cost.floor_ns)} cannot be told apart.`;
}

function trust() {
	const cost = report.cost;
	const lines = losses();

	if (report.incomplete_steps)
		lines.push((report.incomplete_steps === 1 ? "1 step is" : `${count(report.incomplete_steps)} steps are`) +
			" incomplete: lost or cut off by the begin or the end of the window.");
	if (report.cut_off)
		lines.push("The tracer did not see the end of the window.");
	if (report.detail === "probes")
		lines.push("System calls were not traced (--detail probes).");
	for (const kind of report.kinds) {
		if (kind.sampling)
			lines.push(`Steps of ${kindLabel(kind.number)} are sampled, ${seenIn(kind.sampling)}: ` +
				"counts, sums and gaps do not cover all of its calls.");
		if (kind.untraced_steps)
			lines.push(`${count(kind.untraced_steps)} calls of ${kindLabel(kind.number)} were not traced.`);
	}
	if (cost) {
		const measured = cost.added_percent !== null;

		lines.push(costOfTracing(cost));
		if (cost.added_by_gpu_records_ns)
			lines.push(`GPU records added up to ${duration(cost.added_by_gpu_records_ns)}${measured ? " of it" : ""}, while the GPU was idle.`);
		lines.push(`The tool used ${duration(cost.tool_cpu_ns)} of CPU time and ${(cost.tool_rss_bytes / 1048576).toFixed(0)} MiB.`);
	}
	section("Can these numbers be trusted?", ...lines.map((line) => element("p", {}, line)));
}

function choose(kind) {
	state.kind = kind;
	select();
	const selector = document.getElementById("kind");
	if (selector)
		selector.value = String(kind);
	document.getElementById("cards").replaceWith(cards());
	document.getElementById("causes").replaceChildren(...causeLegend());
	document.getElementById("part-legend").replaceChildren(...partLegend());
	document.getElementById("slowest").replaceChildren(element("h2", {}, "Slowest steps"), slowest());
	redraw();
}

window.addEventListener("error", (event) => page.append(element("p", {class: "verdict warn"},
	`A part of this page could not be drawn (${event.message}). The text report is whole.`)));
header();
verdict();
page.append(cards());
hangs();
causes();
if (data.kinds.length) {
	stepsSection();
	timeSections();
}
classes();
threads();
calls();
gpu();
trust();
page.append(element("details", {}, element("summary", {}, "The whole report as text"), element("pre", {}, data.text)));
document.body.append(tip);
if (data.kinds.length) {
	choose(state.kind);
	window.addEventListener("resize", redraw);
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	window.addEventListener("beforeprint", () => forPaper(true));
	window.addEventListener("afterprint", () => forPaper(false));
}
document.documentElement.dataset.ready = "1";
})();
