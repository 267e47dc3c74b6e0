package udptraffic_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/endclock"
)

func clocks(bound time.Duration, reason sample.Reason, stepsBefore, stepsAfter uint64) endclock.Span {
	one := endclock.State{Bound: bound, Reason: reason.String(), Steps: stepsBefore}
	two := one
	two.Steps = stepsAfter
	return endclock.Span{Before: one, After: two}
}

// passed is a packet with a delay of 30 ms by both clocks.
func passed() udptraffic.Packet {
	return udptraffic.Packet{Sent: kernel(0), Arrived: kernel(30), Copies: 1}
}

func TestDelayHasBothClocksAndBothStampsInItsBound(t *testing.T) {
	local, remote := clocks(100*time.Microsecond, sample.OK, 1, 1), clocks(200*time.Microsecond, sample.OK, 7, 7)
	remote.After.Bound = 300 * time.Microsecond // the larger bound counts
	held := passed()
	held.Sent.TXUncertainty = 80 * time.Microsecond
	user := passed()
	user.Arrived.Origin = sample.User
	for name, c := range map[string]struct {
		p    udptraffic.Packet
		want time.Duration
	}{
		"kernel stamps":    {passed(), 450 * time.Microsecond},
		"TX uncertainty":   {held, 505 * time.Microsecond},
		"a user timestamp": {user, 400*time.Microsecond + 2025*time.Microsecond},
	} {
		d := udptraffic.NewTransfer(local, remote, false, time.Second, c.p).Delay(0)
		if d != (sample.Delay{Value: 30 * time.Millisecond, Bound: c.want, TXUncertainty: c.p.Sent.TXUncertainty, Reason: sample.OK}) {
			t.Errorf("%s: %+v, want a bound of %v", name, d, c.want)
		}
	}
}

// TestLargestBoundHoldsForEveryDelay: it is that of the worst packet; packets without a delay have no part in it.
func TestLargestBoundHoldsForEveryDelay(t *testing.T) {
	local, remote := clocks(100*time.Microsecond, sample.OK, 1, 1), clocks(200*time.Microsecond, sample.OK, 7, 7)
	held, lost := passed(), passed()
	held.Sent.TXUncertainty = 80 * time.Microsecond
	lost.Copies, lost.Arrived = 0, sample.Stamp{}
	if got := udptraffic.NewTransfer(local, remote, false, time.Second, passed(), held, lost).LargestBound(); got != (sample.Bound{Error: 405 * time.Microsecond, Reason: sample.OK}) {
		t.Errorf("%+v, want that of the packet that left late", got)
	}
	remote.After.Steps++
	if got := udptraffic.NewTransfer(local, remote, false, time.Second, passed()).LargestBound(); got != (sample.Bound{Reason: sample.RemoteStepped}) {
		t.Errorf("%+v, want none after a step", got)
	}
}

func TestDelaysClocksDecideWhetherItIsValid(t *testing.T) {
	good := loadtesttest.GoodClock()
	bad := clocks(0, sample.LocalUnsynchronized, 0, 0)
	none := clocks(0, sample.NoClock, 0, 0)
	stepped := clocks(time.Microsecond, sample.OK, 3, 4)
	unsettled := clocks(0, sample.LocalStepped, 4, 4) // since a step before the transfer
	lies := clocks(time.Microsecond, sample.OK, 0, 0)
	lies.After.Reason = "perfect"
	for name, c := range map[string]struct {
		local, remote endclock.Span
		shared        bool
		want          sample.Reason
		bound         time.Duration
	}{
		"both good":                                    {good, good, false, sample.OK, 70 * time.Microsecond},
		"local not synchronized":                       {bad, good, false, sample.LocalUnsynchronized, 0},
		"remote not synchronized":                      {good, bad, false, sample.RemoteUnsynchronized, 0},
		"remote has no clock":                          {good, none, false, sample.RemoteUnsynchronized, 0},
		"remote has an unknown reason":                 {good, lies, false, sample.RemoteUnsynchronized, 0},
		"local stepped":                                {stepped, good, false, sample.LocalStepped, 0},
		"remote stepped":                               {good, stepped, false, sample.RemoteStepped, 0},
		"local not settled since a step":               {unsettled, good, false, sample.LocalUnsynchronized, 0},
		"remote not settled since a step":              {good, unsettled, false, sample.RemoteUnsynchronized, 0},
		"one clock needs not settle":                   {unsettled, unsettled, true, sample.OK, 50 * time.Microsecond},
		"one clock needs no synchronization":           {bad, bad, true, sample.OK, 50 * time.Microsecond},
		"one clock that steps does not cancel":         {stepped, good, true, sample.LocalStepped, 0},
		"one clock, a step reported by the remote end": {good, stepped, true, sample.RemoteStepped, 0},
		"one clock, local clock unknown":               {none, good, true, sample.NoClock, 0},
	} {
		d := udptraffic.NewTransfer(c.local, c.remote, c.shared, time.Second, passed()).Delay(0)
		if d.Reason != c.want || d.Bound != c.bound || d.Value != 30*time.Millisecond {
			t.Errorf("%s: %+v, want %s ± %v", name, d, c.want, c.bound)
		}
	}
}

