package agent

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/watchers/gpsd"
	"oneway.example/exporter/watchers/pps"
	"oneway.example/tests/await"
)

// replyingGPSD is a gpsd with one receiver that has a fix. It returns its address.
func replyingGPSD(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintln(c, `{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}`)
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, `{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyS0","activated":"2026-11-21T14:44:51.630Z"}]}`)
					fmt.Fprintln(c, `{"class":"TPV","device":"/dev/ttyS0","mode":3,"lat":37.387458333,"lon":-121.972360000}`)
					fmt.Fprintln(c, `{"class":"SKY","device":"/dev/ttyS0","nSat":14,"uSat":9}`)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// receiver and pulse are the details of the two watchers of the clock; the zero value of one that is not configured.
func receiver(s Status) gpsd.Details {
	d, _ := s.Receiver.(gpsd.Details)
	return d
}

func pulse(s Status) pps.Details {
	d, _ := s.Pulse.(pps.Details)
	return d
}

func TestReceiverAndPulseAreStartedAndStoppedByAReload(t *testing.T) {
	address := replyingGPSD(t)
	absent := filepath.Join(t.TempDir(), "pps0") // no device: tests have no pulse
	with := func(more string) string {
		return strings.Replace(twoPaths, "bound: 1ms}", "bound: 1ms"+more+"}", 1)
	}
	gnss, pulsed := fmt.Sprintf(", gpsd: {address: %q, name: roof}", address), fmt.Sprintf(", pps: {device: %s, edge: clear}", absent)
	fake := newFake()
	r := newRig(t, fake, with(""))
	fake.expect(t, "start a", "start b")
	if s := r.Status(); s.Receiver != nil || s.Pulse != nil {
		t.Errorf("the status has an unconfigured receiver or pulse: %+v, %+v", s.Receiver, s.Pulse)
	}
	reload := func(yaml string) {
		t.Helper()
		r.write(yaml)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	clockUnit, track := r.unit("clock"), r.recorder.Tables().Listen(1)
	reload(with(gnss + pulsed))
	await.That(t, "the status has the receiver's fix", func() bool {
		s := receiver(r.Status())
		return s.Connected && s.Fix == "3D" && s.Used != nil && *s.Used == 9 && s.Seen != nil && *s.Seen == 14 && !s.LastMessage.IsZero()
	})
	where := make([]record.Table, 1)
	await.That(t, "its position is recorded", func() bool { n, _ := track.Take(where); return n == 1 && where[0].Schema == record.Track })
	if p := where[0].Rows[0]; record.OfReal(p[record.TrackLatitude]) != 37.387458333 || record.OfReal(p[record.TrackLongitude]) != -121.97236 ||
		!math.IsNaN(record.OfReal(p[record.TrackSpeed])) || where[0].Begin.IsZero() {
		t.Errorf("%+v", where[0])
	}
	if s := receiver(r.Status()); s.Name != "roof" || s.Address != address || s.Device != "/dev/ttyS0" || s.PulseOffset != nil || s.Error != "" {
		t.Errorf("%+v", s)
	}
	await.That(t, "the status has the reason of the missing pulse", func() bool { return strings.Contains(pulse(r.Status()).Error, "no such file") })
	if s := pulse(r.Status()); s.Present || s.Edge != "clear" || s.Device != absent || s.Jitter != nil || s.Offset != nil || !s.Last.IsZero() {
		t.Errorf("%+v", s)
	}
	await.That(t, "the receiver's fix is a metric", func() bool { v, ok := r.value("oneway_gnss_fix", "roof"); return ok && v == 3 })

	receiverUnit, pulseUnit := r.unit("watchers/gpsd/roof"), r.unit("watchers/pps/pps0")
	reload(with(gnss+pulsed) + "# a comment")
	if r.unit("watchers/gpsd/roof") != receiverUnit || r.unit("watchers/pps/pps0") != pulseUnit || r.unit("clock") != clockUnit {
		t.Error("a reload without a change restarted a task")
	}
	reload(with(gnss + strings.Replace(pulsed, "clear", "assert", 1)))
	if r.unit("watchers/gpsd/roof") != receiverUnit || r.unit("watchers/pps/pps0") == pulseUnit || r.unit("clock") != clockUnit {
		t.Error("a change of the pulse did not restart the pulse only")
	}
	reload(with(""))
	if s := r.Status(); s.Receiver != nil || s.Pulse != nil || r.unit("clock") != clockUnit {
		t.Errorf("the status still has them: %+v, %+v", s.Receiver, s.Pulse)
	}
	if v, ok := r.value("oneway_gnss_fix", "roof"); ok {
		t.Errorf("a removed receiver has a fix: %v", v)
	}
}

func TestEverySettingOfChronyRestartsItsMonitor(t *testing.T) {
	// Each key restarts the monitor only.
	fake := newFake()
	base := strings.Replace(twoPaths, "{source: static, bound: 1ms}", "{address: \"udp://127.0.0.1:9\"%s}", 1)
	r := newRig(t, fake, fmt.Sprintf(base, ""))
	for _, more := range []string{", max_clock_error: 1e-5", ", trust_local: true", ", interval: 2s"} {
		unit := r.unit("clock")
		r.write(fmt.Sprintf(base, more))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		if r.unit("clock") == unit {
			t.Errorf("%s did not restart the clock", more)
		}
	}
}

func TestAgentRunsWithoutGPSD(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	fake := newFake()
	r := newRig(t, fake, strings.Replace(twoPaths, "bound: 1ms}", fmt.Sprintf("bound: 1ms, gpsd: {address: %q}}", nobody), 1))
	fake.expect(t, "start a", "start b")
	await.That(t, "the clock is trusted", func() bool { return r.Status().Clock.Trusted })
	if s := receiver(r.Status()); s.Replying || s.Connected || s.Fix != "unknown" || s.Name != "gps0" {
		t.Errorf("%+v", s)
	}
	await.That(t, "a metric shows that gpsd is not connected", func() bool { v, ok := r.value("oneway_gnss_connected", "gps0"); return ok && v == 0 })
}

func TestAClockAloneIsMeasured(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	text := fmt.Sprintf("clock: {source: static, bound: 1ms, gpsd: {address: %q}}", replyingGPSD(t))
	a, err := New(Options{
		ConfigFile: "elsewhere", Types: typesWith(), Sink: sink,
		Load: func(file string) (*config.Config, error) { return config.Parse(file, []byte(text)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	await.That(t, "the clock is trusted and the receiver has a fix", func() bool {
		s := a.Status()
		return s.Clock.Trusted && receiver(s).Fix == "3D" && len(s.Paths) == 0
	})
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	text = "clock: {source: sundial}"
	if _, err := New(a.options); err == nil || !strings.HasPrefix(err.Error(), "elsewhere:1:17: clock.source is \"sundial\"") {
		t.Error(err)
	}
}
