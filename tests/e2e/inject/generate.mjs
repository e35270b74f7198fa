// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Asks tests/e2e/server.mjs for the same texts over and over, one request at a time: what is computed
// together in one batch changes the last bits. Every answer has to be the one in FILE, which is
// written with ROUNDS rounds if it is not there.
//
// usage: node generate.mjs PORT FILE [ROUNDS]
// Without ROUNDS it says "ready" after the first one; SIGTERM ends it, and it says how it went.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const [port, file, rounds] = process.argv.slice(2);
const prompts = [
	'The quick brown fox',
	'Once upon a time there was a server that nobody dared to restart',
	'0123456789',
];
const TOKENS = 24;

async function ask(prompt) {
	const response = await fetch(`http://127.0.0.1:${port}/generate`, {
		method: 'POST',
		body: JSON.stringify({ prompt, tokens: TOKENS }),
	});

	return { status: response.status, ...(await response.json()) };
}

const wanted = existsSync(file) ? JSON.parse(readFileSync(file)) : [];
const failures = [];
let stopped = false;
let requests = 0;
let longest = 0;

process.once('SIGTERM', () => (stopped = true));
for (let round = 0; !stopped && round < Number(rounds ?? Infinity); round++) {
	for (const [i, prompt] of prompts.entries()) {
		const begin = performance.now();
		const answer = await ask(prompt).catch((error) => ({ status: String(error) }));

		longest = Math.max(longest, performance.now() - begin);
		requests++;
		wanted[i] ??= answer.text;
		if (answer.status !== 200 || answer.tokens_out !== TOKENS || answer.text !== wanted[i])
			failures.push(JSON.stringify(answer));
	}
	if (round === 0)
		console.log('ready');
}
if (!existsSync(file))
	writeFileSync(file, JSON.stringify(wanted));
failures.slice(0, 3).forEach((failure) => console.log(`# ${failure}`));
console.log(`${failures.length ? 'not ok' : 'ok'} - every text is the one of an undisturbed run`);
console.log(`# ${requests} texts, ${failures.length} wrong, longest ${longest.toFixed(1)} ms`);
process.exitCode = failures.length ? 1 : 0;
