#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What GPU records cost and how far they are true, on a machine with one NVIDIA GPU: see README.md.
#
#	tests/gpu/run.sh [--out DIR] [--rounds N] [--steps N] [--variants 'A B'] [--limit SECONDS]
#		[--engine NAME=PATH]… [--step SPEC] [-- ENGINE-OPTION…]
#
# Engines (a CUDA one that nvcc builds, a PyTorch loop; or those of --engine) run bare, with the shim
# idle, with it armed, and under the whole tool, in turns. DIR/results.json has all figures and
# checks, also of a run that was cut off; the exit status is 0 only if every check holds.
set -u
here=$(cd "$(dirname "$0")" && pwd)
LC_ALL=C
export LC_ALL

out=
rounds=5
steps=300
variants=
limit=180
step=gpu_step
declare -A engines=()
names=()
options=()

say()
{
	echo "gpu: $1" >&2
}

die()
{
	say "$1"
	exit "${2:-1}"
}

usage()
{
	sed -n '5,6s/^#\t*//p' "$here/run.sh" >&2
	exit 2
}

add_engine()
{
	engines[$1]=$2
	names+=("$1")
}

while [ $# -gt 0 ]; do
	case $1 in
	--)
		shift
		options=("$@")
		break
		;;
	--help) usage ;;
	--out | --rounds | --steps | --variants | --limit | --step | --engine)
		[ $# -gt 1 ] || usage
		case $1 in
		--out) out=$2 ;;
		--rounds) rounds=$2 ;;
		--steps) steps=$2 ;;
		--variants) variants=$2 ;;
		--limit) limit=$2 ;;
		--step) step=$2 ;;
		--engine)
			[[ $2 =~ ^[a-z0-9_]+=. ]] || usage
			add_engine "${2%%=*}" "${2#*=}"
			;;
		esac
		shift 2
		;;
	*) usage ;;
	esac
done

# first_of PATH…: the first one that exists
first_of()
{
	local path

	for path in "$@"; do
		[ -e "$path" ] && realpath "$path" && return
	done
	return 1
}

# --- what is needed ---------------------------------------------------------------------------

[ "$(id -u)" = 0 ] || die 'needs root'
tool=${FBT:-$(first_of "$here/ferrum-bpftrace" \
	"$here"/../../build/*-static/gpu-kit/ferrum-bpftrace \
	"$here"/../../build/*/gpu-kit/ferrum-bpftrace)} ||
	die 'no ferrum-bpftrace: make gpu-kit STATIC=1, or name it in FBT'
tool=$(realpath -m "$tool")
built=$(dirname "$tool")
[ -x "$tool" ] || die "$tool: not a program: name the tool in FBT"
shim=$(first_of "${FBT_SHIM:-$built/libferrum_cupti.so}") ||
	die "no libferrum_cupti.so beside $tool: make gpu-kit, or name it in FBT_SHIM"
arm=$(first_of "$built/gpu_arm" "$built/tests/gpu_arm") ||
	die "no gpu_arm beside $tool: make gpu-kit"
results=$(first_of "$built/gpu_results" "$built/tests/gpu_results") ||
	die "no gpu_results beside $tool: make gpu-kit"

out=${out:-gpu-results-$(date +%Y%m%d-%H%M%S)}
mkdir -p "$out" || exit 1
out=$(realpath "$out")
: >"$out/runs"
: >"$out/facts"

fact()
{
	[ -z "$2" ] || echo "$1 $2" >>"$out/facts"
}

find_nvcc()
{
	command -v nvcc || first_of "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda*/bin/nvcc
}

# Builds the engine for this GPU; uses the prebuilt one if there is no nvcc.
make_cuda()
{
	local nvcc built_engine=$out/engine

	if nvcc=$(find_nvcc); then
		if timeout 300 "$nvcc" -O2 -arch=native "$here/engine.cu" -o "$built_engine" -ldl \
			2>"$out/nvcc.err" ||
			timeout 600 "$nvcc" -O2 -arch=all-major "$here/engine.cu" -o "$built_engine" \
				-ldl 2>"$out/nvcc.err"; then
			fact nvcc "$("$nvcc" --version | sed -n 's/^Cuda compilation tools, //p')"
			add_engine cuda "$built_engine"
			return
		fi
		say "nvcc: $(head -n 1 "$out/nvcc.err")"
	fi
	built_engine=$(first_of "$here/engine" "$built/tests/gpu_engine_cuda") || return
	add_engine cuda "$built_engine"
}

