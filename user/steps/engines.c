/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * To add an engine: the names of its step functions, and a predicate as is_llama, which
 * engines_know and engines_rank call; its libraries in engines_may_be_in, or they are not searched;
 * in engines_find_arg an argument that is always recorded, as n_tokens of llama.cpp (struct
 * step_arg). If releases are stripped, a row of engine_texts: a text to which only the step
 * function and few small ones refer. strings(1) finds texts, and --step string:TEXT names the
 * functions that refer to one.
 */
#include "steps/engines.h"

#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* The C interface of llama.cpp. Versions of 2026 have llama_process. */
static const char *const llama_names[] = {"llama_decode", "llama_encode", "llama_process"};

/*
 * ferrum: <TYPE as …::ModelExecutor>::METHOD. The step is the closure that the async fn is compiled
 * to. Until 0.7 the trait had a method for each kind of batch, since 0.18 it has execute_tokens.
 */
static const char *const ferrum_types[] = {"LlmExecutor", "ProgramExecutor"};
static const char *const ferrum_methods[] = {
	"execute_tokens", "unified_decode", "decode",	      "batch_decode",
	"prefill",	  "batch_prefill",  "forward_verify",
};

/*
 * Texts of step functions in stripped files. A text is looked for in files whose name contains the
 * member file. Stripped are all published releases of ferrum, and static programs with llama.cpp.
 */
static const struct {
	const char *file;
	struct engine_text text;
} engine_texts[] = {
	{"ferrum", {"synchronous model execution panicked: ", "execute_tokens"}},
	{"ferrum", {"unified_forward returned ", "unified_decode"}}, /* 0.7 */
	{"llama", {"%s: failed to decode, ret = %d\n", "llama_decode"}},
	{"llama", {"%s: failed to encode, ret = %d\n", "llama_encode"}},
	/* llama_process only jumps to these, and has no text. The decoder's is in 0.5 too. */
	{"llama", {"%s: cannot decode batches with this context", "llama_context::decode"}},
	{"llama", {"%s: embd row width %zu does not match the encoder", "llama_context::encode"}},
};

