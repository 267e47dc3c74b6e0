package phc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/tests/await"
)

var _ tstamp.HardwareClock = (*Clock)(nil)

var (
	good      = Info{Clock: 3, Hardware: true, Enabled: true, AllPackets: true}
	discarded = slog.New(slog.DiscardHandler)
)

// fakeMachine has one card, and a system clock that a test steps.
type fakeMachine struct {
	began   time.Time
	stepped atomic.Int64         // total steps of the system clock, ns
	midway  atomic.Int64         // step of the system clock during the next reading, ns
	broken  atomic.Bool          // reading the card fails
	info    atomic.Pointer[Info] // what the interface shows; nil: good
	opened  atomic.Int32
	open    atomic.Int32 // number of open devices
}

func (m *fakeMachine) now() instant.Time {
	return instant.FromTime(time.Now()).Add(time.Duration(m.stepped.Load()))
}

// raw is the time of the card's clock: TAI, without steps.
func (m *fakeMachine) raw() instant.Time { return instant.FromTime(time.Now()).Add(37 * time.Second) }

func (m *fakeMachine) Read() (Reading, error) {
	m.stepped.Add(m.midway.Swap(0))
	if m.broken.Load() {
		return Reading{}, errGone
	}
	return Reading{Device: m.raw(), System: m.now(), Uncertainty: 100}, nil
}

func (m *fakeMachine) Close() error { m.open.Add(-1); return nil }

func (m *fakeMachine) machine() machine {
	m.began = time.Now()
	return machine{
		inspect: func(string) (Info, error) { return m.shown() },
		open: func(number int) (device, error) {
			if info, _ := m.shown(); number != info.Clock {
				return nil, fmt.Errorf("opened clock %d", number)
			}
			m.opened.Add(1)
			m.open.Add(1)
			return m, nil
		},
		steps: clock.StepOptions{
			Read:  func() clock.Reading { return clock.Reading{Wall: m.now(), Mono: time.Since(m.began)} },
			Watch: func(context.Context, func()) error { return nil },
		},
	}
}

// gone is what an interface shows that does not exist.
var gone = Info{Clock: -2}

func (m *fakeMachine) shown() (Info, error) {
	switch info := m.info.Load(); {
	case info == nil:
		return good, nil
	case *info == gone:
		return gone, fmt.Errorf("phc: ETHTOOL_GET_TS_INFO of eth0: %w", syscall.ENODEV)
	default:
		return *info, nil
	}
}

// TestInterfaceThatIsMadeAgainUsesItsPresentCard: the clock of the former card can still be read.
func TestInterfaceThatIsMadeAgainUsesItsPresentCard(t *testing.T) {
	for name, c := range map[string]struct {
		now  Info
		said string // empty: it goes on with what the interface shows
	}{
		"absent":                {gone, "interface eth0 does not exist"},
		"another card":          {Info{Clock: 4, Hardware: true, Enabled: true, AllPackets: true}, ""},
		"no card":               {Info{Clock: -1}, "has no PTP clock"},
		"timestamping disabled": {Info{Clock: 3, Hardware: true}, "enable it with hwstamp_ctl -i eth0 -t 1 -r 1"},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(m *fakeMachine, clock *Clock, log *await.Text) {
				m.info.Store(&c.now)
				time.Sleep(3*Interval + Interval/2) // simulated time (synctest)
				synctest.Wait()
				if m.expect(t, clock, name, c.said == ""); !strings.Contains(log.String(), c.said) {
					t.Errorf("logged %s, want %q", log, c.said)
				}
				if c.said == "" && m.opened.Load() != 2 {
					t.Errorf("opened %d clocks, want the second one", m.opened.Load())
				}
				m.info.Store(nil)
				time.Sleep(15 * time.Second) // simulated time (synctest)
				synctest.Wait()
				m.expect(t, clock, "as before", true)
			})
		})
	}
}

// within runs f with a Clock of a fake machine, in a synctest bubble.
func within(t *testing.T, f func(m *fakeMachine, c *Clock, log *await.Text)) {
	synctest.Test(t, func(t *testing.T) {
		m, log := &fakeMachine{}, &await.Text{}
		c, err := begin("eth0", slog.New(slog.NewTextHandler(log, nil)), m.machine())
		if err != nil {
			t.Fatal(err)
		}
		// simulated time (synctest)
		time.Sleep(2*Interval + Interval/2)
		synctest.Wait()
		f(m, c, log)
		c.Close()
		if m.open.Load() != 0 {
			t.Errorf("%d devices are open after Close, want 0", m.open.Load())
		}
		if _, ok := c.System(m.raw()); ok {
			t.Error("System converts after Close")
		}
	})
}

func (m *fakeMachine) expect(t *testing.T, c *Clock, when string, want bool) {
	t.Helper()
	at, ok := c.System(m.raw())
	if ok != want || ok && at.Sub(m.now()).Abs() > time.Microsecond {
		t.Errorf("%s: off by %v, ok %v; want %v", when, at.Sub(m.now()), ok, want)
	}
}

