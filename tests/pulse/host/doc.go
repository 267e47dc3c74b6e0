// Package host is a host with a GNSS receiver and a pulse that are both simulated, of which everything else is real: chronyd,
// gpsd and the agent. It has no code, but files:
//
//	start.sh      one command that starts all, and ends all together
//	chrony.conf   PPS /dev/pps0 with the seconds of gpsd's sentences; about 10 s until it is locked
//	oneway.yml    an agent that watches clock, receiver and pulse; add paths
//
// They go into one directory with oneway-pulse (tests/pulse/cmd/oneway-pulse, built statically), such as that of an image
// from Debian with chrony and gpsd:
//
//	docker run --cap-add SYS_PTRACE --cap-add SYS_TIME -e PULSE_CONTROL=0.0.0.0:9863 -e PULSE_OPTIONS='-receiver.radius=300 -receiver.speed=15' \
//	  IMAGE /stack/start.sh /stack/oneway agent --config.file=/stack/oneway.yml --web.listen-address=:9862
//
// While it runs, at the address PULSE_CONTROL (oneway-pulse -help lists the settings; GET /state returns them):
//
//	curl -X POST 'http://HOST:9863/set?pulse.stopped=true'      the pulse is lost
//	curl -X POST 'http://HOST:9863/set?receiver.fix=1'          the fix is lost; 3: a fix again
//	curl -X POST 'http://HOST:9863/set?receiver.silent=true'    the receiver is silent
//	curl -X POST 'http://HOST:9863/set?pulse.offset=3ms'        the pulse is 3 ms late: chronyd has the clock 3 ms fast
//	curl -X POST 'http://HOST:9863/set?pulse.jitter=5ms'        the pulse is irregular
//
// The position is that of receiver.Track.At. chronyd (-x) sets no clock: it corrects one of its own, and reports that one. With an
// offset of the pulse the agent's bound, which stands on chronyd's report, is therefore wrong by this offset, while the offset by
// the pulses is right: OnewayClockDisagreement.
package host
