package tcpdelay

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/tests/testseed"
)

// world is a path between a client and a server, with or without a proxy at a part of its delay.
type world struct {
	there, back time.Duration // of TCP, without queue
	udp         time.Duration // that UDP takes longer
	queue       time.Duration
	proxied     bool
	at          float64 // where the proxy stands, from 0 to 1
	buffer      time.Duration
	rewrites    bool // the SYN
	timestamps  bool
	offset      time.Duration // of the clocks, within bound
	bound       time.Duration // 0: not synchronized
	reverse     bool          // the server sends
	single      bool          // the run has one direction
}

// evidence simulates a flow in each direction over the path, and returns what is known of the one of w.reverse. In a run of
// one direction the acknowledgments of the other one are not known.
func (w *world) evidence(rng *rand.Rand) Evidence {
	e, lag := w.flow(rng)
	if w.single {
		return e
	}
	other := *w
	other.reverse, other.offset = !w.reverse, -w.offset
	_, otherLag := other.flow(rng)
	e.AckRoundTrip, e.AckKnown = lag+otherLag, true
	return e
}

// flow simulates one flow.
func (w *world) flow(rng *rand.Rand) (e Evidence, lag time.Duration) {
	const start = instant.Time(1_700_000_000_000_000_000)
	there, back, at := w.there, w.back, w.at
	if w.reverse {
		there, back, at = back, there, 1-at
	}
	var f Flow
	now, minRTT := start, time.Hour
	for i := range 60 {
		now = now.Add(time.Duration(rng.Int64N(int64(5 * time.Millisecond))))
		queue := time.Duration(rng.Int64N(int64(w.queue) + 1))
		arrived := now.Add(there + queue + w.buffer)
		acked := arrived.Add(back)
		if w.proxied {
			acked = now.Add(time.Duration(float64(there)*at) + queue + time.Duration(float64(back)*at))
		}
		minRTT = min(minRTT, acked.Sub(now))
		wait := time.Duration(rng.Int64N(int64(2 * time.Millisecond))) // since the receiver found the socket empty
		f.Sent = append(f.Sent, tcpstamp.Sent{Offset: int64(i+1) * tcpstamp.Grid, Scheduled: now, First: now, Last: now, Acked: acked, Transmissions: 1})
		f.Received = append(f.Received, tcpstamp.Received{
			Offset: int64(i+1) * tcpstamp.Grid, At: arrived.Add(w.offset), NotBefore: arrived.Add(w.offset - wait), Read: arrived.Add(w.offset + 50*time.Microsecond),
		})
	}
	clocks := sample.Bound{Error: w.bound, Reason: sample.OK}
	if w.bound == 0 {
		clocks = sample.Bound{Reason: sample.LocalUnsynchronized}
	}
	r := Evaluate([]Flow{f}, Errors{Clocks: clocks})
	client := &tcpstamp.Handshake{Timestamps: w.timestamps, OwnScale: 7, PeerScale: 9, TSval: rng.Uint32(), TSvalError: 20}
	server := &tcpstamp.Handshake{SYN: true, Timestamps: w.timestamps, OwnScale: 9, PeerScale: 7, TSval: client.TSval + 3}
	if w.rewrites {
		server.TSval = rng.Uint32()
	}
	e = Evidence{
		Stamped: 60, Tested: r.Tested, Early: r.Early, Lead: r.Lead, Client: client, Server: server, Synchronized: w.bound > 0,
		TCPRoundTrip: minRTT, UDPRoundTrip: w.there + w.back + w.udp,
		ReceiverRoundTrip: w.there + w.back,
		// The least queue of the samples is below 0.4 of the path: more could pass for a shorter round trip.
		DataRoundTrip: w.there + w.back + time.Duration(rng.Int64N(min(int64(w.queue)/20, int64(w.there+w.back)*4/10)+1)),
	}
	if w.proxied {
		e.ReceiverRoundTrip = time.Duration(float64(w.there+w.back) * (1 - at))
	}
	return e, r.Lag
}

// Whatever the path: split is never said of an end-to-end connection, nor the contrary, and most verdicts are told.
func TestVerdictIsNeverWrong(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	told, proxies, all := 0, 0, 0
	for range 4000 {
		ms := func(most int64) time.Duration { return time.Duration(rng.Int64N(most*int64(time.Millisecond)) + 1) }
		w := world{
			there: ms(80), back: ms(80), queue: ms(100), proxied: rng.IntN(2) == 0, at: rng.Float64(), timestamps: rng.IntN(10) > 0, reverse: rng.IntN(2) == 0, single: rng.IntN(4) == 0,
		}
		if rng.IntN(4) > 0 {
			w.bound = ms(3)
			w.offset = time.Duration(float64(w.bound) * (2*rng.Float64() - 1))
		}
		if w.proxied {
			w.rewrites = true
			if rng.IntN(2) == 0 {
				w.buffer = ms(200)
			}
		} else {
			w.rewrites = rng.IntN(4) == 0 // a SYN proxy, or a firewall that rewrites timestamps
			if rng.IntN(4) == 0 {
				w.udp = ms(100) // another route
			}
		}
		e := w.evidence(rng)
		v := e.Judge()
		if v.State == Split && !w.proxied || v.State == EndToEnd && w.proxied {
			t.Fatalf("%+v: verdict %+v\n%+v", w, v, e)
		}
		if (v.State == Unknown) != (v.Reason != "") || (v.State == Unknown) != (v.By == "") {
			t.Fatalf("verdict %+v", v)
		}
		all++
		if w.proxied {
			proxies++
		}
		if v.State != Unknown {
			told++
		}
	}
	t.Logf("%d of %d told, %d with a proxy", told, all, proxies)
	if told < all*3/4 {
		t.Errorf("%d of %d told, want most", told, all)
	}
}

