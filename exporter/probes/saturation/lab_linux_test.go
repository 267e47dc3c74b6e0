package saturation_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// The thesis' link (Woo 2010, table 6.1) with known values: rate within 2 %, queue within 5 %, empty delay within
// 0.3 ms. On a busy machine the emulated link may deviate, by its own log; such a round is repeated.
func TestRunOverTheEmulatedWiBroLinkFindsItsRateItsQueueAndItsDelay(t *testing.T) {
	for round := 1; ; round++ {
		late, err := wibroRound(t)
		if err == nil {
			return
		}
		if late < 2*time.Millisecond || round == 10 {
			t.Fatal(err)
		}
		t.Logf("round %d is invalid: the emulated link delayed a packet by %v too much: %v", round, late, err)
	}
}

// runOver is one run of the probe from the lab's client.
func runOver(t *testing.T, network *lab.Lab, shared loadsession.Options, own saturation.Options) *loadtest.Outcome {
	t.Helper()
	kind, err := saturation.NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	var outcome *loadtest.Outcome
	err = network.Client.Do(func() (err error) {
		outcome, err = loadtesttest.RunKind(t.Context(), envWith(&metrictest.Sink{}), target, shared, kind, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// overWiBro emulates the WiBro link, with a load server, and returns the options to reach that.
func overWiBro(t *testing.T) (lab.Profile, *lab.Lab, loadsession.Options) {
	t.Helper()
	profile, err := lab.LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	network := lab.Start(t, lab.Options{Profile: profile})
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: network.Server.Addr4, Do: network.Server.Do})
	shared.DrainTimeout = 5 * time.Second
	return profile, network, shared
}

// wibroRound is one run; late is the largest delay that the emulated link added by mistake.
func wibroRound(t *testing.T) (late time.Duration, err error) {
	profile, network, shared := overWiBro(t)
	own := wibroOptions()
	own.Rate.Reverse = 30e6 / 8 // fills its 880 ms of queue in half a second, not in five
	own.Duration, own.Idle.Duration, own.Skip = 5*time.Second, time.Second, time.Second
	outcome := runOver(t, network, shared, own)
	var wrong []error
	for i, link := range []lab.Link{profile.Forward, profile.Reverse} {
		for _, r := range network.Log(sample.Direction(i)) {
			if r.Outcome == lab.Delivered {
				late = max(late, r.Late())
			}
		}
		d := outcome.Body.(*saturation.Result).Directions[i]
		l := d.Load
		t.Logf("%s: %s (%s); %.0f of %.0f B/s, queue %v, idle %v", d.Direction, l.State, l.Evidence, l.Throughput, l.Offered, deref(l.SizeBytes), deref(l.Idle))
		wrong = append(wrong, hold(d, link))
	}
	return late, errors.Join(wrong...)
}

// hold compares one direction with the link's values.
func hold(d *saturation.Direction, link lab.Link) error {
	l := d.Load
	if l.State != "filled" || l.SizeBytes == nil || l.Idle == nil || l.Queue == nil {
		return fmt.Errorf("%s: %s (%s), queue %v, idle %v", d.Direction, l.State, l.Evidence, deref(l.SizeBytes), deref(l.Idle))
	}
	err := errors.Join(
		near(d.Direction+" rate", l.Throughput, float64(link.Rate)/8, 0.02),
		near(d.Direction+" queue", *l.SizeBytes, float64(link.Queue), 0.05),
	)
	if off := l.Idle.Duration() - link.Delay; off.Abs() > 300*time.Microsecond {
		err = errors.Join(err, fmt.Errorf("%s: idle delay %v, the link's is %v", d.Direction, l.Idle.Duration(), link.Delay))
	}
	return err
}

// A search over the same link: one stream in each direction, whose result is within 3 % of the rate.
func TestSearchOverTheEmulatedWiBroLinkFindsItsRate(t *testing.T) {
	for round := 1; ; round++ {
		err := searchRound(t)
		if err == nil {
			return
		}
		if round == 5 {
			t.Fatal(err)
		}
		t.Logf("round %d: %v", round, err)
	}
}

func searchRound(t *testing.T) error {
	profile, network, shared := overWiBro(t)
	own := wibroOptions()
	own.Mode, own.Rate.Reverse, own.Duration = saturation.ModeSearch, 15e6/8, 8*time.Second
	outcome := runOver(t, network, shared, own)
	if len(outcome.Transfers.([]*udptraffic.Series)) != 2 {
		t.Errorf("%d transfers, want one in each direction", len(outcome.Transfers.([]*udptraffic.Series)))
	}
	var wrong []error
	for i, link := range []lab.Link{profile.Forward, profile.Reverse} {
		d := outcome.Body.(*saturation.Result).Directions[i]
		if d.Sustained == nil {
			wrong = append(wrong, fmt.Errorf("%s: no rate found: %v", d.Direction, outcome.Notes))
			continue
		}
		t.Logf("%s: %.0f bytes/s, the link's %.0f; maximum %.0f", d.Direction, d.Sustained.Received, float64(link.Rate)/8, *d.Maximum)
		wrong = append(wrong, near(d.Direction+" rate", d.Sustained.Received, float64(link.Rate)/8, 0.03))
	}
	return errors.Join(wrong...)
}

func near(what string, got, want, share float64) error {
	if off := math.Abs(got-want) / want; off > share {
		return fmt.Errorf("%s: %.0f, the link's is %.0f: %.1f %% off", what, got, want, 100*off)
	}
	return nil
}

func deref[T any](v *T) any {
	if v == nil {
		return "none"
	}
	return *v
}

func TestRunOverIPv6CountsItsHeadersAndHasItsChecksums(t *testing.T) {
	network := lab.Start(t, lab.Options{})
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: network.Server.Addr6, Do: network.Server.Do})
	shared.Checksum, shared.DrainTimeout = false, 20*time.Second
	own := wibroOptions()
	own.Duration, own.Idle.Duration, own.PacketBytes = time.Second, 0, 1000
	outcome := runOver(t, network, shared, own)
	if outcome.ForwardBytes != 625_000 || outcome.ReverseBytes != 1_499_000 { // at intervals of 666.667 us 1499 fit
		t.Errorf("%d and %d bytes, want those of a second of 5 and of 12 Mb/s", outcome.ForwardBytes, outcome.ReverseBytes)
	}
	plan := outcome.Transfers.([]*udptraffic.Series)[0].Plan
	if payload := plan.Segments[0].PayloadBytes; payload != 952 || plan.NoChecksum {
		t.Errorf("%d bytes of payload in packets of 1000; no checksum: %v", payload, plan.NoChecksum)
	}
	if !strings.Contains(strings.Join(outcome.Notes, "\n"), "checksum: false is for IPv4") {
		t.Errorf("%q", outcome.Notes)
	}
}

// Ten times the link's rate: nine packets of ten are dropped, among them messages and acknowledgments of the
// control connection, for longer than its usual idle time. A user who does not know the link's rate configures such
// a run.
func TestRunOutlastsTenTimesTheLinksRate(t *testing.T) {
	profile, network, shared := overWiBro(t)
	shared.Directions = []string{"forward"}
	shared.DrainTimeout = 2 * time.Second // the queue takes 0.35 s; with it the session's idle timeout is 6.9 s
	own := wibroOptions()
	own.Rate.Forward = 25e6 / 8
	own.Duration, own.Idle.Duration, own.Skip = 20*time.Second, time.Second, time.Second
	l := runOver(t, network, shared, own).Body.(*saturation.Result).Directions[0].Load
	t.Logf("%s (%s): %.0f of %.0f B/s", l.State, l.Evidence, l.Throughput, l.Offered)
	if err := near("rate", l.Throughput, float64(profile.Forward.Rate)/8, 0.02); err != nil {
		t.Error(err)
	}
}
