#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --gpu=inject --dry-run on processes of every kind that is refused, and on some that are not: the
# output, the exit status, and that the process is unchanged.
. "$(dirname "$0")/lib.sh"

PROGRAM=$(realpath -m "$FBT_BUILD/tests/live_inject_refused")
CUDA=$TMP/libcuda.so.1
head -c 4096 /dev/zero >"$CUDA"
unset CUDA_INJECTION64_PATH

if [ "$(uname -m)" != x86_64 ]; then
	start_waiting "$PROGRAM" map="$CUDA"
	"$FBT" -p "$ENGINE" --gpu=inject --dry-run >"$TMP/verdict" 2>&1
	is 'on another processor than x86-64 it is refused' $? 1
	has 'and so it says' "$TMP/verdict" '^  refused +processor '
	go
	finish
fi

# What must not change: whether each thread is stopped or traced (T, t), and by which process. Other
# states depend on the scheduler: a target prints "ready" before the read() in which it sleeps.
looks()
{
	sed -n '/^State:\|^TracerPid:/s/.*:\t//p' "/proc/$1/task/"*/status 2>/dev/null |
		sed 's/^[RSDI] .*/not stopped/' | tr '\n' ' '
}

# ask NAME PID STATUS: the verdict goes to $TMP/verdict
ask()
{
	local before after status

	before=$(looks "$2")
	"$FBT" -p "$2" --gpu=inject --dry-run >"$TMP/verdict" 2>"$TMP/verdict.err"
	status=$?
	after=$(looks "$2")
	[ "$status" = "$3" ] || sed 's/^/#   /' "$TMP/verdict" "$TMP/verdict.err"
	is "$1: exit status" "$status" "$3"
	is "$1: it is as it was" "$after" "$before"
}

# refused NAME REGEX [PID]: PID defaults to ENGINE
refused()
{
	ask "$1" "${3:-$ENGINE}" 1
	has "$1: refused" "$TMP/verdict" "^  refused +$2"
	has "$1: nothing would be done" "$TMP/verdict" '^--gpu=inject would do nothing: '
}

# taken NAME [REGEX [PID]]
taken()
{
	ask "$1" "${3:-$ENGINE}" 0
	has "$1: it would be done" "$TMP/verdict" '^--gpu=inject would (load the shim|inject nothing)'
	has "$1: what is said" "$TMP/verdict" "${2:-.}"
}

# with STATE…: a process in these states that has libcuda
with()
{
	start_waiting "$PROGRAM" map="$CUDA" "$@"
}

# The waiting process gets its go, and must end without an error.
end()
{
	go
	wait "$ENGINE"
	is "$1: it ends as it wants" $? 0
}

missing()
{
	echo "SKIP $1: $2"
}

empty_file()
{
	head -c 4096 /dev/zero >"$TMP/$1"
}

# --- kinds of processes -------------------------------------------------------------------------

with
taken plain '^  ok +stub +[0-9]+ '
has 'plain: libc' "$TMP/verdict" '^  ok +libc .*2\.[0-9]+ .*/libc.so.6'
end plain

start_waiting "$PROGRAM"
refused 'no libcuda' 'CUDA .*libcuda.so'
end 'no libcuda'

refused 'no such process' 'process +there is none' 4194303
refused 'a kernel thread' 'process .*kernel thread' 2
# It becomes a zombie, because its parent does not wait for it.
# shellcheck disable=SC2016
bash -c '{ until grep -qx sleep "/proc/$$/comm"; do sleep 0.02; done; } & exec sleep 1000' &
parent=$!
for _ in $(seq 3000); do
	zombie=$(pgrep -P $parent)
	[ -n "$zombie" ] && grep -q '^State:.Z' "/proc/$zombie/status" && break
	sleep 0.02
done
refused 'a zombie' 'process +has ended' "$zombie"
kill $parent