/* Likeliest first. Compared with the last component of a name, ignoring case. */
static const char *const step_words[] = {
	"llama_decode",	 "unified_decode", "execute_model", "enqueuev3",     "forward_step",
	"run_iteration", "process_batch",  "decode_step",   "batch_decode",  "run_batch",
	"decode",	 "prefill",	   "step",	    "forward",	     "generate",
	"launch",	 "evaluate",	   "infer",	    "graph_compute", "run_step",
	"execute",	 "inference",	   "predict",	    "compute",	     "eval",
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool engines_may_be_in(const char *path, bool is_program)
{
	return is_program || strstr(base_name(path), "llama") || strstr(base_name(path), "ferrum");
}

static bool is_llama(const char *symbol)
{
	return text_is_one_of(symbol, symbol_base_length(symbol), llama_names, COUNT(llama_names));
}

static bool is_closure(const char *text)
{
	return !strcmp(text, "::{{closure}}") || !strcmp(text, "::{closure#0}");
}

/* The end of the brackets that text begins with, after the closing one; NULL: there is none. */
static const char *skip_brackets(const char *text)
{
	int depth = 0;

	for (const char *at = text; *at; at++) {
		depth += *at == '<' ? 1 : *at == '>' && at[-1] != '-' ? -1 : 0;
		if (!depth)
			return at + 1;
	}
	return NULL;
}

/* Takes a path like a::b::Type<C> from *text. *last is its last component, without arguments. */
static bool take_path(const char **text, const char **last, size_t *size)
{
	const char *at = *text;

	for (;;) {
		*last = at;
		*size = strcspn(at, ":<> ");
		at += *size;
		if (strncmp(at, "::", 2))
			break;
		at += 2;
	}
	*text = *at == '<' ? skip_brackets(at) : at;
	return *text && *size;
}

/*
 * <ferrum…::TYPE as …::ModelExecutor>::METHOD::{{closure}}, demangled from either mangling. Only
 * the last components are compared, because types and traits move between the crates of ferrum.
 */
static bool is_ferrum_name(const char *name)
{
	static const char trait[] = "ModelExecutor";
	const char *at = name + 1, *last;
	size_t size;

	if (strncmp(name, "<ferrum", 7) || !take_path(&at, &last, &size) ||
	    !text_is_one_of(last, size, ferrum_types, COUNT(ferrum_types)) ||
	    strncmp(at, " as ", 4))
		return false;
	at += 4;
	if (!take_path(&at, &last, &size) || size != strlen(trait) || strncmp(last, trait, size) ||
	    strncmp(at, ">::", 3))
		return false;
	at += 3;
	size = strcspn(at, ":");
	return text_is_one_of(at, size, ferrum_methods, COUNT(ferrum_methods)) &&
	       is_closure(at + size);
}

static bool is_ferrum(const char *symbol)
{
	bool found;
	char *name;

	if (!symbol_is_mangled(symbol) || !strstr(symbol, "ModelExecutor") ||
	    !strstr(symbol, "ferrum"))
		return false;
	name = demangle_symbol(symbol);
	found = name && is_ferrum_name(name);
	free(name);
	return found;
}

bool engines_know(const char *symbol, const char *path, bool is_program)
{
	if (symbol_is_cold(symbol) || symbol_is_part(symbol))
		return false;
	if (is_llama(symbol))
		return is_program || strstr(base_name(path), "llama");
	return is_ferrum(symbol);
}

const struct engine_text *engines_text(const char *path, size_t index)
{
	for (size_t i = 0; i < COUNT(engine_texts); i++)
		if (strstr(base_name(path), engine_texts[i].file) && !index--)
			return &engine_texts[i].text;
	return NULL;
}

/*
 * llama_process(ctx, type, struct llama_batch_ext *batch) of llama.cpp 0.7: the capacity is the
 * first member of the batch, and its tokens are a vector. The struct is not public: a version with
 * another one has no n_tokens.
 */
static const struct step_arg batch_ext_tokens = {
	.name = "n_tokens",
	.base = STEP_ARG_REG0 + 2,
	.offset = {0x48, 0x50},
	.element = 112,
	.limit_offset = 0,
};

/*
 * llama_decode(ctx, struct llama_batch batch): n_tokens is the first member of the batch, which is
 * passed by value. On x86-64 the batch is on the stack above the return address; on arm64 the
 * argument is a pointer to a copy.
 */
bool engines_find_arg(const char *symbol, enum fbt_arch arch, struct step_arg *arg)
{
	if (!is_llama(symbol))
		return false;
	if (!strncmp(symbol, "llama_process", 13)) {
		*arg = batch_ext_tokens;
		return true;
	}
	*arg = (struct step_arg){.name = "n_tokens", .reads = 1, .width = {STEP_ARG_S32}};
	arg->base = arch == FBT_ARCH_X86_64 ? STEP_ARG_SP : STEP_ARG_REG0 + 1;
	arg->offset[0] = arch == FBT_ARCH_X86_64 ? 8 : 0;
	return true;
}

bool engines_is_runtime(const char *path)
{
	static const char *const names[] = {
		"libc.so", "libc-",	 "libpthread", "libstdc++", "ld-linux", "ld-musl",
		"ld-2",	   "libm.so",	 "libm-",      "libdl",	    "librt",	"libgcc_s",
		"libc++",  "libresolv",	 "libnss_",    "ld.so",	    "libz.so",	"libcrypto",
		"libssl",  "libsystemd", "libpython",  "python3",   "libnode",	"libjvm",
	};
	const char *name = base_name(path);

	for (size_t i = 0; i < COUNT(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return !strcmp(name, "node");
}

/* Removes closures from the end of a demangled name. */
static void strip_closures(char *name)
{
	static const char *const marks[] = {"::{{closure}}", "::{closure#", "::{lambda"};

	for (size_t i = 0; i < COUNT(marks); i++) {
		char *mark = strstr(name, marks[i]);

		if (mark)
			*mark = 0;
	}
}

/* The last component of a name, without template arguments. */
static char *last_component(char *name)
{
	char *component = name;
	int depth = 0;

	strip_closures(name);
	for (char *at = name; *at; at++) {
		depth += strchr("<({[", *at) ? 1 : strchr(">)}]", *at) ? -1 : 0;
		if (!depth && !strncmp(at, "::", 2) && at[2])
			component = at + 2;
	}
	component[strcspn(component, "<([")] = 0;
	return component;
}

/* Whether name has the word, delimited by underscores, the ends of name, or camelCase. */
static bool has_word(const char *name, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = strcasestr(name, word); at; at = strcasestr(at + 1, word)) {
		bool begins = at == name || at[-1] == '_' || (*at >= 'A' && *at <= 'Z');
		bool ends = !at[size] || at[size] == '_' || (at[size] >= 'A' && at[size] <= 'Z');

		if (begins && ends)
			return true;
	}
	return false;
}

/* Libraries that have functions with such names, but no step: codecs, compilers, … */
static bool is_foreign(const char *name)
{
	static const char *const crates[] = {
		"absl",	 "alloc",    "asmjit",	   "axum",	"base64",   "boost", "clang",
		"folly", "grpc",     "h2",	   "h3",	"hyper",    "llvm",  "minja",
		"mlir",	 "nlohmann", "prost",	   "protobuf",	"pybind11", "quinn", "rayon",
		"regex", "reqwest",  "rustls",	   "serde",	"std",	    "tokio", "tokenizers",
		"tonic", "tower",    "serde_json", "crossbeam", "v8",	    "zmq",   "zstd",
	};
	static const char *const codecs[] = {"cbor",  "json",	 "utf8",
					     "hpack", "msgpack", "tokenizer"};

	name += strspn(name, "<&*(");
	if (text_is_one_of(name, strcspn(name, ":<"), crates, COUNT(crates)))
		return true;
	for (size_t i = 0; i < COUNT(codecs); i++)
		if (strcasestr(name, codecs[i]))
			return true;
	return false;
}

static unsigned int rank_component(const char *component)
{
	for (size_t i = 0; i < COUNT(step_words); i++)
		if (!strcasecmp(component, step_words[i]))
			return 2 + i;
	for (size_t i = 0; i < COUNT(step_words); i++)
		if (has_word(component, step_words[i]))
			return 2 + COUNT(step_words) + i;
	return 0;
}

unsigned int engines_rank(const char *symbol)
{
	unsigned int rank = 0;
	bool found = false;
	char *name;

	if (symbol_is_cold(symbol) || symbol_is_part(symbol))
		return 0;
	if (is_llama(symbol) || is_ferrum(symbol))
		return 1;
	for (size_t i = 0; i < COUNT(step_words) && !found; i++)
		found = strcasestr(symbol, step_words[i]);
	if (!found)
		return 0;
	name = demangle_symbol(symbol);
	if (name && !strstr(name, "drop_in_place") && !is_foreign(name))
		rank = rank_component(last_component(name));
	free(name);
	return rank;
}
