#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Who may include whom. In user/ a module includes only headers of lines above its own; a file
# without a line here is an error, so is a line without a file.
set -u
cd "$(dirname "$0")/../.." || exit 1

layers=$(grep -v '^#' <<'END'
# what all may use
clock
patient
demangle id_set log record rust_number shared tid_map vec whitespace
broker json owner processes program_output regular_file sha256 stats syscalls terminal
folder report_format shares
disk_room json_read place process_strings
json_expect json_keys output
kineto_rules window_file
# the model
file_table row_table gpu_step gpu_table left_out step step_spec
gpu_interval window
escalation
cause_kind
call_rule
call_walk
cause
cause_split cause_text class_history
class_table
step_class
classify
# the environment an engine runs in
env_document env_host
env_collect env_hash_command
# the stages, in the order of the data
call_queue decode evidence gpu_clock gpu_item metadata sink
gpu_host_wait gpu_queue pending
gpu_figures gpu_thread
gpu_metrics
gpu_correlation gpu_timeline merge_limits
gpu_join gpu_owner
gpu_claim
merge_process
merge
assemble call_args capture gpu_slice profile_event step_args trace_check trace_out
profile
escalation_text
escalation_fields escalation_tally gpu_tally gpu_text
tally
jsonl_escalation jsonl_gpu jsonl_window
report_part
report_about report_escalations report_gpu report_gpu_state report_headline report_kind report_process
report_text
report_json_escalations report_json_gpu
report_json
curl_library otlp_answer otlp_endpoint otlp_queue otlp_span
otlp_request
otlp_client
kineto_event
kineto_file
kineto_gpu
sink_alert sink_chrome sink_jsonl sink_kineto sink_otlp sink_report sink_room sink_status
pipeline
# what the user asked for
option_argument option_messages option_table option_value
option_gpu option_judging option_metadata option_windows
options
outputs
exports
# from a process to where its steps begin and end
elf_sections flow maps
elf_file
debug_file elf_fde elf_symbols flow_arm64 flow_reach flow_x86 usdt
exits
image
step_function step_match step_table target_options
resolve
image_scan
target
target_candidates target_explain
# the kernel side
call_ring child confine_seccomp file_names gpu_notice gpu_shim gpu_tids map_search memfd privilege sizing slots time_namespace uprobes
confine_broker_filter confine_capabilities confine_filter cuda_use gpu_memfd gpu_relay
# a shim for a process that runs already
inject_calls inject_filter inject_cgroup inject_maps inject_point inject_rank inject_root inject_status inject_verdict
inject_file inject_seccomp
inject_check_access inject_check_cuda inject_check_room inject_check_state inject_libc inject_page inject_place inject_thread
inject_check_program inject_regs
inject_check inject_stop
inject_take
inject_run
inject
gpu_standing
gpu_ring
gpu_inject gpu_watch
gpu_peer
gpu_link
loader preflight
calibrate launch step_probes traced
interval loading rate_guard rates step_units stream
step_cost steps_found
hint inject_dry_run list_steps selection step_guard
session
confine_broker
confine flag living loop
replay trace
# whether all that would work
doctor_check
doctor_gpu doctor_machine doctor_print doctor_process doctor_room doctor_trial
doctor_engines doctor_steps
doctor
main
END
)
status=0

fail()
{
	echo "layers: $1"
	status=1
}

# Number of the line a module stands on, or nothing. syscall_table_* are part of syscalls.
layer_of()
{
	awk -v module="${1/#syscall_table_*/syscalls}" \
		'{ for (i = 1; i <= NF; i++) if ($i == module) print NR }' <<<"$layers"
}

includes_of()
{
	sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$1"
}

check_user_file()
{
	local file=$1 module layer header other

	module=$(basename "${file%.*}")
	layer=$(layer_of "$module")
	[ -n "$layer" ] || fail "$file has no layer: give $module a line in $0"
	for header in $(includes_of "$file"); do
		other=${header%.h}
		case $header in
		fbt_*.h | "$module.h") continue ;;
		*.skel.h)
			[ "$module" = loader ] || [ "$module $header" = 'rates rates.skel.h' ] ||
				fail "$module may not include $header: only loader (and rates its own) may"
			continue
			;;
		inject_code.h)
			[ "$module" = inject_place ] ||
				fail "$module may not include $header: only inject_place may"
			continue
			;;
		syscall_table_*)
			[ "$module" = syscalls ] || fail "$module may not include $header"
			continue
			;;
		esac
		if [ -z "$(layer_of "$other")" ]; then
			fail "$module includes $header, which has no layer"
		elif [ -n "$layer" ] && [ "$(layer_of "$other")" -ge "$layer" ]; then
			fail "$module may not include $header"
		fi
	done
}

for file in user/*.[ch]; do
	check_user_file "$file"
done
for module in $(grep -oE '[a-z0-9_]+' <<<"$layers" | sort | uniq -d); do
	fail "$module has more than one layer"
done
for module in $layers; do
	[ -e "user/$module.c" ] || [ -e "user/$module.h" ] || fail "no file for $module"
done
for file in include/*.h; do
	for header in $(includes_of "$file"); do
		[ -e "include/$header" ] || fail "$file may include only include/, not $header"
	done
done
for file in bpf/*.[ch] cupti/*.[ch]; do
	[ -e "$file" ] || continue
	for header in $(includes_of "$file"); do
		[ -e "include/$header" ] || [ -e "$(dirname "$file")/$header" ] ||
			[ "$header" = vmlinux.h ] ||
			fail "$file may include only include/ and its own folder, not $header"
	done
done
[ $status = 0 ] && echo 'ok - every include points to a layer above' ||
	echo 'not ok - every include points to a layer above'
exit $status
