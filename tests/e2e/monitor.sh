#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Metrics through the real programs: node_exporter reads the file, Prometheus scrapes it, promtool
# accepts file and rules, and each query of the dashboard has data.
. "$(dirname "$0")/../live/lib.sh"

for program in prometheus prometheus-node-exporter promtool; do
	command -v $program >/dev/null || { echo "SKIP needs $program (packaging/deps.sh monitor)" && exit 77; }
done
MONITOR=packaging/monitor
FOLDER=$TMP/node
SERVERS=()

# shellcheck disable=SC2317 # clean_up calls it
undo()
{
	[ ${#SERVERS[@]} -eq 0 ] || kill -9 "${SERVERS[@]}" 2>/dev/null
}

# ask PORT PATH: what an HTTP server of this machine answers
ask()
{
	python3 -c 'import sys, urllib.request as u
print(u.build_opener(u.ProxyHandler({})).open("http://127.0.0.1:%s%s" % tuple(sys.argv[1:])).read().decode())' "$@" 2>/dev/null
}

# free_port: one that nobody listens on by now
free_port()
{
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

holds 'promtool accepts the rules' promtool check rules "$MONITOR"/rules.yml
holds 'promtool: each alert comes when it should, and not otherwise' \
	sh -c "cd $MONITOR && promtool test rules rules_test.yml"
holds 'the dashboard is sound' python3 tests/e2e/monitor_dashboard.py check "$MONITOR"/dashboard.json

mkdir "$FOLDER"
chmod 755 "$TMP" "$FOLDER"
NODE=$(free_port)
# As the user that Debian runs it as: it must be able to read the file.
setpriv --reuid nobody --clear-groups prometheus-node-exporter --collector.disable-defaults \
	--collector.textfile --collector.textfile.directory="$FOLDER" \
	--web.listen-address=127.0.0.1:"$NODE" >"$TMP/node.log" 2>&1 &
SERVERS+=($!)
PROMETHEUS=$(free_port)
cat >"$TMP/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$PWD/$MONITOR/rules.yml]
scrape_configs:
  - {job_name: node, static_configs: [{targets: ['127.0.0.1:$NODE']}]}
END
holds 'promtool accepts the configuration' promtool check config "$TMP/prometheus.yml"
prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/data" \
	--web.listen-address=127.0.0.1:"$PROMETHEUS" >"$TMP/prometheus.log" 2>&1 &
SERVERS+=($!)

# Two engines and two tracers that write to one folder, one of them in trouble.
start_engine --steps 0 --compute-us 1000 --trouble lock --trouble-us 20000
attach --metrics "$FOLDER/first.prom" --metrics-interval 1
go
FIRST=$ENGINE FIRST_TOOL=$TOOL
start_engine --steps 0 --compute-us 500
OUT=$TMP/second
attach --metrics "$FOLDER/second.prom" --metrics-interval 1
go

# has_all: Prometheus has seen both, and each query of the dashboard has data
# shellcheck disable=SC2317
has_all()
{
	python3 tests/e2e/monitor_dashboard.py query "$MONITOR"/dashboard.json "$PROMETHEUS" >"$TMP/queries" 2>&1
}

holds 'each query of the dashboard has data' wait_for 90 has_all || cat "$TMP/queries"
sed 's/^/# /' "$TMP/queries"
is 'Prometheus has both tracers' "$(ask "$PROMETHEUS" '/api/v1/query?query=count(ferrum_bpftrace_up==1)' | grep -o '"2"')" '"2"'
ask "$NODE" /metrics >"$TMP/page"
is 'node_exporter read all files' "$(grep '^node_textfile_scrape_error' "$TMP/page")" 'node_textfile_scrape_error 0'
holds 'node_exporter gives out each metric as it is in the file' python3 - "$FOLDER/first.prom" "$TMP/page" <<'END'
import re, sys
file, page = (set(re.findall(r"^(?:# TYPE )?ferrum_[a-z_]+", open(name).read(), re.M)) for name in sys.argv[1:])
sys.exit(len(file) < 20 or file - page != set())
END
for server in "${SERVERS[@]}"; do
	holds 'the server still runs' kill -0 "$server"
done

kill -TERM "$FIRST" "$ENGINE"
wait "$FIRST" "$ENGINE"
end_tool
TOOL=$FIRST_TOOL
end_tool
holds 'promtool finds nothing to say about the file' sh -c "promtool check metrics <'$FOLDER/first.prom'"
# shellcheck disable=SC2317
has_steps()
{
	ask "$PROMETHEUS" '/api/v1/query?query=sum(ferrum_bpftrace_steps_total)' | grep -q "\"$1\""
}
holds 'the last value of Prometheus is that of the files' wait_for 60 has_steps \
	"$(cat "$FOLDER"/*.prom | awk '/^ferrum_bpftrace_steps_total/ { sum += $2 } END { print sum }')"
holds 'the rules are evaluated without errors' sh -c \
	"$(declare -f ask); ask $PROMETHEUS /api/v1/rules | python3 -c 'import json, sys
rules = [r for g in json.load(sys.stdin)[\"data\"][\"groups\"] for r in g[\"rules\"]]
sys.exit(len(rules) < 7 or any(r[\"health\"] != \"ok\" for r in rules))'"
finish
