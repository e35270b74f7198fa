// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// A small inference server: llama.cpp in this process, HTTP on the loopback in front. It counts its
// own forward passes, independently of any tracer:
//
//	POST /generate {"prompt": "…", "tokens": N}
//	GET  /stats   decodes: calls of the addon's decodeBatch, which calls llama_decode once;
//	              tokens: what those batches held; batches: how many decodes had how many tokens
//	GET  /perf    llama.cpp's own counters (llama_perf_context_print), reset by the call
//
// usage: node server.mjs MODULES MODEL [THREADS [SEQUENCES]]
// prints "ready PID PORT"; SIGTERM ends it.
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const MAX_BODY = 65536;
const MAX_TOKENS = 512;

// Counts where the addon is called, so that nothing between here and llama_decode can hide a call.
function countDecodes(context) {
	const addon = context._ctx;
	const { initBatch, addToBatch, decodeBatch } = addon;
	const stats = { decodes: 0, failed: 0, tokens: 0, batches: {} };
	let pending = 0;

	// The prototype's methods are read-only: own properties hide them.
	const hide = (name, value) => Object.defineProperty(addon, name, { value });

	hide('initBatch', (...args) => {
		pending = 0;
		return initBatch.apply(addon, args);
	});
	hide('addToBatch', (sequence, position, tokens, ...rest) => {
		pending += tokens.length;
		return addToBatch.call(addon, sequence, position, tokens, ...rest);
	});
	hide('decodeBatch', async (...args) => {
		stats.decodes++;
		stats.tokens += pending;
		stats.batches[pending] = (stats.batches[pending] ?? 0) + 1;
		try {
			return await decodeBatch.apply(addon, args);
		} catch (error) {
			stats.failed++;
			throw error;
		}
	});
	return stats;
}

// llama.cpp prints its counters to the log, which reaches JavaScript a little later. "N runs" are
// single-token decodes; it prints 1 for none.
async function perfCounters(context, log) {
	const patterns = {
		prompt_tokens: /prompt eval time = +[\d.]+ ms \/ +(\d+) tokens/,
		single_tokens: / eval time = +[\d.]+ ms \/ +(\d+) runs/,
	};
	const counters = {};

	log.length = 0;
	context._ctx.printTimings();
	for (let i = 0; i < 100 && Object.keys(counters).length < 2; i++) {
		await new Promise((done) => setTimeout(done, 10));
		for (const [name, pattern] of Object.entries(patterns)) {
			const match = log.join('\n').match(pattern);

			if (match)
				counters[name] = Number(match[1]);
		}
	}
	return counters;
}

// As many requests run at once as the context has sequences; the others wait in order.
class Sequences {
	constructor(context, count) {
		this.free = Array.from({ length: count }, () => context.getSequence());
		this.waiting = [];
	}

	async take() {
		return this.free.pop() ?? new Promise((granted) => this.waiting.push(granted));
	}

	async give(sequence) {
		await sequence.clearHistory();
		const next = this.waiting.shift();

		if (next)
			next(sequence);
		else
			this.free.push(sequence);
	}
}

async function generate(model, sequences, { prompt, tokens }) {
	const input = [model.tokens.bos, ...model.tokenize(prompt)];
	const output = [];
	const sequence = await sequences.take();

	try {
		// Sampled with a seed: greedy choices of random weights soon repeat themselves.
		const options = { temperature: 1, seed: 1, yieldEogToken: true };

		for await (const token of sequence.evaluate(input, options)) {
			output.push(token);
			if (output.length >= Math.min(tokens, MAX_TOKENS))
				break;
		}
	} finally {
		await sequences.give(sequence);
	}
	return {
		text: model.detokenize(output),
		tokens_in: input.length,
		tokens_out: output.length,
	};
}

async function readBody(request) {
	const chunks = [];
	let size = 0;

	for await (const chunk of request) {
		size += chunk.length;
		if (size > MAX_BODY)
			throw new Error('body too large');
		chunks.push(chunk);
	}
	return JSON.parse(Buffer.concat(chunks).toString());
}

async function main([modules, file, threads = '2', count = '4']) {
	const library = resolve(modules, 'node-llama-cpp/dist/index.js');
	const { getLlama } = await import(pathToFileURL(library));
	const log = [];
	const llama = await getLlama({
		build: 'never',
		gpu: false,
		logLevel: 'info',
		logger: (level, message) => log.push(message),
	});
	const model = await llama.loadModel({ modelPath: file });
	const context = await model.createContext({
		sequences: Number(count),
		contextSize: 2048,
		batchSize: 512,
		threads: Number(threads),
		performanceTracking: true,
	});
	const stats = countDecodes(context);
	const sequences = new Sequences(context, Number(count));
	const answers = {
		'POST /generate': async (request) =>
			generate(model, sequences, await readBody(request)),
		'GET /stats': async () => stats,
		'GET /perf': async () => perfCounters(context, log),
	};
	// No timers here: an idle server must make no syscalls.
	const timeouts = { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 };
	const server = createServer(timeouts, async (request, response) => {
		const answer = answers[`${request.method} ${request.url}`];
		let status = answer ? 200 : 404;
		let body = {};

		try {
			body = answer ? await answer(request) : { error: 'no such page' };
		} catch (error) {
			status = 500;
			body = { error: error.message };
		}
		response.writeHead(status, {
			'content-type': 'application/json',
			connection: 'close',
		});
		response.end(JSON.stringify(body) + '\n');
	});

	process.once('SIGTERM', () => process.exit(0));
	server.listen(0, '127.0.0.1', () => {
		console.log(`ready ${process.pid} ${server.address().port}`);
	});
}

await main(process.argv.slice(2));
