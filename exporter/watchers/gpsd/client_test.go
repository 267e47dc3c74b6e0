package gpsd

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
)

func TestStateAndMetricsFollowTheReports(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.metrics("before any report", map[*metric.Desc]string{
			metric.GNSSFix: "absent", metric.GNSSSatellitesSeen: "absent",
			metric.GNSSSatellitesUsed: "absent", metric.GNSSPulseOffset: "absent", metric.GNSSSawtooth: "absent",
			metric.GNSSTimeOffset: "absent", metric.GNSSLastMessage: "absent", metric.GNSSConnections: "1",
		})
		b.send(fix3D, skyView, toff, pulse)
		at := instant.Now()
		b.tick()
		b.metrics("after a cycle", map[*metric.Desc]string{
			metric.GNSSConnected: "1", metric.GNSSFix: "3", metric.GNSSSatellitesSeen: "3",
			metric.GNSSSatellitesUsed: "2", metric.GNSSPulseOffset: "-3.5e-06", metric.GNSSSawtooth: "-3.142e-09",
			metric.GNSSTimeOffset: "0.054211377", metric.GNSSConnections: "1",
		})
		want := State{
			Replying: true, Connected: true, Release: "3.22", Device: "/dev/ttyS0", Fix: Fix3D,
			Seen: Count{3, true}, Used: Count{2, true},
			Pulse:    Reading{At: instant.FromUnix(1795272300, 0), Offset: -3500, Precision: -20},
			Sawtooth: -3142 * 1e-12, HasSawtooth: true,
			Sentence:    Reading{At: instant.FromUnix(1795272298, 0), Offset: 54211377},
			LastMessage: at,
		}
		if got := b.client.State(); got != want {
			t.Errorf("State =\n%+v, want\n%+v", got, want)
		}
		for _, m := range malformations() {
			if n := b.malformed(m); n != 0 {
				t.Errorf("%v lines are %v", n, m)
			}
		}
	})
}

