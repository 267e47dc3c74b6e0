# In the place of OpenWrt's /lib/functions.sh and /sbin/uci: as much of them as the package calls. A file of /etc/config has the
# syntax of "uci export", which is a shell script of these functions.
N='
'
config_cb() { :; }
option_cb() { :; }
list_cb() { :; }
package() { :; }

config() {
	SECTIONS=$((${SECTIONS:-0} + 1))
	SECTION=${2:-cfg$SECTIONS}
	config_cb "$1" "$SECTION"
}

option() {
	eval "VALUE_${SECTION}_$1=\$2"
	option_cb "$1" "$2"
}

list() {
	local n
	eval "n=\$((\${LENGTH_${SECTION}_$1:-0} + 1)); LENGTH_${SECTION}_$1=\$n"
	eval "ITEM_${SECTION}_$1_$n=\$2"
	list_cb "$1" "$2"
}

# Each value of before is forgotten, as by uci_load.
config_load() {
	local name
	for name in $(set | sed -n 's/^\(\(VALUE\|LENGTH\)_[a-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
	SECTION=''
	sh -n "/etc/config/$1" || return 1
	. "/etc/config/$1"
	[ -z "$SECTION" ] || config_cb
}

config_get() { eval "$1=\${VALUE_$2_$3:-\$4}"; }

config_get_bool() {
	config_get "$@"
	eval "case \$$1 in 1 | on | true | yes | enabled) $1=1 ;; *) $1=0 ;; esac"
}

config_list_foreach() {
	local n item length
	eval "length=\${LENGTH_$1_$2:-0}"
	n=1
	while [ $n -le "$length" ]; do
		eval "item=\$ITEM_$1_$2_$n"
		"$3" "$item"
		n=$((n + 1))
	done
}

default_postinst() { echo "default_postinst $(basename "${1%.*}")"; }
default_prerm() { echo "default_prerm $(basename "${1%.*}")"; }
