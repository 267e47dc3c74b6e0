#!/bin/sh
# Prints the configuration of the agent in YAML, from the UCI configuration oneway, or from the one of another name ($1).
# A section agent: keys of the top level; the init script reads the others. path: a path with its first probe. probe: a further probe
# of this path. Each other section, such as clock or reflector: the section of this name.
. /lib/functions.sh

section='' pairs='' key='' items='' name='' peer='' top='' paths=''

# Numbers, true and false as they are; any other value is text.
value() {
	case $1 in
	true | false) printf %s "$1" ;;
	'' | . | *[!0-9.]*) text "$1" ;;
	*) printf %s "$1" ;;
	esac
}

text() { printf "'%s'" "$(printf %s "$1" | sed "s/'/''/g")"; }

pair() { pairs="$pairs${pairs:+, }$1: $2"; }

# The items of a list arrive one by one.
end_list() {
	[ -z "$key" ] || pair "$key" "[$items]"
	key='' items=''
}

end_section() {
	end_list
	case $section in
	'') ;;
	agent) [ -z "$pairs" ] || top="$top$(printf %s "$pairs" | sed 's/, \([a-z_]*: \)/\n\1/g')$N" ;;
	path) paths="$paths  - name: $(text "$name")$N    peer: $(text "$peer")$N    probes:$N      - {type: stamp${pairs:+, $pairs}}$N" ;;
	probe) paths="$paths      - {$pairs}$N" ;;
	*) top="$top$section: {$pairs}$N" ;;
	esac
	pairs='' name='' peer=''
}

config_cb() {
	end_section
	section=$1
}

option_cb() {
	end_list
	case $section:$1 in
	agent:enabled | agent:config_file | agent:listen) ;;
	path:name) name=$2 ;;
	path:peer) peer=$2 ;;
	*) pair "$1" "$(value "$2")" ;;
	esac
}

list_cb() {
	[ "$section:$1" != agent:listen ] || return 0
	[ "$1" = "$key" ] || end_list
	key=$1
	items="$items${items:+, }$(value "$2")"
}

config_load "${1:-oneway}" || {
	echo "oneway: /etc/config/${1:-oneway} cannot be read: uci show ${1:-oneway} names the line" >&2
	exit 1
}
printf 'version: 1\n%s%s%s' "$top" "${paths:+paths:$N}" "$paths"
