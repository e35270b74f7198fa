/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_table.h"

const struct argp_option option_table[] = {
	{0, 0, 0, 0, "What to trace:", 1},
	{"pid", 'p', "PID[,PID...]", 0, "Attach to these processes", 0},
	{"all", 'a', 0, 0, "Attach to every process", 0},
	{"follow", 'f', 0, 0, "Also trace child processes, those there are and new ones", 0},
	{"duration", 'd', "SECONDS", 0, "Stop after this time", 0},
	{"steps", 'n', "STEPS", 0, "Stop after this many steps", 0},
	{0, 0, 0, 0, "Where a step begins and ends:", 2},
	{"step", KEY_STEP, "SPEC", 0,
	 "Step function: SYMBOL, a glob, /REGEX/, PATH:SYMBOL, PATH+0xADDR or "
	 "usdt:PROVIDER:BEGIN,END; may be repeated (default: known engines)",
	 0},
	{"step-arg", KEY_STEP_ARG, "NAME=EXPR", 0,
	 "Record a number with each step: argN, or s32|u32|s64|u64(argN+OFF), (sp+OFF), "
	 "or of (u64(...)+OFF)",
	 0},
	{"symbols", KEY_SYMBOLS, "FILE", 0, "Symbols of a stripped file with the same build-id", 0},
	{"uretprobe", KEY_URETPROBE, 0, 0,
	 "End steps by a uretprobe. Dangerous: a panic or exception through the function aborts "
	 "the "
	 "engine",
	 0},
	{"wait-step", KEY_WAIT_STEP, 0, 0,
	 "No error if --step is not found yet: wait for a library that is loaded later", 0},
	{"interval", KEY_INTERVAL, "MS", 0,
	 "Length of a step where there is no step function (100)", 0},
	{"rate-guard", KEY_RATE_GUARD, "PERCENT", 0,
	 "Most of a thread's time that the probes of a step function may take (5): one that is "
	 "called more often is sampled; 0: no limit",
	 0},
	{"list-steps", KEY_LIST_STEPS, 0, 0, "Print step candidates of -p PID with rates, and exit",
	 0},
	{0, 0, 0, 0, "Which steps are wrong:", 3},
	{"cv-threshold", KEY_CV_THRESHOLD, "PERCENT", 0,
	 "Coefficient of variation above which a class of steps is unsteady (15)", 0},
	{"efficiency-threshold", KEY_EFFICIENCY_THRESHOLD, "PERCENT", 0,
	 "Budget / actual below which a step is too slow (25)", 0},
	{"memory-cliff-threshold", KEY_MEMORY_CLIFF_THRESHOLD, "PERCENT", 0,
	 "Loss of throughput above which a step with mmap on top is a cliff (30)", 0},
	{"gpu-transfer-threshold", KEY_GPU_TRANSFER_THRESHOLD, "PERCENT", 0,
	 "Share of GPU copies above which a step is reported; needs GPU records (50)", 0},
	{"rate-limit", KEY_RATE_LIMIT, "N", 0, "Escalations shown per interval (100)", 0},
	{"rate-interval", KEY_RATE_INTERVAL, "SECONDS", 0, "That interval (60)", 0},
	{"cv-window", KEY_CV_WINDOW, "STEPS", 0, "Steps of a class that are remembered (64)", 0},
	{"budget-us", KEY_BUDGET, "US", 0,
	 "Budget of a step (default: its own work, and what its class usually waits)", 0},
	{"class-by", KEY_CLASS_BY, "NAME", 0,
	 "Compare steps of about the same --step-arg NAME (default: of about the same work)", 0},
	{"context", KEY_CONTEXT, "N", 0,
	 "Steps before and after an escalated one whose calls are in the trace too (1)", 0},
	{"escalate-now", KEY_ESCALATE_NOW, 0, 0, "Escalate the first step, as SIGUSR1 does later",
	 0},
	{0, 0, 0, 0, "Windows:", 4},
	{"flag", KEY_FLAG, "PATH", 0,
	 "Trace only while this file exists: one export for each time and process", 0},
	{"max-steps", KEY_MAX_STEPS, "N", 0,
	 "With --flag: end a window after this many steps, until the flag has gone", 0},
	{0, 0, 0, 0, "GPU:", 5},
	{"gpu", KEY_GPU, "MODE", 0,
	 "GPU records: auto (of processes that have the shim, see gpu-env), off, require, or "
	 "inject: put the shim into those that run without it (auto)",
	 0},
	{"inject-timeout", KEY_INJECT_TIMEOUT, "SECONDS", 0,
	 "With --gpu=inject: look so long for a thread that it can be done with (5)", 0},
	{"dry-run", KEY_DRY_RUN, 0, 0,
	 "With --gpu=inject: print whether it can be done to -p PID, and exit", 0},
	{"gpu-strict", KEY_GPU_STRICT, 0, 0,
	 "A step's GPU work is only what its own thread launched, not other threads meanwhile", 0},
	{0, 0, 0, 0, "Output:", 6},
	{"dir", KEY_DIR, "DIR", 0, "Folder of the files that are named by a tag (.)", 0},
	{"keep-free", KEY_KEEP_FREE, "SIZE", 0,
	 "Files end where less than this is free on their disk, as 500M or 2G; 0: no limit (5 % of "
	 "it, 1G at most)",
	 0},
	{"detail", KEY_DETAIL, "LEVEL", 0,
	 "Calls recorded: steps (none), escalated (of steps), all", 0},
	{"trace", KEY_TRACE, "FILE", 0, "Chrome trace, or none (./ferrum_trace_TAG.json)", 0},
	{"trace-format", KEY_TRACE_FORMAT, "FORMAT", 0,
	 "ferrum, or kineto: as torch.profiler writes it", 0},
	{"rank", KEY_RANK, "N", 0,
	 "Rank in a kineto trace (RANK or LOCAL_RANK of the target, or 0)", 0},
	{"profile", KEY_PROFILE, "FILE", 0, "JSON Lines, or none (./ferrum_profile_TAG.jsonl)", 0},
	{"report", KEY_REPORT, "FORMAT", 0, "Report on stdout: text, json or none", 0},
	{"record", KEY_RECORD, "FILE", 0, "Keep the raw records for --replay", 0},
	{"replay", KEY_REPLAY, "FILE", 0, "Read records from a file; no root needed", 0},
	{"otlp", KEY_OTLP, "URL", 0, "Send escalations to a collector: http://HOST:4318", 0},
	{0, 0, 0, 0,
	 "Metadata of the profile (over FERRUM_PROFILE_* of the environment, then the target's own "
	 "--profile-* and FERRUM_PROFILE_*):",
	 7},
	{"profile-commit-sha", KEY_COMMIT_SHA, "SHA", 0, "Commit of the engine", 0},
	{"profile-env-hash", KEY_ENV_HASH, "HASH", 0, "Environment hash, sha256:...", 0},
	{"profile-model", KEY_MODEL, "NAME", 0, "Model", 0},
	{"profile-concurrency", KEY_CONCURRENCY, "N", 0, "Concurrent requests", 0},
	{"profile-runtime-flags-json", KEY_RUNTIME_FLAGS, "OBJECT", 0, "Runtime flags", 0},
	{"compute-env-hash", KEY_COMPUTE_ENV_HASH, 0, 0,
	 "Where no env hash is given, compute it of this host and the target", 0},
	{0, 0, 0, 0, "Other:", 8},
	{"ring-records", KEY_RING_RECORDS, "N", 0, "Calls each CPU's ring holds (131072)", 0},
	{"bpf-stats", KEY_BPF_STATS, 0, 0,
	 "Measure our BPF programs by kernel statistics; costs 45 ns a run", 0},
	{"require-events", KEY_REQUIRE_EVENTS, "A,B", 0, "validate: events that must be there", 0},
	{"quiet", 'q', 0, 0, "Only warnings and errors; twice: errors", 0},
	{"verbose", 'v', 0, 0, "Say more; twice: libbpf too", 0},
	{0},
};

const char option_doc[] =
	"Say where each step of a running LLM inference server spends its time."
	"\vvalidate checks profiles and traces, env-hash prints the hash of an "
	"environment document, gpu-env how to start an engine so that it has GPU "
	"records, doctor what works here (and for a process, as -p would) and what "
	"to do about the rest; tracing needs root or "
	"CAP_BPF, CAP_PERFMON and "
	"CAP_SYS_PTRACE. Exit status: 0 done, 1 failed, 2 usage.";

const char option_args_doc[] = "-p PID\n-a\n-- COMMAND [ARGS...]\n--replay FILE\nvalidate "
			       "FILE...\nenv-hash [FILE]\ngpu-env\ndoctor "
			       "[PID...]";