func TestClockConvertsAfterReadingsOfItsCard(t *testing.T) {
	within(t, func(m *fakeMachine, c *Clock, log *await.Text) {
		m.expect(t, c, "after three readings", true)
		if u, ok := c.Uncertainty(); u != 500 || !ok {
			t.Errorf("uncertainty %v, ok %v", u, ok)
		}
		if log.String() != "" {
			t.Errorf("logged %s, want nothing", log)
		}
	})
}

func TestLaterFailureIsLoggedOnceAndRecovered(t *testing.T) {
	within(t, func(m *fakeMachine, c *Clock, log *await.Text) {
		m.broken.Store(true)
		time.Sleep(5 * time.Minute) // simulated time (synctest)
		synctest.Wait()
		m.expect(t, c, "broken", false)
		if n := strings.Count(log.String(), "Cannot read the card's clock"); n != 1 || !strings.Contains(log.String(), "device gone") || !strings.Contains(log.String(), "interface=eth0") {
			t.Errorf("logged the failure %d times, want 1 with its cause and interface: %s", n, log)
		}
		if n := m.opened.Load(); n < 20 || n > 40 {
			t.Errorf("opened the device %d times in 5 minutes", n)
		}
		m.broken.Store(false)
		time.Sleep(maxRetry + (healthy+1)*Interval) // simulated time (synctest)
		synctest.Wait()
		m.expect(t, c, "mended", true)
		if n := strings.Count(log.String(), "works again"); n != 1 {
			t.Errorf("logged the recovery %d times, want 1: %s", n, log)
		}
	})
}

func TestTimestampsAreNotConvertedAcrossAStepOfTheSystemClock(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Millisecond, 100 * time.Microsecond} {
		within(t, func(m *fakeMachine, c *Clock, _ *await.Text) {
			m.stepped.Store(int64(step))
			m.expect(t, c, fmt.Sprintf("right after a step of %v", step), false)
			time.Sleep(Interval) // simulated time (synctest)
			synctest.Wait()
			m.expect(t, c, "one reading later", false)
			time.Sleep(Interval) // simulated time (synctest)
			synctest.Wait()
			m.expect(t, c, "two readings later", true)
		})
	}
}

func TestReadingDuringAStepIsRepeated(t *testing.T) {
	within(t, func(m *fakeMachine, c *Clock, log *await.Text) {
		m.midway.Store(int64(time.Second))
		time.Sleep(2 * Interval) // simulated time (synctest)
		synctest.Wait()
		m.expect(t, c, "two readings later", true)
		if log.String() != "" {
			t.Errorf("logged %s, want nothing", log)
		}
	})
}

func TestErrorOfAnUnusableInterfaceHasTheRemedy(t *testing.T) {
	for _, c := range []struct {
		info    Info
		inspect error
		open    error
		want    string
	}{
		{inspect: fmt.Errorf("phc: ETHTOOL_GET_TS_INFO of eth0: %w", syscall.ENODEV), want: `phc: interface eth0 does not exist: correct its name, or leave "hardware" out`},
		{inspect: errGone, want: `device gone: name another interface, or leave "hardware" out`},
		{info: Info{Clock: -1}, want: `phc: interface eth0 has no PTP clock, so its card cannot timestamp: name the interface that test packets use, or leave "hardware" out`},
		{info: Info{Clock: 0}, want: `has no PTP clock`},
		{info: Info{Clock: 0, Hardware: true}, want: `enable it with hwstamp_ctl -i eth0 -t 1 -r 1, or leave "hardware" out`},
		{info: good, open: fmt.Errorf("phc: %w", os.ErrPermission), want: `let this user read it, or leave "hardware" out`},
		{info: good, open: errGone, want: `device gone (the clock of eth0)`},
	} {
		_, err := begin("eth0", discarded, machine{
			inspect: func(string) (Info, error) { return c.info, c.inspect },
			open:    func(int) (device, error) { return nil, c.open },
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
		for _, cause := range []error{c.inspect, c.open} {
			if cause != nil && !errors.Is(err, cause) {
				t.Errorf("error %v does not wrap its cause", err)
			}
		}
	}
}

func TestCardThatTimestampsOnlyPTPIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, log := &fakeMachine{}, &await.Text{}
		part := m.machine()
		part.inspect = func(string) (Info, error) { i := good; i.AllPackets = false; return i, nil }
		c, err := begin("eth0", slog.New(slog.NewTextHandler(log, nil)), part)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if !strings.Contains(log.String(), "only some of the received packets") {
			t.Errorf("logged %q, want a warning", log)
		}
	})
}

func TestClockSystemDoesNotAllocate(t *testing.T) {
	within(t, func(m *fakeMachine, c *Clock, _ *await.Text) {
		raw := m.raw()
		if n := testing.AllocsPerRun(100, func() { c.System(raw) }); n != 0 {
			t.Errorf("%v allocations, want 0", n)
		}
	})
}