make_pytorch()
{
	local python library

	python=$(command -v python3) || return
	timeout 120 "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' \
		2>/dev/null || return
	library=$(first_of "$built/libgpu_step.so" "$built/tests/libgpu_step.so")
	if [ -z "$library" ]; then
		library=$out/libgpu_step.so
		if ! "${CC:-gcc}" -O2 -fPIC -shared "$here/step.c" -o "$library"; then
			say 'PyTorch is left out: no libgpu_step.so, and no gcc to make it'
			return
		fi
	fi
	printf '#!/bin/bash\nexec %q %q "$@" --library %q\n' "$python" "$here/decode.py" "$library" \
		>"$out/pytorch"
	chmod +x "$out/pytorch"
	fact torch "$("$python" -c 'import torch; print(torch.__version__, "CUDA", torch.version.cuda)')"
	add_engine pytorch "$out/pytorch"
}

if [ ${#names[@]} = 0 ]; then
	nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidia0 ] || [ -e /dev/dxg ] ||
		die 'no NVIDIA GPU here (no /dev/nvidia0); in a container: docker run --gpus all'
	make_cuda
	make_pytorch
	[ ${#names[@]} -gt 0 ] ||
		die 'neither nvcc nor a PyTorch with CUDA is here, and no engine was brought along'
fi

# --- the machine ------------------------------------------------------------------------------

fact date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
fact gpu "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null |
	head -n 1)"
fact kernel "$(uname -r)"
fact cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
fact cpus "$(nproc)"
fact system "$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release 2>/dev/null)"
fact tool "$("$tool" --version 2>/dev/null | head -n 1)"
fact lockdown "$(cat /sys/kernel/security/lockdown 2>/dev/null)"
fact capabilities "$(sed -n 's/^CapEff:\t//p' /proc/self/status)"
fact rounds "$rounds"
fact steps "$steps"

# Without BPF (a container without CAP_BPF, a locked-down kernel) the shim can still be measured.
modes=(bare idle armed full)
sleep 60 &
sleeper=$!
if ! timeout 60 "$tool" -q -p $sleeper -d 1 --gpu off --trace none --profile none --report none \
	>"$out/tool.err" 2>&1; then
	modes=(bare idle armed)
	fact full_left_out "$(head -n 1 "$out/tool.err")"
	say "the whole tool is left out, BPF does not work here: $(head -n 1 "$out/tool.err")"
fi
kill $sleeper
wait $sleeper 2>/dev/null

# --- a run ------------------------------------------------------------------------------------

running=()

# shellcheck disable=SC2317
end_all()
{
	local pid

	for pid in "${running[@]}"; do
		[ -z "$pid" ] || kill "$pid" 2>/dev/null
	done
	running=()
}

# shellcheck disable=SC2317
cut_off()
{
	end_all
	fact cut_off 'before all was measured'
	"$results" "$out"
	die 'cut off; what was measured is in results.json'
}
trap cut_off INT TERM HUP
trap end_all EXIT

count_links()
{
	local links perf

	links=$(cat "/proc/$1/fdinfo/"* 2>/dev/null | grep -c link_type)
	perf=$(find "/proc/$1/fd" -lname '*perf_event*' 2>/dev/null | wc -l)
	echo $((links + perf))
}

# Waits until the tool has its links and no more come, and it has dropped its rights, which it does
# last before its window. If it cannot drop them, ten seconds without a new link must do.
wait_attached()
{
	local links before=0 same=0

	for _ in $(seq 3000); do
		kill -0 "$1" 2>/dev/null || return 1
		links=$(count_links "$1")
		same=$((links >= 3 && links == before ? same + 1 : 0))
		[ $same -ge 10 ] && { grep -q '^NoNewPrivs:.*1' "/proc/$1/status" || [ $same -ge 500 ]; } &&
			return
		before=$links
		sleep 0.02
	done
	return 1
}

# start_tracer MODE PID BASE: 0 once it collects; its id is in $tracer. --foreground, because
# timeout would signal its program twice, and a second signal means an immediate end.
start_tracer()
{
	local said

	tracer=
	case $1 in
	armed)
		mkfifo "$3.said"
		timeout --foreground -k 5 "$limit" "$arm" "$2" "$3.arm" >"$3.said" 2>"$3.err" &
		tracer=$!
		read -r -t 60 said <"$3.said"
		rm "$3.said"
		[ "$said" = armed ]
		;;
	full)
		# Each step must be traced, even where probes are slow.
		timeout --foreground -k 5 "$limit" "$tool" -q -p "$2" --step "$step" --gpu require \
			--rate-guard 0 --trace "$3.trace" --profile "$3.profile" >"$3.report" 2>"$3.err" &
		tracer=$!
		wait_attached "$(child_of "$tracer")" && "$arm" --wait "$2" 60 2>>"$3.err"
		;;
	esac
}

