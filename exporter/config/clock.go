package config

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// atFunc is locator.at.
type atFunc func(path ...string) *yaml.Node

func (d *decoder) checkClock(c *Clock, at atFunc) {
	switch c.Source {
	case ClockChrony, ClockStatic, ClockNone:
	default:
		d.fail(at("clock", "source"), "clock.source", "is %q; it must be one of %q", c.Source, []string{ClockChrony, ClockStatic, ClockNone})
		return
	}
	section := at("clock")
	given := func(key string) bool { return section != at() && at("clock", key) != section }
	needs := map[string]string{
		"address": ClockChrony, "interval": ClockChrony, "socket_dir": ClockChrony,
		"max_clock_error": ClockChrony, "trust_local": ClockChrony, "bound": ClockStatic,
	}
	for _, key := range sortedKeys(needs) {
		if given(key) && c.Source != needs[key] {
			d.fail(at("clock", key), "clock."+key, "has no meaning with source %s; it goes with source %s", c.Source, needs[key])
		}
	}
	switch c.Source {
	case ClockStatic:
		if given("bound") {
			d.between(at("clock", "bound"), "clock.bound", c.Bound, 0, time.Second)
		} else {
			d.fail(section, "clock.bound", "is missing; source static needs it, such as 1ms")
		}
	case ClockChrony:
		d.checkChrony(c, given, at)
	}
	if c.GPSD != nil {
		d.checkGPSD(c.GPSD, at)
	}
	if c.PPS != nil {
		d.checkPPS(c.PPS, at)
	}
}

// maxClockError is the largest that makes sense: 10,000 ppm, a hundred times what a
// crystal is off by. Who writes chrony.conf's ppm as they are is above it.
const maxClockError = 0.01

func (d *decoder) checkChrony(c *Clock, given func(string) bool, at atFunc) {
	d.between(at("clock", "interval"), "clock.interval", c.Interval, 100*time.Millisecond, time.Minute)
	if c.Address != "" && !strings.HasPrefix(c.Address, "unix:///") && !strings.HasPrefix(c.Address, "udp://") {
		d.fail(at("clock", "address"), "clock.address", "is %q; it must begin with unix:/// or udp://, such as unix:///run/chrony/chronyd.sock or udp://127.0.0.1:323", c.Address)
	}
	if c.SocketDir != "" && !filepath.IsAbs(c.SocketDir) {
		d.fail(at("clock", "socket_dir"), "clock.socket_dir", "is %q; it must be an absolute path, such as /run/oneway", c.SocketDir)
	}
	if c.SocketDir != "" && strings.HasPrefix(c.Address, "udp://") {
		d.fail(at("clock", "socket_dir"), "clock.socket_dir", "has no meaning with an address of udp; it goes with a Unix socket")
	}
	if given("max_clock_error") && (c.MaxClockError <= 0 || c.MaxClockError > maxClockError) {
		d.fail(at("clock", "max_clock_error"), "clock.max_clock_error", "is %v; it must be above 0 and at most %v: 1e-6 is chrony.conf's maxclockerror of 1 (ppm)", float64(c.MaxClockError), maxClockError)
	}
}

// Defaults of the sections gpsd and pps.
const (
	defaultGPSD      = "127.0.0.1:2947" // the port that IANA has given to gpsd
	defaultReceiver  = "gps0"
	defaultPPSDevice = "/dev/pps0"
	defaultPulse     = "pps0"
)

func (d *decoder) checkGPSD(g *GPSD, at atFunc) {
	setDefault(&g.Address, defaultGPSD)
	setDefault(&g.Name, defaultReceiver)
	host, port, err := net.SplitHostPort(g.Address)
	n, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || wrong != nil || n == 0 {
		d.fail(at("clock", "gpsd", "address"), "clock.gpsd.address", "is %q; it must be a host and a port, such as 127.0.0.1:2947 or [::1]:2947", g.Address)
	}
	d.checkName(at("clock", "gpsd", "name"), "clock.gpsd.name", g.Name)
}

func (d *decoder) checkPPS(p *PPS, at atFunc) {
	setDefault(&p.Device, defaultPPSDevice)
	setDefault(&p.Edge, EdgeAssert)
	setDefault(&p.Name, defaultPulse)
	if !filepath.IsAbs(p.Device) {
		d.fail(at("clock", "pps", "device"), "clock.pps.device", "is %q; it must be an absolute path, such as /dev/pps0", p.Device)
	}
	if p.Edge != EdgeAssert && p.Edge != EdgeClear {
		d.fail(at("clock", "pps", "edge"), "clock.pps.edge", "is %q; it must be one of %q", p.Edge, []string{EdgeAssert, EdgeClear})
	}
	d.checkName(at("clock", "pps", "name"), "clock.pps.name", p.Name)
}

func setDefault(v *string, otherwise string) {
	if *v == "" {
		*v = otherwise
	}
}
