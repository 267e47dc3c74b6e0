package calibration

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

// answered is a packet with a reply of a oneway reflector.
func answered() (p sample.Packet, forward, reverse sample.Delay) {
	p = sample.Packet{
		T1: sample.Stamp{Origin: sample.Kernel}, T2: sample.Stamp{Origin: sample.Kernel},
		T3: sample.Stamp{Origin: sample.FollowUp}, T4: sample.Stamp{Origin: sample.Kernel},
	}
	return p, sample.Delay{Value: 3 * us, Reason: sample.OK}, sample.Delay{Value: 5 * us, Reason: sample.OK}
}

func TestEachDirectionHasItsOwnErrors(t *testing.T) {
	c := NewCollector(sample.Kernel, 1000)
	for range 1000 {
		c.Add(answered())
	}
	forward, reverse, err := c.Result(1 * us)
	if err != nil || forward != (Direction{Count: 1000, Systematic: 2 * us}) || reverse != (Direction{Count: 1000, Systematic: 4 * us}) {
		t.Errorf("%+v, %+v, %v", forward, reverse, err)
	}
}

func TestABoundLargerThanTheDelayDoesNotHideIt(t *testing.T) {
	c := NewCollector(sample.Kernel, MinCount)
	for range MinCount {
		p, f, r := answered()
		f.Reason, r.Reason = sample.BoundTooLarge, sample.BoundTooLarge
		c.Add(p, f, r)
	}
	if _, _, err := c.Result(0); err != nil {
		t.Error(err)
	}
}

func TestTooFewPacketsMakeNoCalibration(t *testing.T) {
	c := NewCollector(sample.Kernel, MinCount)
	for range MinCount - 1 {
		c.Add(answered())
	}
	if _, _, err := c.Result(0); !errors.Is(err, ErrTooFewPackets) || !strings.Contains(err.Error(), "199 of 199 replies, want at least 200") {
		t.Error(err)
	}
}

func TestASelectionOfPacketsMakesNoCalibration(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(p *sample.Packet, f, r *sample.Delay)
		why   string
	}{
		"sent by user space":         {func(p *sample.Packet, _, _ *sample.Delay) { p.T1.Origin = sample.User }, "forward: timestamps of origin user and kernel"},
		"received by user there":     {func(p *sample.Packet, _, _ *sample.Delay) { p.T2.Origin = sample.User }, "forward: timestamps of origin kernel and user"},
		"reflector without FollowUp": {func(p *sample.Packet, _, _ *sample.Delay) { p.T3.Origin = sample.InPacket }, "reverse: timestamps of origin packet and kernel"},
		"received by user":           {func(p *sample.Packet, _, _ *sample.Delay) { p.T4.Origin = sample.User }, "reverse: timestamps of origin follow up and user"},
		"of the card":                {func(p *sample.Packet, _, _ *sample.Delay) { p.T4.Origin = sample.Hardware }, "reverse: timestamps of origin follow up and hardware"},
		"in a step":                  {func(_ *sample.Packet, f, _ *sample.Delay) { f.Reason = sample.LocalStepped }, "forward: local stepped"},
		"of a wild clock":            {func(_ *sample.Packet, _, r *sample.Delay) { r.Reason = sample.RemoteUnsynchronized }, "reverse: remote unsynchronized"},
	} {
		collector := NewCollector(sample.Kernel, 1000)
		for i := range 1000 {
			p, f, r := answered()
			if i < 51 { // 5.1 %
				c.spoil(&p, &f, &r)
			}
			collector.Add(p, f, r)
		}
		if _, _, err := collector.Result(0); !errors.Is(err, ErrTooFewPackets) || !strings.Contains(err.Error(), "949 of 1000") || !strings.Contains(err.Error(), "51 "+c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFewMissingTimestampsAreAccepted(t *testing.T) {
	c := NewCollector(sample.Kernel, 1000)
	for i := range 1000 {
		p, f, r := answered()
		if i < 50 {
			p.T3.Origin, r.Value = sample.InPacket, time.Second
		}
		c.Add(p, f, r)
	}
	if _, reverse, err := c.Result(0); err != nil || reverse.Count != 950 || reverse.Systematic != 5*us {
		t.Errorf("%+v, %v", reverse, err)
	}
}
