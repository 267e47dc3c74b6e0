#!/bin/sh
# Starts chronyd, gpsd and an agent on a host with a simulated receiver and pulse, and ends all when one ends or by SIGTERM.
# usage: start.sh AGENT ARGUMENT...    (such as: start.sh oneway agent --config.file=/etc/oneway.yml)
# Files: oneway-pulse and chrony.conf beside this script, chronyd and gpsd in PATH. Root and its capabilities: tests/pulse/doc.go.
# The pulse and the receiver are controlled at PULSE_CONTROL (default 127.0.0.1:9863); PULSE_OPTIONS are the first settings.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export PATH="$PATH:/usr/sbin:/sbin"
if ! [ -d /run/chrony ]; then install -d -m 0750 -o _chrony -g _chrony /run/chrony; fi
# shellcheck disable=SC2086 # options are words
exec "$here/oneway-pulse" -device /dev/pps0 -serial /dev/gnss0 -control "${PULSE_CONTROL:-127.0.0.1:9863}" ${PULSE_OPTIONS:-} \
  -- chronyd -x -d -F 0 -f "$here/chrony.conf" \
  -- gpsd -N -n /dev/gnss0 \
  -- "$@"
