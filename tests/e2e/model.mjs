// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Writes a small random model that llama.cpp loads: architecture llama, all weights f32, a
// vocabulary of three control tokens and the 256 bytes. The same seed gives the same file.
// usage: node model.mjs FILE [SEED]
import { openSync, writeSync, closeSync, renameSync } from 'node:fs';

const shape = { layers: 3, embedding: 256, feedForward: 512, heads: 4, context: 4096 };
const ALIGNMENT = 32;
const TYPE = { u32: 4, i32: 5, f32: 6, string: 8, array: 9 };
const F32 = 0;

function* randomNumbers(seed) {
	let state = seed >>> 0 || 1;

	for (;;) {
		// xorshift32
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		yield (state >>> 0) / 0xffffffff - 0.5;
	}
}

class Writer {
	parts = [];
	length = 0;

	bytes(buffer) {
		this.parts.push(buffer);
		this.length += buffer.length;
	}

	u32(value) {
		const buffer = Buffer.alloc(4);

		buffer.writeUInt32LE(value);
		this.bytes(buffer);
	}

	u64(value) {
		const buffer = Buffer.alloc(8);

		buffer.writeBigUInt64LE(BigInt(value));
		this.bytes(buffer);
	}

	f32(value) {
		const buffer = Buffer.alloc(4);

		buffer.writeFloatLE(value);
		this.bytes(buffer);
	}

	string(value) {
		const buffer = Buffer.from(value);

		this.u64(buffer.length);
		this.bytes(buffer);
	}

	scalar(type, value) {
		if (type === 'string')
			this.string(value);
		else if (type === 'f32')
			this.f32(value);
		else
			this.u32(value);
	}

	field(key, type, value) {
		this.string(key);
		this.u32(TYPE[Array.isArray(value) ? 'array' : type]);
		if (Array.isArray(value)) {
			this.u32(TYPE[type]);
			this.u64(value.length);
		}
		for (const item of [value].flat())
			this.scalar(type, item);
	}

	pad() {
		this.bytes(Buffer.alloc((ALIGNMENT - (this.length % ALIGNMENT)) % ALIGNMENT));
	}
}

function vocabulary() {
	const byte = (i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`;
	const bytes = Array.from({ length: 256 }, (_, i) => byte(i));
	const [UNKNOWN, CONTROL, BYTE] = [2, 3, 6];

	return {
		tokens: ['<unk>', '<s>', '</s>', ...bytes],
		types: [UNKNOWN, CONTROL, CONTROL, ...bytes.map(() => BYTE)],
	};
}

function metadata() {
	const { tokens, types } = vocabulary();

	return [
		['general.architecture', 'string', 'llama'],
		['general.name', 'string', 'random'],
		['llama.context_length', 'u32', shape.context],
		['llama.embedding_length', 'u32', shape.embedding],
		['llama.block_count', 'u32', shape.layers],
		['llama.feed_forward_length', 'u32', shape.feedForward],
		['llama.attention.head_count', 'u32', shape.heads],
		['llama.attention.head_count_kv', 'u32', shape.heads],
		['llama.attention.layer_norm_rms_epsilon', 'f32', 1e-5],
		['llama.rope.dimension_count', 'u32', shape.embedding / shape.heads],
		['llama.vocab_size', 'u32', tokens.length],
		['tokenizer.ggml.model', 'string', 'llama'],
		['tokenizer.ggml.tokens', 'string', tokens],
		['tokenizer.ggml.scores', 'f32', tokens.map(() => 0)],
		['tokenizer.ggml.token_type', 'i32', types],
		['tokenizer.ggml.unknown_token_id', 'u32', 0],
		['tokenizer.ggml.bos_token_id', 'u32', 1],
		['tokenizer.ggml.eos_token_id', 'u32', 2],
	];
}

// Dimensions as GGUF has them: the one that lies closest together in memory first.
function tensors() {
	const { embedding: e, feedForward: f } = shape;
	const n = vocabulary().tokens.length;
	const list = [['token_embd.weight', [e, n]]];

	for (let i = 0; i < shape.layers; i++) {
		list.push([`blk.${i}.attn_norm.weight`, [e]]);
		for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output'])
			list.push([`blk.${i}.${name}.weight`, [e, e]]);
		list.push([`blk.${i}.ffn_norm.weight`, [e]]);
		list.push([`blk.${i}.ffn_gate.weight`, [e, f]]);
		list.push([`blk.${i}.ffn_up.weight`, [e, f]]);
		list.push([`blk.${i}.ffn_down.weight`, [f, e]]);
	}
	list.push(['output_norm.weight', [e]], ['output.weight', [e, n]]);
	return list;
}

function build(seed) {
	const writer = new Writer();
	const random = randomNumbers(seed);
	const fields = metadata();
	const list = tensors();
	const count = (dims) => dims.reduce((a, b) => a * b, 1);
	let offset = 0;

	writer.bytes(Buffer.from('GGUF'));
	writer.u32(3);
	writer.u64(list.length);
	writer.u64(fields.length);
	for (const field of fields)
		writer.field(...field);
	for (const [name, dims] of list) {
		writer.string(name);
		writer.u32(dims.length);
		dims.forEach((dim) => writer.u64(dim));
		writer.u32(F32);
		writer.u64(offset);
		offset += Math.ceil((count(dims) * 4) / ALIGNMENT) * ALIGNMENT;
	}
	writer.pad();
	for (const [name, dims] of list) {
		const data = new Float32Array(count(dims));
		const scale = 2 / Math.sqrt(dims[0]);

		for (let i = 0; i < data.length; i++)
			data[i] = name.includes('norm') ? 1 : random.next().value * scale;
		writer.bytes(Buffer.from(data.buffer));
		writer.pad();
	}
	return Buffer.concat(writer.parts);
}

const [file, seed = '1'] = process.argv.slice(2);

if (!file) {
	console.error('usage: node model.mjs FILE [SEED]');
	process.exit(2);
}
const output = openSync(`${file}.tmp`, 'w');
const bytes = build(Number(seed));

for (let done = 0; done < bytes.length; )
	done += writeSync(output, bytes, done);
closeSync(output);
renameSync(`${file}.tmp`, file);
