// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Sends requests to server.mjs, several at once, of lengths that differ but are the same in every
// run; prints one JSON line of what came back. Exit status 1 if any request failed. PAGE is generate, or
// completion for llama.cpp's own server.
// usage: node load.mjs PORT [REQUESTS [AT_ONCE [TOKENS [PAGE]]]]
import { request } from 'node:http';

const REQUEST_MS = 60000;

const [port, requests = 12, atOnce = 4, tokens = 24] = process.argv.slice(2, 6).map(Number);
const page = process.argv[6] ?? 'generate';

// The form of a request to each server, and of its answer.
const pages = {
	generate: {
		ask: (prompt, tokens) => ({ prompt, tokens }),
		counts: ({ tokens_in, tokens_out }) => [tokens_in, tokens_out],
	},
	completion: {
		ask: (prompt, tokens) => ({
			prompt, n_predict: tokens, ignore_eos: true, cache_prompt: false, seed: 1,
		}),
		counts: ({ tokens_evaluated, tokens_predicted }) => [tokens_evaluated, tokens_predicted],
	},
};

function post(body) {
	return new Promise((done, failed) => {
		const target = { host: '127.0.0.1', port, path: `/${page}`, method: 'POST' };
		const options = { ...target, agent: false, timeout: REQUEST_MS };
		const call = request(options, (response) => {
			const chunks = [];

			response.on('data', (chunk) => chunks.push(chunk));
			response.on('error', failed);
			response.on('end', () => {
				const text = Buffer.concat(chunks).toString();

				if (response.statusCode === 200)
					done(JSON.parse(text));
				else
					failed(new Error(`status ${response.statusCode}: ${text}`));
			});
		});

		call.on('timeout', () => call.destroy(new Error('no answer in time')));
		call.on('error', failed);
		call.end(JSON.stringify(body));
	});
}

if (!port || !pages[page]) {
	console.error('usage: node load.mjs PORT [REQUESTS [AT_ONCE [TOKENS [PAGE]]]]');
	process.exit(2);
}
const sum = { requests, ok: 0, failed: 0, tokens_in: 0, tokens_out: 0, seconds: 0 };
const begin = performance.now();
let next = 0;

async function client() {
	while (next < requests) {
		const i = next++;

		try {
			const prompt = 'the quick brown fox '.repeat(1 + ((i * 5) % 7));
			const answer = await post(pages[page].ask(prompt, tokens + (i % 3)));
			const [tokensIn, tokensOut] = pages[page].counts(answer);

			sum.ok++;
			sum.tokens_in += tokensIn;
			sum.tokens_out += tokensOut;
		} catch (error) {
			sum.failed++;
			console.error(`load: request ${i}: ${error.message}`);
		}
	}
}

await Promise.all(Array.from({ length: atOnce }, client));
sum.seconds = Number(((performance.now() - begin) / 1000).toFixed(3));
console.log(JSON.stringify(sum));
process.exitCode = sum.failed ? 1 : 0;