// A host on the path that acknowledges bytes itself, with the client's own SYN, is told by the acknowledgments.
func TestEarlyAcknowledgmentsProveASplitWhateverTheHandshake(t *testing.T) {
	w := world{there: 30 * time.Millisecond, back: 30 * time.Millisecond, proxied: true, at: 0.2, timestamps: true, bound: time.Millisecond}
	e := w.evidence(rand.New(rand.NewPCG(testseed.Of(t), 1)))
	if e.Identity() != SameSYN {
		t.Fatalf("identity %v", e.Identity())
	}
	if v := e.Judge(); v.State != Split || e.Lead <= 0 || e.Lead > 60*time.Millisecond {
		t.Errorf("%+v, lead %v", v, e.Lead)
	}
	// Only two of them, and acknowledgments of both directions that come too early, beside the client's SYN: no verdict.
	e.Early = 2
	if v := e.Judge(); v.State != Unknown || v.Reason != Contradiction {
		t.Errorf("two early acknowledgments, and those of both directions: %+v", v)
	}
	e.AckKnown = false
	if v := e.Judge(); v.State != Unknown || v.Reason != FewSamples {
		t.Errorf("two early acknowledgments: %+v", v)
	}
}

func TestWindowScalesThatDifferAreARewrittenSYN(t *testing.T) {
	a, b := &tcpstamp.Handshake{OwnScale: 7, PeerScale: 7}, &tcpstamp.Handshake{OwnScale: 7, PeerScale: 7}
	e := Evidence{Client: a, Server: b}
	if got := e.Identity(); got != IdentityUnknown {
		t.Errorf("without timestamps: %v", got)
	}
	b.PeerScale = 8
	if got := e.Identity(); got != RewrittenSYN {
		t.Errorf("scale 7 arrived as 8: %v", got)
	}
	*a, *b = tcpstamp.Handshake{OwnScale: -1, PeerScale: -1}, tcpstamp.Handshake{OwnScale: -1, PeerScale: 7}
	if got := e.Identity(); got != IdentityUnknown {
		t.Errorf("a server without window scale: %v", got)
	}
	b.OwnScale = 7
	if got := e.Identity(); got != RewrittenSYN {
		t.Errorf("only the server has a window scale: %v", got)
	}
	if e.Client = nil; e.Identity() != IdentityUnknown {
		t.Error("one end says all")
	}
}

// A firewall may rewrite timestamps where UDP takes a longer way; the delays of TCP data tell that it is no proof of a split,
// and the acknowledgments of both directions that there is none.
func TestRewrittenSYNWithUDPOnALongerWayIsNotSplit(t *testing.T) {
	w := world{there: 10 * time.Millisecond, back: 10 * time.Millisecond, udp: 40 * time.Millisecond, rewrites: true, timestamps: true, bound: time.Millisecond, single: true}
	e := w.evidence(rand.New(rand.NewPCG(testseed.Of(t), 1)))
	if v := e.Judge(); v.State != Unknown || v.Reason != Contradiction {
		t.Errorf("%+v", v)
	}
	w.single = false
	e = w.evidence(rand.New(rand.NewPCG(testseed.Of(t), 1)))
	if v := e.Judge(); v.State != EndToEnd {
		t.Errorf("with acknowledgments of both directions: %+v", v)
	}
}

// The sum of both directions is known to the error of the clocks' drift: within that, nothing is decided by it.
func TestAcknowledgmentsOfBothDirectionsHaveAnError(t *testing.T) {
	e := Evidence{AckKnown: true, AckRoundTrip: 9 * time.Millisecond, AckError: time.Millisecond, UDPRoundTrip: 10 * time.Millisecond}
	if v := e.Judge(); v.State != EndToEnd {
		t.Errorf("a round trip of acknowledgments of 9 ms: %+v", v)
	}
	if e.AckRoundTrip = 0; e.Judge().State != Split {
		t.Errorf("none: %+v", e.Judge())
	}
	if e.AckError = 10 * time.Millisecond; e.Judge().State != Unknown {
		t.Errorf("with an error of a round trip: %+v", e.Judge())
	}
	e.AckError, e.AckKnown = 0, false
	if e.Judge().State != Unknown {
		t.Errorf("unknown: %+v", e.Judge())
	}
}