with leaderless
taken 'without its first thread'
tid=$(find "/proc/$ENGINE/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -v "^$ENGINE\$")
"$FBT" -p "$tid" --gpu=inject --dry-run >"$TMP/verdict" 2>&1
has 'a thread is no process' "$TMP/verdict" "thread .*$ENGINE"
end 'without its first thread'

# --- states of a process --------------------------------------------------------------------------

with
stop_process "$ENGINE"
refused stopped 'state .*SIGSTOP'
is 'stopped: it stays so' "$(awk '/^State:/ { print $2 }' "/proc/$ENGINE/status")" T
kill -CONT "$ENGINE"
taken 'continued'

mkfifo "$TMP/hold"
"$PROGRAM" trace="$ENGINE" <"$TMP/hold" >"$TMP/traced" &
tracer=$!
exec 8>"$TMP/hold"
for _ in $(seq 3000); do
	grep -q ready "$TMP/traced" && break
	sleep 0.02
done
refused traced "tracer .*$tracer"
exec 8>&-
wait $tracer
taken 'not traced any more'
end traced

freezer=/sys/fs/cgroup/freezer/fbt-$$
[ -d /sys/fs/cgroup/freezer ] || freezer=/sys/fs/cgroup/fbt-$$
with
if mkdir "$freezer" 2>/dev/null && echo "$ENGINE" >"$freezer/cgroup.procs" 2>/dev/null; then
	if [ -e "$freezer/freezer.state" ]; then
		echo FROZEN >"$freezer/freezer.state"
	else
		echo 1 >"$freezer/cgroup.freeze"
	fi
	for _ in $(seq 3000); do
		grep -qsE '^(FROZEN|frozen 1)$' "$freezer/freezer.state" "$freezer/cgroup.events" && break
		sleep 0.02
	done
	refused frozen 'state .*frozen'
	if [ -e "$freezer/freezer.state" ]; then
		echo THAWED >"$freezer/freezer.state"
	else
		echo 0 >"$freezer/cgroup.freeze"
	fi
	taken thawed
else
	missing frozen 'no cgroup can be made here'
fi
end frozen
[ ! -d "$freezer" ] || rmdir "$freezer"

with strict
refused 'strict seccomp' 'seccomp .*strict'
end 'strict seccomp'

with filter
taken 'seccomp filters' '^  ok +seccomp .*1 of 1'
has 'NoNewPrivs' "$TMP/verdict" '^  ok +privileges +NoNewPrivs'
end 'seccomp filters'

with cancel
refused 'pthread_cancel' 'pthread_cancel '
end 'pthread_cancel'

# --- rights -----------------------------------------------------------------------------------

if command -v setpriv >/dev/null; then
	with sealed
	ask_without=(setpriv --bounding-set -sys_ptrace "$FBT")
	"${ask_without[@]}" -p "$ENGINE" --gpu=inject --dry-run >"$TMP/verdict" 2>"$TMP/verdict.err"
	is 'without CAP_SYS_PTRACE: exit status' $? 1
	cat "$TMP/verdict.err" >>"$TMP/verdict"
	has 'without CAP_SYS_PTRACE: refused' "$TMP/verdict" 'CAP_SYS_PTRACE'
	taken 'not dumpable'
	end 'not dumpable'
else
	missing 'without CAP_SYS_PTRACE' 'there is no setpriv'
fi

with user=65534
taken 'of another user'
end 'of another user'

# --- limits -----------------------------------------------------------------------------------

with files
refused 'no descriptors left' 'limits +RLIMIT_NOFILE: '
end 'no descriptors left'
with filesize
refused 'small files only' 'limits +RLIMIT_FSIZE .*1024'
end 'small files only'
with memory
refused 'no address space left' 'limits +RLIMIT_AS: '
end 'no address space left'
with data
refused 'no data left' 'limits +RLIMIT_DATA: '
end 'no data left'
with user=65533 threads
refused 'no threads left' 'limits +RLIMIT_NPROC: '
end 'no threads left'

pids=/sys/fs/cgroup/pids/fbt-$$
[ -d /sys/fs/cgroup/pids ] || pids=/sys/fs/cgroup/fbt-$$
with
if mkdir "$pids" 2>/dev/null && echo "$ENGINE" >"$pids/cgroup.procs" 2>/dev/null &&
	[ -e "$pids/pids.max" ] && echo 1 >"$pids/pids.max"; then
	refused 'pids.max' 'limits +pids.max'
else
	missing 'pids.max' 'no cgroup with that controller can be made here'
fi
end 'pids.max'
[ ! -d "$pids" ] || rmdir "$pids"

# --- roots and namespaces ---------------------------------------------------------------------

root=$TMP/root
mkdir -p "$root"
while read -r file; do
	mkdir -p "$root$(dirname "$file")"
	cp -L "$file" "$root$file"
done < <(ldd "$PROGRAM" | grep -o '/[^ ]*' && echo "$PROGRAM" && echo "$CUDA")
start_waiting chroot "$root" "$PROGRAM" map="$CUDA"
refused 'a root without /proc' '/proc '
end 'a root without /proc'

start_waiting unshare --user --map-root-user --pid --fork --mount-proc "$PROGRAM" map="$CUDA"
outer=$ENGINE
ENGINE=$(pgrep -P "$outer")
taken 'namespaces' '^  ok +namespaces .*user, pid, mnt'
ENGINE=$outer
end 'namespaces'

# --- the program ------------------------------------------------------------------------------

# build NAME COMPILER-OPTION…: builds $TMP/NAME, a program that prints ready and waits
build()
{
	local name=$1

	shift
	"${CC:-gcc}" -x c -o "$TMP/$name" "$@" - 2>/dev/null <<-'END'
		#include <unistd.h>
		int main(void)
		{
			char byte;

			return write(1, "ready\n", 6) != 6 || read(0, &byte, 1) < 0;
		}
	END
}

# refused_program NAME FILE REGEX
refused_program()
{
	start_waiting "$2"
	refused "$1" "$3"
	go
	wait "$ENGINE"
}

if build static -static; then
	refused_program static "$TMP/static" 'program .*statically'
	has 'static: no libc' "$TMP/verdict" '^  refused +libc +no '
else
	missing static 'the compiler cannot link so'
fi
if "${CC:-gcc}" -m32 -nostdlib -static -x c -o "$TMP/narrow" - 2>/dev/null <<-'END' &&
	static int call(int nr, int a, const void *b, int c)
	{
		int answer;

		__asm__ volatile("int $0x80" : "=a"(answer) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
		return answer;
	}

	void _start(void)
	{
		char byte;

		call(4, 1, "ready\n", 6);
		call(3, 0, &byte, 1);
		call(1, 0, 0, 0);
	}
END
	echo | "$TMP/narrow" >/dev/null 2>&1; then
	refused_program '32-bit' "$TMP/narrow" 'program .*32-bit'
else
	missing '32-bit' 'the compiler cannot make such a program, or the kernel cannot run it'
fi
for kind in address thread; do
	if build "$kind" -fsanitize=$kind && echo | "$TMP/$kind" >/dev/null 2>&1; then
		refused_program "$kind sanitizer" "$TMP/$kind" 'runtime .*san'
	else
		missing "$kind sanitizer" 'the compiler has none'
	fi
done
if command -v objcopy >/dev/null; then
	echo go >"$TMP/note"
	objcopy --add-section .go.buildinfo="$TMP/note" "$PROGRAM" "$TMP/go_program"
	refused_program 'a Go program' "$TMP/go_program" 'runtime .*Go '
else
	missing 'a Go program' 'there is no objcopy'
fi
if command -v musl-gcc >/dev/null; then
	CC=musl-gcc build musl
	refused_program musl "$TMP/musl" 'libc +no '
fi

# map_too NAME FILE REGEX: a mapped file of that name is enough for a refusal
map_too()
{
	empty_file "$2"
	with map="$TMP/$2"
	refused "$1" "$3"
	end "$1"
}

map_too 'musl mapped' ld-musl-x86_64.so.1 'runtime +ld-musl'
map_too '.NET' libcoreclr.so 'runtime +libcoreclr.so'
map_too 'a second libc' libc.so.6 'libc +two '
map_too 'an old CUPTI' libcupti.so.2024.2.1 'CUPTI +libcupti.so.2024.2.1'

# --- what is already loaded ---------------------------------------------------------------------

empty_file libcupti.so.2025.1.0
with map="$TMP/libcupti.so.2025.1.0"
taken 'a new CUPTI' '^  ok +CUPTI +/.*/libcupti.so.2025.1.0$'
end 'a new CUPTI'

empty_file libferrum_cupti.so
with map="$TMP/libferrum_cupti.so" cancel
taken 'the shim is there' '^  ok +shim .*loaded'
end 'the shim is there'

start_waiting env CUDA_INJECTION64_PATH=/opt/other.so "$PROGRAM" map="$CUDA"
taken 'another tool is named' '^  warning +CUPTI .*/opt/other.so'
end 'another tool is named'

start_waiting env CUDA_INJECTION64_PATH="$TMP/libferrum_cupti.so" "$PROGRAM" map="$CUDA"
taken 'CUDA will load it' '^  warning +shim .*/libferrum_cupti.so'
end 'CUDA will load it'

# A file may have any name.
empty_file $'libcuda.so\e[2J\n'
start_waiting "$PROGRAM" map="$TMP/"$'libcuda.so\e[2J\n'
taken 'an odd name' '^  ok +CUDA +/.*/libcuda.so.x1b\[2J.n$'
end 'an odd name'
finish
