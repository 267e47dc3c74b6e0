package calibration

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

// recorded is a record in which every field is set.
func recorded(iface string) Record {
	return Record{
		Interface: iface, Driver: "veth", Host: "h", Kernel: "6.18", Date: time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC),
		Setup: Veth, At: "192.0.2.2:862", SharedClock: true, Origin: "kernel", PacketBytes: 172,
		Interval: 2 * time.Millisecond, TrueDelay: 7,
		Forward: Direction{Count: 5000, Systematic: 6 * us, Random: 1 * us, Largest: 30 * us},
		Reverse: Direction{Count: 4999, Systematic: 2 * us, Random: 3 * us, Largest: 9 * us},
	}
}

func TestHalfOfBothStampsErrorsIsTakenForOne(t *testing.T) {
	r := recorded("eth0")
	// S = 4 us: half is 2 us. Largest distances from S: random 3+2, largest 30+2; plus 2 for the division.
	if diff := cmp.Diff(bound.Calibration{Origin: sample.Kernel, Systematic: 2 * us, Random: 7 * us}, r.Errors()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Trusted = true
	want := bound.Calibration{Origin: sample.Kernel, Systematic: 2 * us, Random: 7 * us, Trusted: true, Largest: 34 * us}
	if diff := cmp.Diff(want, r.Errors()); diff != "" {
		t.Errorf("trusted (-want +got):\n%s", diff)
	}
}

func TestOffsetOfTwoClocksCancelsInTheSystematicErrorAndWidensTheRandomOne(t *testing.T) {
	r := recorded("eth0")
	r.Setup, r.SharedClock = Peer, false
	r.Forward.Systematic += 500 * us
	r.Reverse.Systematic -= 500 * us
	e := r.Errors()
	if e.Systematic != 2*us {
		t.Errorf("systematic %v", e.Systematic)
	}
	if e.Random != 505*us+6*us {
		t.Errorf("random %v", e.Random)
	}
}

// link draws delays of a link between two hosts with known errors of the timestamps.
type link struct {
	rng                        *rand.Rand
	true, offset               time.Duration
	sentHere, receivedThere    time.Duration // scales of the errors
	sentThere, receivedHere    time.Duration
	localForward, localReverse []time.Duration // errors of the local timestamps, as drawn
	forwardDelay, reverseDelay []observation
}

func (l *link) draw(scale time.Duration) time.Duration {
	return scale/2 + time.Duration(l.rng.ExpFloat64()*float64(scale)/2)
}

func (l *link) packet() {
	a, b, c, d := l.draw(l.sentHere), l.draw(l.receivedThere), l.draw(l.sentThere), l.draw(l.receivedHere)
	l.localForward, l.localReverse = append(l.localForward, a), append(l.localReverse, d)
	l.forwardDelay = append(l.forwardDelay, observation{delay: l.true + l.offset + a + b})
	l.reverseDelay = append(l.reverseDelay, observation{delay: l.true - l.offset + c + d})
}

func TestEveryLocalTimestampIsWithinTheLargestError(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	scale := func() time.Duration { return time.Duration(rng.IntN(20_000)) }
	for range 200 {
		l := &link{rng: rng, true: scale(), sentHere: scale(), receivedThere: scale(), sentThere: scale(), receivedHere: scale()}
		for range 300 {
			l.packet()
		}
		// summarize sorts, so the local errors are no longer those of the same index.
		r := Record{Origin: "kernel", SharedClock: true, Trusted: true, Forward: summarize(l.forwardDelay, l.true), Reverse: summarize(l.reverseDelay, l.true)}
		e := r.Errors()
		random := 0
		for _, local := range append(l.localForward, l.localReverse...) {
			if off := (local - e.Systematic).Abs(); off > e.Largest+2 { // 2 ns of rounding
				t.Fatalf("the error of a timestamp is %v more than %v, largest %v (%+v)", off, e.Systematic, e.Largest, l)
			} else if off <= e.Random+2 {
				random++
			}
		}
		if share := float64(random) / 600; share < 0.95 {
			t.Fatalf("%.3f of the timestamps within the random error %v", share, e.Random)
		}
	}
}

func TestRandomErrorHoldsWithClocksThatDisagree(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	scale := func() time.Duration { return time.Duration(rng.IntN(20_000)) }
	for range 200 {
		l := &link{rng: rng, sentHere: scale(), receivedThere: scale(), sentThere: scale(), receivedHere: scale(), offset: scale() - 10_000}
		for range 300 {
			l.packet()
		}
		r := Record{Origin: "kernel", Forward: summarize(l.forwardDelay, 0), Reverse: summarize(l.reverseDelay, 0)}
		e, within := r.Errors(), 0
		for _, local := range append(l.localForward, l.localReverse...) {
			if (local - e.Systematic).Abs() <= e.Random+2 {
				within++
			}
		}
		if share := float64(within) / 600; share < 0.95 {
			t.Fatalf("%.3f of the timestamps within %v of %v (%+v)", share, e.Random, e.Systematic, r)
		}
	}
}

func TestAnInvalidRecordIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Record){
		"interface is empty": func(r *Record) { r.Interface = "" },
		"host has 300 bytes": func(r *Record) {
			r.Host = strings.Repeat("x", 300)
		},
		"kernel is empty":                     func(r *Record) { r.Kernel = "" },
		`setup is "wifi"; it must be`:         func(r *Record) { r.Setup = "wifi" },
		"shared_clock is false":               func(r *Record) { r.SharedClock = false },
		`origin is "user"`:                    func(r *Record) { r.Origin = "user" },
		"date is 0001-01-01":                  func(r *Record) { r.Date = time.Time{} },
		"interval_ns is -1":                   func(r *Record) { r.Interval = -1 },
		"payload_bytes is 0":                  func(r *Record) { r.PacketBytes = 0 },
		"forward: count is 199":               func(r *Record) { r.Forward.Count = 199 },
		"reverse: systematic_ns is -2":        func(r *Record) { r.Reverse.Systematic = -2 * time.Second },
		"reverse: random_ns is -1":            func(r *Record) { r.Reverse.Random = -1 },
		"forward: largest_ns is":              func(r *Record) { r.Forward.Largest = time.Hour },
		"trusted, but with 2999 packets":      func(r *Record) { r.Trusted, r.Reverse.Count = true, 2999 },
		"trusted, but the ends had clocks":    func(r *Record) { r.Trusted, r.SharedClock, r.Setup = true, false, Peer },
		"trusted, but the timestamps were of": func(r *Record) { r.Trusted, r.Origin = true, "hardware" },
		"trusted, but the systematic error":   func(r *Record) { r.Trusted, r.Forward.Systematic = true, -1 },
	} {
		r := recorded("eth0")
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(&r)
		if err := r.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err := (&Table{}).Put(r); err == nil {
			t.Errorf("%q was put into a table", want)
		}
	}
}
