#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Another user swaps files, links, pipes and folders under the names that the tool writes to as
# root. No file of root may be written to, given away or disclosed.
# outputs_attack.sh [ROUNDS]: rounds in each folder (default: 50)
. "$(dirname "$0")/lib.sh"

rounds=${1:-50}
stranger=65534 user=12345

chmod 755 "$TMP"
cp "$FBT_BUILD/tests/live_swap" "$TMP/swap"
chmod 755 "$TMP/swap"
mkdir -m 755 "$TMP/victim" "$TMP/victim/folder"
echo secret >"$TMP/victim/secret"
echo open >"$TMP/victim/open"
chmod 600 "$TMP/victim/secret"
chmod 666 "$TMP/victim/open"
look_at_victim()
{
	find "$TMP/victim" -printf '%i %U:%G %m %s %y %p\n' | sort
	cat "$TMP"/victim/{secret,open}
}
look_at_victim >"$TMP/before"

# folder NAME MODE OWNER
folder()
{
	mkdir -m "$2" "$TMP/$1"
	chmod "$2" "$TMP/$1"
	chown "$3:$3" "$TMP/$1"
}
folder sticky 1777 0
folder shared 777 0
folder theirs 755 $stranger
folder users 755 $user

attack()
{
	local name=$1

	setpriv --reuid $stranger --regid $stranger --clear-groups "$TMP/swap" "$TMP/$name" "$TMP/victim" \
		"${@:2}" >"$TMP/told" 7>&- &
	ATTACKER=$!
}

# check NAME WORST: what must never happen in rounds whose worst exit status was WORST
check()
{
	local name=$1

	kill -9 "$ATTACKER"
	wait "$ATTACKER" 2>/dev/null
	holds "$name: each run ends with 0 or 1 (worst $2)" [ "$2" -le 1 ]
	is "$name: nothing of the victim's has changed" "$(look_at_victim | diff - "$TMP/before")" ''
	is "$name: nothing was written to a file of the attacker's" "$(cat "$TMP/told")" ''
	is "$name: nothing that was written can be read by another" \
		"$(find "$TMP/$name" ! -user $stranger -type f -perm /077 ! -size 5c)" ''
}

start_engine --steps 0 --sleep-us 500
go
"$FBT" -p "$ENGINE" --step engine_step -n 20 --report none --trace none --profile none \
	--record "$TMP/record" 2>"$OUT.err"
"$FBT" --replay "$TMP/record" --report none --trace "$TMP/t.json" --profile "$TMP/p.jsonl"
is 'the recording can be replayed' $? 0

# Names that the attacker knows, written from a recording.
for name in sticky shared theirs; do
	attack $name t.json t.json.partial p.jsonl sub deep
	worst=0
	done=0
	for i in $(seq "$rounds"); do
		# In a sticky folder the attacker cannot remove what the tool has put there.
		rm -rf "${TMP:?}/$name"/{t.json,t.json.partial,p.jsonl,sub,deep} 2>/dev/null
		sudo=()
		[ $((i % 2)) = 0 ] && sudo=("SUDO_UID=$user" "SUDO_GID=$user")
		# A profile that the folder's owner has created is what the user wants.
		profile=$TMP/$name/p.jsonl
		[ $name = theirs ] && profile=none
		env "${sudo[@]}" timeout 20 "$FBT" --replay "$TMP/record" --report none \
			--trace "$TMP/$name/t.json" --profile "$profile" 2>>"$OUT.err"
		status=$?
		[ $status -le $worst ] || worst=$status
		[ $status != 0 ] || done=$((done + 1))
		env "${sudo[@]}" timeout 20 "$FBT" --replay "$TMP/record" --report none \
			--trace "$TMP/$name/sub/t.json" --profile "$TMP/$name/deep/down/p" 2>>"$OUT.err"
		status=$?
		[ $status -le $worst ] || worst=$status
	done
	check $name $worst
	echo "# $name: $done of $rounds runs wrote all of their files"
done
is 'attacked outputs: what is shown is printable' \
	"$(python3 tests/live/hostile.py shown "$OUT.err")" printable

# Names that the tool makes up, in the folder of the user behind sudo and in the attacker's.
for name in sticky theirs; do
	rm -rf "${TMP:?}/$name"/*
	attack $name out other2
	worst=0
	for _ in 1 2 3 4; do
		SUDO_UID=$user SUDO_GID=$user timeout 30 "$FBT" -p "$ENGINE" --step engine_step -n 5 --report none \
			--dir "$TMP/$name/out" 2>>"$OUT.err"
		status=$?
		[ $status -le $worst ] || worst=$status
	done
	check $name $worst
done
SUDO_UID=$user SUDO_GID=$user "$FBT" -p "$ENGINE" --step engine_step -n 5 --report none \
	--dir "$TMP/users/new/folder"
is 'the folder of the user behind sudo: written to' $? 0
is 'and all of it is that user'"'"'s' "$(find "$TMP/users" ! -user $user)" ''

# A group's folder in which a member has created a folder, and a profile of their own to be appended
# to.
folder team 3775 0
folder team/runs 755 $stranger
echo '{}' >"$TMP/team/runs/p.jsonl"
chown $stranger:$stranger "$TMP/team/runs/p.jsonl"
"$FBT" --replay "$TMP/record" --report none --profile "$TMP/team/runs/p.jsonl" 2>"$OUT.err"
is 'a profile of another member of a group: refused' $? 1
has 'and named' "$OUT.err" 'runs/p.jsonl: .*65534'
is 'and nothing was told' "$(cat "$TMP/team/runs/p.jsonl")" '{}'
"$FBT" --replay "$TMP/record" --report none --profile "$TMP/team/runs/new.jsonl"
is 'a new file in the folder of a member: made' $? 0
is 'for nobody else to read' "$(stat -c '%u %a' "$TMP/team/runs/new.jsonl")" '0 600'

# A symbolic link of another user, and one of the user's own.
rm -rf "$TMP"/sticky/*
setpriv --reuid $stranger --regid $stranger --clear-groups ln -s "$TMP/victim" "$TMP/sticky/link"
"$FBT" -p "$ENGINE" --step engine_step -n 1 --report none --dir "$TMP/sticky/link" 2>"$OUT.err"
is 'a link of another user as --dir: refused' $? 1
has 'and named' "$OUT.err" 'link .*65534'
is 'and nothing was written' "$(look_at_victim | diff - "$TMP/before")" ''
mkdir "$TMP/mine"
ln -s "$TMP/mine" "$TMP/link"
"$FBT" -p "$ENGINE" --step engine_step -n 1 --report none --dir "$TMP/link"
is 'a link of ours as --dir: followed' $? 0
is 'into its folder' "$(find "$TMP/mine" -type f | wc -l)" 2
kill "$ENGINE"
finish