func TestRequestNamesTheDevice(t *testing.T) {
	for device, want := range map[string]string{
		"":           `?WATCH={"enable":true,"json":true,"pps":true,"timing":true};`,
		"/dev/ttyS0": `?WATCH={"enable":true,"json":true,"pps":true,"timing":true,"device":"/dev/ttyS0"};`,
	} {
		inTestbed(t, Options{Device: device}, nil, func(b *testbed) {
			if got := b.daemon.requests; !slices.Equal(got, []string{want}) {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}

// pauses are the times between the attempts to connect.
func pauses(d *daemon) (all []time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.dialed[1:] {
		all = append(all, d.dialed[i+1].Sub(d.dialed[i]))
	}
	return all
}

func TestPauseBetweenAttemptsDoublesUpToItsLimit(t *testing.T) {
	seconds := func(s ...float64) (all []time.Duration) {
		for _, one := range s {
			all = append(all, time.Duration(one*float64(time.Second)))
		}
		return all
	}
	for _, c := range []struct {
		name   string
		limit  time.Duration
		random float64
		want   []time.Duration
	}{
		{"the longest", 0, 1, seconds(1, 2, 4, 8, 16, 30, 30)},
		{"the shortest", 0, 0, seconds(0.5, 1, 2, 4, 8, 15, 15)},
		{"a low limit", 100 * time.Millisecond, 1, seconds(0.1, 0.1, 0.1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{maxBackOff: c.limit, random: func() float64 { return c.random }}
			inTestbed(t, o, func(d *daemon) { d.down = true }, func(b *testbed) {
				for _, pause := range c.want {
					time.Sleep(pause) // simulated time (synctest)
				}
				synctest.Wait()
				if got := pauses(b.daemon); !slices.Equal(got, c.want) {
					t.Errorf("pauses %v, want %v", got, c.want)
				}
				b.metrics("without gpsd", map[*metric.Desc]string{metric.GNSSConnected: "0", metric.GNSSConnections: "0"})
			})
		})
	}
}

func TestAbsentGpsdHasItsRemedy(t *testing.T) {
	inTestbed(t, Options{}, func(d *daemon) { d.down = true }, func(b *testbed) {
		synctest.Wait()
		if got, want := b.client.Status().Reason, "connection refused: is gpsd running there? `systemctl start gpsd`"; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestGpsdThatClosesAtOnceIsRetriedAtTheMaximumPause(t *testing.T) {
	inTestbed(t, Options{}, func(d *daemon) { d.hangUp = true }, func(b *testbed) {
		time.Sleep(10 * time.Minute) // simulated time (synctest)
		if n := b.daemon.connections(); n < 15 || n > 30 {
			t.Errorf("%d connections in ten minutes, want about 24", n)
		}
	})
}

func TestGoodConnectionMakesTheNextPauseShortAgain(t *testing.T) {
	inTestbed(t, Options{}, func(d *daemon) { d.down = true }, func(b *testbed) {
		time.Sleep(5 * time.Minute) // simulated time (synctest)
		b.daemon.set(func(d *daemon) { d.down = false })
		time.Sleep(defaultMaxBackOff) // simulated time (synctest)
		b.every(time.Minute, fix3D)
		cut := time.Now()
		b.daemon.cut()
		time.Sleep(firstPause) // simulated time (synctest)
		synctest.Wait()
		last := b.daemon.dialed[len(b.daemon.dialed)-1]
		if got := last.Sub(cut); got != firstPause {
			t.Errorf("tried again after %v, want %v", got, firstPause)
		}
	})
}

func TestRestartedGpsdStartsFromNothing(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(fix3D, skyView, toff, pulse)
		reported := b.client.State().LastMessage
		b.daemon.set(func(d *daemon) { d.reply = []string{noPool, echo} })
		b.daemon.cut()
		synctest.Wait()
		if got, want := b.client.State(), (State{LastMessage: reported}); got != want {
			t.Errorf("when it is gone: %+v, want %+v", got, want)
		}
		b.tick()
		if got, want := b.client.State(), (State{Replying: true, Release: "3.22", LastMessage: reported}); got != want {
			t.Errorf("when it is back: %+v, want %+v", got, want)
		}
		b.metrics("after the restart", map[*metric.Desc]string{
			metric.GNSSConnected: "0", metric.GNSSFix: "absent", metric.GNSSPulseOffset: "absent", metric.GNSSConnections: "2",
		})
	})
}

func TestGpsdThatHangsGetsARequestAndIsThenDisconnected(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.every(time.Minute, fix3D, pulse)
		b.daemon.set(func(d *daemon) { d.silent = true })
		time.Sleep(timeout) // simulated time (synctest)
		synctest.Wait()
		if n := b.daemon.received(); n != 2 {
			t.Errorf("got %d requests, want once more after %v", n, timeout)
		}
		b.metrics("while it hangs", map[*metric.Desc]string{metric.GNSSPulseOffset: "absent", metric.GNSSConnections: "1"})
		b.daemon.set(func(d *daemon) { d.silent = false })
		time.Sleep(timeout + firstPause) // simulated time (synctest)
		b.tick()
		b.metrics("after it was left", map[*metric.Desc]string{metric.GNSSConnections: "2", metric.GNSSConnected: "1"})
	})
}

func TestSilentServerIsDisconnected(t *testing.T) {
	inTestbed(t, Options{}, func(d *daemon) { d.silent = true }, func(b *testbed) {
		time.Sleep(timeout + firstPause) // simulated time (synctest)
		synctest.Wait()
		if got := pauses(b.daemon); !slices.Equal(got, []time.Duration{timeout + firstPause}) {
			t.Errorf("pauses %v", got)
		}
	})
}

func TestGpsdWithoutADeviceIsKept(t *testing.T) {
	inTestbed(t, Options{}, func(d *daemon) { d.reply = []string{noPool, echo} }, func(b *testbed) {
		time.Sleep(10*time.Minute - time.Second) // simulated time (synctest)
		b.metrics("after ten minutes", map[*metric.Desc]string{metric.GNSSConnected: "0", metric.GNSSConnections: "1"})
		if n, want := b.daemon.received(), int(10*time.Minute/timeout); n != want {
			t.Errorf("got %d requests, want %d", n, want)
		}
		b.daemon.set(func(d *daemon) { d.reply = []string{pool, echo} }) // now it can be opened
		b.tick()
		b.tick()
		b.metrics("with a device", map[*metric.Desc]string{metric.GNSSConnected: "1", metric.GNSSFix: "absent"})
	})
}

func TestUnknownDeviceKeepsTheConnection(t *testing.T) {
	complaint := `{"class":"ERROR","message":"No such device as /dev/ttyS9"}`
	prepare := func(d *daemon) { d.reply = []string{complaint} }
	inTestbed(t, Options{Device: "/dev/ttyS9"}, prepare, func(b *testbed) {
		b.every(5*time.Minute, fix3D) // of another device
		b.metrics("after a while", map[*metric.Desc]string{
			metric.GNSSConnected: "0", metric.GNSSConnections: "1", metric.GNSSFix: "absent",
		})
		if n, want := b.daemon.received(), int(5*time.Minute/timeout); n < want || n > want+1 {
			t.Errorf("got %d requests, want %d", n, want)
		}
	})
}

func TestReceiverWithoutAFixIsKept(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.every(10*time.Minute, noFix, `{"class":"SKY","device":"/dev/ttyS0","nSat":0,"uSat":0}`)
		b.metrics("after ten minutes", map[*metric.Desc]string{
			metric.GNSSConnected: "1", metric.GNSSConnections: "1", metric.GNSSFix: "1", metric.GNSSSatellitesSeen: "0",
		})
		if n := b.daemon.received(); n != 1 {
			t.Errorf("got %d requests although it reports", n)
		}
	})
}

func TestUnpluggedReceiverHasNoValues(t *testing.T) {
	absent := map[*metric.Desc]string{
		metric.GNSSConnected: "0", metric.GNSSFix: "absent", metric.GNSSSatellitesSeen: "absent",
		metric.GNSSSatellitesUsed: "absent", metric.GNSSPulseOffset: "absent", metric.GNSSSawtooth: "absent",
		metric.GNSSTimeOffset: "absent", metric.GNSSConnections: "1",
	}
	for name, unplug := range map[string]string{"notice": gone, "list": noPool} {
		t.Run(name, func(t *testing.T) {
			inTestbed(t, Options{}, nil, func(b *testbed) {
				b.send(fix3D, skyView, toff, pulse)
				b.tick()
				b.metrics("plugged", map[*metric.Desc]string{metric.GNSSConnected: "1", metric.GNSSFix: "3"})
				b.send(unplug)
				b.tick()
				b.metrics("unplugged", absent)
				b.send(back)
				b.tick()
				b.metrics("plugged again", map[*metric.Desc]string{metric.GNSSConnected: "1", metric.GNSSFix: "absent"})
				b.send(noFix)
				b.tick()
				b.metrics("heard again", map[*metric.Desc]string{metric.GNSSFix: "1"})
			})
		})
	}
}

// gpsd 3.22 does not report a removed device, and lists it until it has tried to open it again.
func TestUnpluggedReceiverIsDetectedWithoutAReport(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(fix3D, skyView)
		b.daemon.set(func(d *daemon) { d.reply = []string{noPool, echo} })
		time.Sleep(timeout) // simulated time (synctest)
		b.tick()
		b.metrics("after a request", map[*metric.Desc]string{
			metric.GNSSConnected: "0", metric.GNSSFix: "absent", metric.GNSSConnections: "1",
		})
	})
}

