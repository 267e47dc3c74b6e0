package interop

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/lab"
	"oneway.example/tests/testbed"
	"oneway.example/tests/testseed"
)

// TestLossesOfEachDirectionAreThoseOfTheLink runs stamp-suite as a stateful reflector behind a link with loss, and
// expects the link's own counts.
func TestLossesOfEachDirectionAreThoseOfTheLink(t *testing.T) {
	path := requireSuite(t)
	lab.Require(t)
	seed := testseed.Of(t)
	for _, loss := range []float64{0.02, 0.2} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			link := lab.Link{Delay: 5 * time.Millisecond, Loss: loss}
			network := lab.Start(t, lab.Options{
				Profile: lab.Profile{Name: "interop", Forward: link, Reverse: link}, Seed: seed,
				Classifier: testbed.Classify, SpareOthers: true,
			})
			seed++
			at := netip.AddrPortFrom(network.Server.Addr4, stampfmt.Port)
			serve(t, network.Server.Command(path, "-i", "-S", at.Addr().String(), "-o", strconv.Itoa(int(at.Port())),
				"--stateful-reflector", "--clock-synchronized", "--error-scale", strconv.Itoa(remoteScale)))
			env := newEnv(t)
			o := quick()
			o.LossTimeout = 400 * time.Millisecond
			var r stamp.Report
			err := network.Client.Do(func() (err error) {
				r, err = measure(t, env, at.String(), o, 1000)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := network.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			results.add(t, line{
				asks: "oneway", replies: "stamp-suite", what: fmt.Sprintf("stateful, link loses %g both ways", loss),
				sent: "1000", answered: fmt.Sprint(r.RoundTrip.Received), forward: lostText(r.Forward), reverse: lostText(r.Reverse),
			})
			checkLosses(t, "forward", r.Forward, network.Log(sample.Forward))
			checkLosses(t, "reverse", r.Reverse, network.Log(sample.Reverse))
			checkLinkDelay(t, network, r)
		})
	}
}

func lostText(d stamp.DirectionReport) string {
	if d.Lost == nil {
		return "loss unreported"
	}
	return fmt.Sprintf("%d lost", *d.Lost)
}

func checkLosses(t *testing.T, name string, d stamp.DirectionReport, log []lab.Record) {
	t.Helper()
	lost := uint64(0)
	for _, r := range log {
		if r.Outcome == lab.DroppedLoss {
			lost++
		}
	}
	if d.Lost == nil || *d.Sent != uint64(len(log)) || *d.Lost != lost || *d.Received != *d.Sent-lost || *d.Outstanding != 0 {
		t.Errorf("%s: the link received %d and lost %d; reported: %s", name, len(log), lost, asJSON(d))
	}
}

// checkLinkDelay compares the smallest delays with the link's own.
func checkLinkDelay(t *testing.T, network *lab.Lab, r stamp.Report) {
	t.Helper()
	for direction, d := range map[sample.Direction]stamp.DirectionReport{sample.Forward: r.Forward, sample.Reverse: r.Reverse} {
		if d.Delay == nil {
			t.Errorf("%s: no delay reported", direction)
			continue
		}
		truth := time.Hour
		for _, record := range network.Log(direction) {
			if record.Outcome == lab.Delivered {
				truth = min(truth, record.Delay())
			}
		}
		bound := duration(*d.Delay.ErrorBound)
		if least := duration(*d.Delay.Min); least < truth-bound || least > truth+bound {
			t.Errorf("%s: smallest delay %v, the link's %v, bound %v", direction, least, truth, bound)
		}
	}
}
