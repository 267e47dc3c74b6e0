#!/bin/sh
# Runs in the root of busybox: installs the package as opkg does, and starts what its scripts start.
set -eu
architecture=$1
fail() { echo "openwrt: $*" >&2; exit 1; }
expect() { # FILE TEXT
	grep -qF -- "$2" "$1" || {
		cat "$1" >&2
		fail "$1 lacks $2"
	}
}

cd /control
tar -xzf /tmp/oneway.ipk
tar -xzf control.tar.gz
tar -xzf data.tar.gz -C /
expect control "Package: oneway"
expect control "Architecture: $architecture"
expect conffiles /etc/config/oneway
tar -tzf data.tar.gz | sed 's|^\./||; /\/$/d; /^$/d' | sort >/tmp/files
cat >/tmp/want <<END
etc/config/oneway
etc/init.d/oneway
lib/upgrade/keep.d/oneway
usr/bin/oneway
usr/libexec/oneway/configuration
usr/share/doc/oneway/licenses.txt.gz
END
cmp /tmp/want /tmp/files || { cat /tmp/files; fail "the package has other files"; }

# The kernel of this host runs the program in qemu.
mv /usr/bin/oneway /usr/bin/oneway.program
printf '#!/bin/sh\nexec /bin/qemu /usr/bin/oneway.program "$@"\n' >/usr/bin/oneway
chmod +x /usr/bin/oneway
cat >/bin/logger.new <<'END'
#!/bin/sh
for last; do :; done
echo "$last" >>/tmp/log
END
chmod +x /bin/logger.new && mv /bin/logger.new /bin/logger
: >/tmp/log

oneway --version | head -n 1
for left in calibrate report man verify; do
	! oneway $left x >/tmp/out 2>&1 || fail "$left is there"
	expect /tmp/out "this build (slim) lacks the command $left"
done
! oneway agent --web.enable-pprof >/tmp/out 2>&1 || fail "--web.enable-pprof is there"
expect /tmp/out "this build (slim)"
! oneway check-config --web.config.file=/etc/config/oneway /dev/null >/tmp/out 2>&1 || fail "--web.config.file is there"
expect /tmp/out "this build (slim)"

# As installed: the configuration is valid, nothing starts.
/usr/libexec/oneway/configuration >/tmp/installed.yml
oneway check-config /tmp/installed.yml
/etc/init.d/oneway start
! grep -q instance /tmp/procd || fail "it starts before it is enabled"
expect /tmp/log "uci set oneway.agent.enabled=1"

cat >/etc/config/oneway <<'END'
config agent 'agent'
	option enabled '1'
	list listen '127.0.0.1:9862'
	option profile 'full'

config clock 'clock'
	option source 'none'

config reflector 'reflector'
	list listen '127.0.0.1:862'
	list listen '127.0.0.1:8862'

config path
	option name 'to-hamburg'
	option peer '127.0.0.1'
	option interval '20ms'
	option dscp '46'

config probe
	option type 'stamp'
	option name 'other'
	option dscp '0'

config path
	option name 'second'
	option peer '127.0.0.1:8862'
END
/usr/libexec/oneway/configuration >/tmp/generated.yml
cat >/tmp/want <<'END'
version: 1
profile: 'full'
clock: {source: 'none'}
reflector: {listen: ['127.0.0.1:862', '127.0.0.1:8862']}
paths:
  - name: 'to-hamburg'
    peer: '127.0.0.1'
    probes:
      - {type: stamp, interval: '20ms', dscp: 46}
      - {type: 'stamp', name: 'other', dscp: 0}
  - name: 'second'
    peer: '127.0.0.1:8862'
    probes:
      - {type: stamp}
END
diff /tmp/want /tmp/generated.yml || fail "the configuration is another one"
oneway check-config /tmp/generated.yml
printf 'config clock\n\toption address "unix:///run/o%share"\n' "'" >/etc/config/quote
[ "$(/usr/libexec/oneway/configuration quote | tail -n 1)" = "clock: {address: 'unix:///run/o''hare'}" ] || fail "a quote is not kept"
/etc/init.d/oneway start
expect /tmp/procd "command /usr/bin/oneway agent --config.file=/var/etc/oneway.yml --web.listen-address=127.0.0.1:9862"
expect /tmp/procd "trigger oneway"

# A mistake: a reload leaves all as it was, and the log names it.
cp /tmp/procd /tmp/procd.before
cp /etc/config/oneway /tmp/config
printf "\toption intervall '1s'\n" >>/etc/config/oneway
! /etc/init.d/oneway reload || fail "a reload takes a mistake"
cmp /tmp/procd /tmp/procd.before
expect /tmp/log intervall
cp /tmp/config /etc/config/oneway
/etc/init.d/oneway reload
cmp /tmp/procd /tmp/procd.before

# What procd would run, for 10 s. The big-endian qemu does not swap the control messages of a send, so that its host refuses them.
if [ "$architecture" = mips_24kc ]; then
	echo "openwrt: skipped: an agent with qemu-mips, which passes control messages in the wrong byte order"
	exit 0
fi
$(sed -n 's/^command //p' /tmp/procd) >/tmp/agent.log 2>&1 &
agent=$!
sleep 4
start=$(date +%s)
while ! wget -qO /tmp/metrics http://127.0.0.1:9862/metrics; do
	[ $(($(date +%s) - start)) -lt 40 ] || { cat /tmp/agent.log; fail "the agent does not reply"; }
	sleep 1
done
sleep 10
wget -qO /tmp/metrics http://127.0.0.1:9862/metrics
! wget -qO /tmp/out http://127.0.0.1:9862/ || fail "there are pages"
sum() { awk -v name="$1" 'index($1, name "{") == 1 { n += $NF } END { printf "%d\n", n }' /tmp/metrics; }
kill -HUP $agent
sleep 1
kill -TERM $agent
wait $agent || { cat /tmp/agent.log; fail "the agent failed"; }
sent=$(sum oneway_packets_sent_total) lost=$(sum oneway_packets_lost_total)
echo "$architecture: sent $sent, lost $lost packets"
[ "$sent" -gt 500 ] || { cat /tmp/agent.log; fail "too few packets"; }
[ "$lost" -eq 0 ] || fail "packets are lost"