# child_of PID: waits for the child of timeout
child_of()
{
	local child=

	for _ in $(seq 100); do
		read -r child _ <"/proc/$1/task/$1/children" && break
		sleep 0.02
	done 2>/dev/null
	echo "$child"
}

# end_tracer: 0 if it ended without an error
end_tracer()
{
	[ -z "$tracer" ] && return
	kill -TERM "$tracer" 2>/dev/null
	wait "$tracer"
}

# run_one ENGINE VARIANT ROUND MODE: leaves a line in $out/runs
run_one()
{
	local base=$out/$1.$2.$3.$4 engine pid word status=0 environment=()

	[ "$4" = bare ] || environment=(CUDA_INJECTION64_PATH="$shim")
	rm -f "$base".*
	mkfifo "$base.go" "$base.ready"
	timeout --foreground -k 5 "$limit" env "${environment[@]}" "${engines[$1]}" --variant "$2" \
		--steps "$steps" --out "$base.steps" "${options[@]}" <"$base.go" >"$base.ready" \
		2>"$base.engine_err" &
	engine=$!
	running=("$engine")
	exec 7>"$base.go" 8<"$base.ready"
	rm "$base.go" "$base.ready"
	tracer=
	if read -r -t "$limit" -u 8 word pid && [ "$word" = ready ]; then
		if start_tracer "$4" "$pid" "$base" 7>&- 8<&-; then
			running+=("$tracer")
			echo >&7
			read -r -t "$limit" -u 8 word || status=6
		else
			status=3
		fi
	else
		status=4
	fi
	# The tracer ends first, because the records that CUPTI holds are lost when a process ends.
	end_tracer || status=$((status ? status : 5))
	exec 7>&-
	[ $status = 0 ] || kill "$engine" 2>/dev/null
	wait "$engine" || status=$((status ? status : $?))
	exec 8<&-
	running=()
	if [ $status != 0 ]; then
		say "$1 $2, $4, round $3: failed ($status): $(cat "$base.engine_err" "$base.err" \
			2>/dev/null | head -n 1)"
	fi
	# Only one trace of each variant is kept, because traces are large.
	[ "$3" = 1 ] || rm -f "$base.trace"
	echo "$1 $2 $3 $4 $status" >>"$out/runs"
}

variants_of()
{
	if [ -n "$variants" ]; then
		tr ' ' '\n' <<<"$variants"
	else
		timeout 120 "${engines[$1]}" --list
	fi
}

for name in "${names[@]}"; do
	for variant in $(variants_of "$name"); do
		for round in $(seq "$rounds"); do
			say "$name, $variant, round $round of $rounds"
			for turn in "${!modes[@]}"; do
				run_one "$name" "$variant" "$round" \
					"${modes[$(((turn + round - 1) % ${#modes[@]}))]}"
			done
		done
		"$results" "$out" >/dev/null
	done
done
"$results" "$out"
status=$?
say "figures are in $out/results.json"
exit $status
