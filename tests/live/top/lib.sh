# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The command top in a terminal of tmux; sourced after lib.sh.
command -v tmux >/dev/null || { echo 'SKIP needs tmux' && exit 77; }

export LC_ALL=C.UTF-8 TERM=xterm
tmux=(tmux -L "ferrum-top-$$" -f /dev/null)
undo()
{
	"${tmux[@]}" kill-server 2>/dev/null
}

# await COMMAND…: until it succeeds, for 40 s at most
await()
{
	local tries=400

	until "$@" 2>/dev/null; do
		((tries--)) || return 1
		sleep 0.1
	done
}

page()
{
	"${tmux[@]}" capture-pane -p -t t
}

on_page()
{
	page | grep -qE -- "$1"
}

# not_on_page REGEX
not_on_page()
{
	! on_page "$1"
}

# has_settled: nothing is drawn any more; what there is, is in $TMP/page
has_settled()
{
	page >"$TMP/page"
	sleep 0.3
	page_is "$TMP/page"
}

page_is()
{
	page | cmp -s - "$1"
}

page_is_not()
{
	! page_is "$1"
}

press()
{
	"${tmux[@]}" send-keys -t t "$@"
}

# The modes of the terminal, without its size.
modes()
{
	stty -a <"$TTY" | grep -v '^speed'
}

# What top looks at: the embedded engine, or what is in TARGETS.
TARGETS=
MORE=
PATTERN='SLOW STEPS newest first, [1-9]'

top_options()
{
	echo "${TARGETS:--p $ENGINE --step engine_step}"
}

# start COLUMNS ROWS [ENV…]: top in a new terminal, with $MORE, until $PATTERN is on the page; its raw
# output in $TMP/raw
start()
{
	local columns=$1 rows=$2

	shift 2
	"${tmux[@]}" kill-server 2>/dev/null
	await not_running
	rm -f "$TMP"/{raw,rc,err}
	"${tmux[@]}" new-session -d -x "$columns" -y "$rows" -s t "exec bash --norc --noprofile"
	"${tmux[@]}" pipe-pane -t t "cat >'$TMP/raw'"
	TTY=$("${tmux[@]}" display-message -p -t t '#{pane_tty}')
	press "cd '$TMP/dumps'; PS1='ready> '; clear" Enter
	await on_page '^ready>'
	BEFORE=$(modes)
	press "env $* $FBT top $(top_options) $MORE 2>'$TMP/err'; echo \$? >'$TMP/rc'" Enter
	await on_page "$PATTERN"
}

not_running()
{
	! "${tmux[@]}" list-sessions
}

has_ended()
{
	[ -s "$TMP/rc" ]
}

# restored NAME: the terminal is as it was, and the other screen is left
restored()
{
	await has_ended
	await on_page '^ready>$'
	is "$1: its exit status is 0" "$(cat "$TMP/rc")" 0
	is "$1: the modes of the terminal are as before" "$(modes)" "$BEFORE"
	is "$1: the alternate screen is left" \
		"$("${tmux[@]}" display-message -p -t t '#{alternate_on} #{cursor_flag}')" '0 1'
}

new_engine()
{
	rm -f "$TMP/truth"
	start_engine --steps 0 --compute-us 500 --sleep-us 4000 --trouble lock --trouble-every 50 \
		--trouble-us 60000 --truth "$TMP/truth"
	go
}

top_pid()
{
	pgrep -f "^$FBT top $(top_options)" | head -n 1
}

mkdir "$TMP/dumps"