// gpsd 3.22 never removes a device that was unplugged during probing.
func TestSilentDeviceIsNotConnected(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.tick()
		b.metrics("found", map[*metric.Desc]string{metric.GNSSConnected: "1"})
		time.Sleep(reportLifetime) // simulated time (synctest)
		b.tick()
		b.metrics("silent", map[*metric.Desc]string{metric.GNSSConnected: "0"})
		time.Sleep(10 * time.Minute) // gpsd lists it at each request
		b.metrics("still silent", map[*metric.Desc]string{metric.GNSSConnected: "0", metric.GNSSConnections: "1"})
		b.send(noFix)
		b.tick()
		b.metrics("heard", map[*metric.Desc]string{metric.GNSSConnected: "1", metric.GNSSFix: "1"})
	})
}

func TestExpiredValuesAreWithdrawn(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(fix3D, skyView, toff, pulse)
		time.Sleep(pulseFor) // simulated time (synctest)
		b.metrics("5 s later", map[*metric.Desc]string{metric.GNSSPulseOffset: "-3.5e-06", metric.GNSSFix: "3"})
		b.tick()
		b.metrics("6 s later", map[*metric.Desc]string{
			metric.GNSSPulseOffset: "absent", metric.GNSSSawtooth: "absent", metric.GNSSTimeOffset: "absent",
			metric.GNSSFix: "3", metric.GNSSSatellitesUsed: "2",
		})
		time.Sleep(reportLifetime - pulseFor) // simulated time (synctest)
		synctest.Wait()
		b.metrics("16 s later", map[*metric.Desc]string{
			metric.GNSSFix: "absent", metric.GNSSSatellitesUsed: "absent", metric.GNSSSatellitesSeen: "absent",
			metric.GNSSConnected: "0", // though gpsd has the device in its list
		})
		if _, ok := b.sink.Value(metric.GNSSLastMessage, DefaultName); !ok {
			t.Error("the time of the last message is not kept")
		}
	})
}

// A pulse without qErr follows one with qErr: the sawtooth is that of the last pulse.
func TestSawtoothIsOfTheLastPulse(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(pulse, `{"class":"PPS","device":"/dev/ttyS0","real_sec":1795272301,"real_nsec":0,"clock_sec":1795272301,"clock_nsec":7,"precision":-20}`)
		b.tick()
		b.metrics("after the second", map[*metric.Desc]string{metric.GNSSPulseOffset: "7e-09", metric.GNSSSawtooth: "absent"})
	})
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Address: "localhost"}, `address is "localhost"; it must be a host and a port, such as 127.0.0.1:2947 or [::1]:2947`},
		{Options{Address: ":2947"}, `address is ":2947"; it must be a host and a port, such as 127.0.0.1:2947 or [::1]:2947`},
		{Options{Address: "localhost:0"}, `address is "localhost:0"; it must be a host and a port, such as 127.0.0.1:2947 or [::1]:2947`},
		{Options{Device: `/dev/"`}, `device is "/dev/\"", with an invalid character at position 6; it must be a path such as /dev/ttyS0`},
		{Options{Device: "/dev/ttyS0\n"}, `device is "/dev/ttyS0\n", with an invalid character at position 11; it must be a path such as /dev/ttyS0`},
		{Options{Device: string(make([]byte, 128))}, `device has 128 characters; the limit of gpsd is 127`},
	} {
		if _, err := New(c.o); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
	if c, err := New(Options{}); err != nil || c.State() != (State{}) {
		t.Errorf("the zero options: %v", err)
	}
}