func TestDelayNeedsBothStampsAndAnIntactCopy(t *testing.T) {
	lost, damaged, unstamped := passed(), passed(), passed()
	lost.Copies, lost.Arrived = 0, sample.Stamp{}
	damaged.Copies = 0
	unstamped.Sent = sample.Stamp{}
	for name, p := range map[string]udptraffic.Packet{"lost": lost, "damaged": damaged, "unstamped": unstamped} {
		d := udptraffic.NewTransfer(loadtesttest.GoodClock(), loadtesttest.GoodClock(), false, time.Second, p).Delay(0)
		if d != (sample.Delay{Reason: sample.NoStamp}) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestDriftFollowsFromTheClockBounds(t *testing.T) {
	tight, wide := clocks(50*time.Microsecond, sample.OK, 0, 0), clocks(time.Second, sample.OK, 0, 0)
	free := clocks(0, sample.LocalUnsynchronized, 0, 0)
	for name, c := range map[string]struct {
		local, remote endclock.Span
		shared        bool
		want          float64
	}{
		"twice the bound over the duration": {tight, tight, false, 200e-6 / 10},
		"never more than two crystals":      {wide, wide, false, 100e-6},
		"two crystals if not synchronized":  {free, tight, false, 100e-6},
		"none with one clock":               {free, free, true, 0},
	} {
		got := udptraffic.NewTransfer(c.local, c.remote, c.shared, 10*time.Second).Drift()
		if got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestDisprovedClocksGiveNoDelay: the clock of one end is wrong by more than its bound.
func TestDisprovedClocksGiveNoDelay(t *testing.T) {
	good := loadtesttest.GoodClock()
	for wrong, want := range map[time.Duration]sample.Reason{
		0: sample.OK, -time.Hour: sample.ClocksApart, time.Hour: sample.ClocksApart, -20 * time.Millisecond: sample.ClocksApart,
	} {
		s := udptraffic.NewSession(&loadtesttest.Link{Delay: 5 * time.Millisecond, Each: func(_ sample.Direction, c *udptraffic.CarrierResult) error {
			c.Local, c.Remote = good, good
			for i := range c.Received.Packets {
				c.Received.Packets[i].Stamp.At = c.Received.Packets[i].Stamp.At.Add(wrong)
			}
			return nil
		}}, udptraffic.SessionOptions{})
		if got := transferOf(t, s, 50); got.Bound().Reason != want || got.Delay(0).Reason != want {
			t.Errorf("%v: %s, delay %+v, want %s", wrong, got.Bound().Reason, got.Delay(0), want)
		}
	}
}

// What ends a session while this host stands still, as the load server's idle timeout, is known before the run has ended.
func TestTransferThatFailsWhileThisHostStandsStillNamesThePause(t *testing.T) {
	lost := &loadtest.Failure{Reason: runreason.Lost, Err: errors.New("no test packet was received: does a firewall drop them?")}
	for longest, want := range map[time.Duration]string{0: runreason.Lost, 20 * time.Second: runreason.HostPaused} {
		s := udptraffic.NewSession(&loadtesttest.Link{Each: func(sample.Direction, *udptraffic.CarrierResult) error { return lost }}, udptraffic.SessionOptions{})
		_, err := s.Transfer(loadtest.Watched(t.Context(), func() time.Duration { return longest }), sample.Forward, s.Plan(stream.Segment{PayloadBytes: 100, Interval: time.Millisecond, Burst: 1, Bursts: 50}), nil)
		if f, ok := errors.AsType[*loadtest.Failure](err); !ok || f.Reason != want || strings.Contains(err.Error(), "firewall") != (longest == 0) {
			t.Errorf("after %v: %v", longest, err)
		}
	}
}

// The other direction cannot prove it: its delays are too large. Traffic beside the session may know it as well.
func TestClocksDisprovedInOneTransferGiveNoDelayInTheNext(t *testing.T) {
	good := loadtesttest.GoodClock()
	for name, beside := range map[string]bool{"this session": false, "traffic beside it": true} {
		clocks := &endclock.Proof{}
		s := udptraffic.NewSession(&loadtesttest.Link{Delay: 5 * time.Millisecond, Each: func(d sample.Direction, c *udptraffic.CarrierResult) error {
			c.Local, c.Remote = good, good
			wrong := 20 * time.Millisecond
			if d == sample.Forward {
				wrong = -wrong
			}
			for i := range c.Received.Packets {
				c.Received.Packets[i].Stamp.At = c.Received.Packets[i].Stamp.At.Add(wrong)
			}
			return nil
		}}, udptraffic.SessionOptions{Clocks: clocks})
		if beside {
			clocks.Find()
		} else if first := transferOf(t, s, 50); first.Bound().Reason != sample.ClocksApart {
			t.Fatalf("%s: %s", name, first.Bound().Reason)
		}
		next, err := s.Transfer(t.Context(), sample.Reverse, s.Plan(stream.Segment{PayloadBytes: 100, Interval: time.Millisecond, Burst: 1, Bursts: 50}), nil)
		if err != nil || next.Bound().Reason != sample.ClocksApart || next.Delay(0).Reason != sample.ClocksApart {
			t.Errorf("%s: %v, %s, delay %+v", name, err, next.Bound().Reason, next.Delay(0))
		}
	}
}
