package udptraffic

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/await"
	"oneway.example/tests/remoteend"
)

func TestTransferBeyondALimitIsRefusedWithItsReason(t *testing.T) {
	p := ready(t)
	p.host.limits = loadcontrol.Limits{BytesPerSecond: 1.25e6, Duration: 2 * time.Second}
	p.host.left = 2_000_000
	plan := func(payload, burst, bursts int, interval time.Duration) stream.Plan {
		return stream.Plan{Segments: []stream.Segment{{PayloadBytes: payload, Burst: burst, Bursts: bursts, Interval: interval}}}
	}
	for i, c := range []struct {
		name   string
		plan   stream.Plan
		reason loadcontrol.Reason
		detail string
	}{
		{"too fast", plan(1250, 1, 500, 999*time.Microsecond), loadcontrol.RateLimit, "faster than the token allows: the test sends 10.01 Mb/s of UDP payload, the limit is 10 Mb/s; reduce the test, or let the operator of the load server raise rate= of this token in its tokens_file"},
		{"as fast as can be", plan(1250, 1, 1000, 0), loadcontrol.RateLimit, "the test sends 1.25 MB of UDP payload at once, or too soon after other packets; at the limit of 10 Mb/s, "},
		{"too long", plan(100, 1, 201, 10*time.Millisecond), loadcontrol.TimeLimit, "takes 2.01s; the token allows 2s: reduce the test, or let the operator of the load server raise duration= of this token"},
		{"more than announced", plan(1250, 1, 1601, 1200*time.Microsecond), loadcontrol.BadRequest, "more than was announced"},
	} {
		for _, d := range sample.Directions() {
			id := uint16(2*i + int(d) + 1)
			_, err := p.Start(t.Context(), Start{ID: id, Direction: d, Plan: c.plan, Idle: MinIdle})
			if got := remoteend.Refusal(t, err); got.ID != id || got.Reason != c.reason || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s, %s: %+v", c.name, d, got)
			}
		}
	}
	select {
	case <-p.Done():
		t.Fatalf("a refused transfer ended the session: %v", p.Err())
	default:
	}
	if p.host.left != 2_000_000 {
		t.Errorf("%d bytes are left, want all", p.host.left)
	}
	n := map[loadcontrol.Reason]int{}
	for _, reason := range p.host.refusals {
		n[reason]++
	}
	if n[loadcontrol.RateLimit] != 4 || n[loadcontrol.TimeLimit] != 2 || n[loadcontrol.BadRequest] != 2 {
		t.Errorf("refused: %v", n)
	}
	for _, d := range sample.Directions() { // refused transfers have used no bytes
		x := startOf(uint16(100+d), d)
		x.Plan.Segments = []stream.Segment{{PayloadBytes: 1000, Burst: 250, Bursts: 1}, {PayloadBytes: 100, Burst: 1, Bursts: 1, Pause: time.Second}}
		if _, err := p.Start(t.Context(), x); err != nil {
			t.Errorf("a transfer within the limits: %v", err)
		}
		if got := p.host.spent; len(got) != int(d)+1 || got[d] != x.Plan.Duration() || got[d] < time.Second {
			t.Errorf("ConsumeRate was called for durations %v, want %d of %v", got, d+1, x.Plan.Duration())
		}
	}
}

// A load server that stood still reads the request of a client that is gone: the rate that it took for the transfer is free again.
func TestTransferThatDoesNotBeginIsSettled(t *testing.T) {
	for _, d := range sample.Directions() {
		p := ready(t)
		p.host.mu.Lock()
		p.host.sendErr = net.ErrClosed
		p.host.mu.Unlock()
		if err := p.serving.Handle(words(t, msgStart, startOf(1, d))); err != nil {
			t.Fatal(err)
		}
		await.That(t, d.String()+": the transfer is settled", func() bool {
			p.host.mu.Lock()
			defer p.host.mu.Unlock()
			return p.host.counted[d] == 1
		})
	}
}

func TestInvalidTransferIsRefused(t *testing.T) {
	p := ready(t)
	long := startOf(1, sample.Reverse)
	long.Plan.Segments[0].Bursts = 1000
	if _, err := p.Start(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	_, err := p.Start(t.Context(), startOf(2, sample.Reverse))
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.BadRequest || !strings.Contains(got.Detail, "is in progress") {
		t.Errorf("a second one of a direction: %+v", got)
	}
	if err := p.Prove(t.Context(), []byte("x")); remoteend.Refusal(t, err).Reason != loadcontrol.BadRequest {
		t.Errorf("another address during a transfer: %v", err)
	}
	<-p.Done()
}

// Client.Start would reject such plans.
func TestPlanIsCheckedAsAWhole(t *testing.T) {
	p := ready(t)
	for name, spoil := range map[string]func(*Start){
		"nothing":               func(*Start) {},
		"the last segment":      func(x *Start) { x.Plan.Segments[1].PayloadBytes = stream.HeaderBytes - 1 },
		"the number of packets": func(x *Start) { x.Plan.Segments[1].Bursts = stream.MaxPackets },
		"idle":                  func(x *Start) { x.Idle = 0 },
	} {
		x := startOf(1, sample.Reverse)
		x.Plan.Segments = append(x.Plan.Segments, x.Plan.Segments[0])
		spoil(&x)
		if _, got := p.serving.permit(&x); (got == nil) != (name == "nothing") || got != nil && (got.ID != 1 || got.Reason != loadcontrol.BadRequest) {
			t.Errorf("%s is wrong: %+v", name, got)
		}
	}
}

// TestTransferBeyondTheMemoryLimitIsRefused: a client with a token must not end a load server, or an agent that has one, whose memory
// is limited.
func TestTransferBeyondTheMemoryLimitIsRefused(t *testing.T) {
	p := ready(t)
	x := startOf(1, sample.Reverse)
	n := int64(x.Plan.Packets())
	for memory, permitted := range map[int64]bool{0: true, math.MaxInt64: true, 4 * stream.LoadServerMemory * n: true, 4*stream.LoadServerMemory*n - 1: false} {
		p.serving.remote.memory = memory
		_, got := p.serving.permit(&x)
		if (got == nil) != permitted || got != nil && (got.ID != 1 || got.Reason != loadcontrol.BadRequest || !strings.Contains(got.Detail, "memory limit of the load server")) {
			t.Errorf("%d packets with a limit of %d bytes: %+v", n, memory, got)
		}
	}
}

// A refusal without an ID ends the session.
func TestInvalidMessagesEndTheSession(t *testing.T) {
	p := ready(t)
	if r := p.serving.Handle(words(t, "start", startOf(9, sample.Forward))); r != nil {
		t.Fatal(r)
	}
	for _, m := range []*loadcontrol.TrafficMessage{
		words(t, "reboot", struct{}{}), words(t, "started", Started{ID: 1}), words(t, "prove", 5),
		{Name: "prove"},
		words(t, "start", map[string]any{"id": 1, "root": true}), words(t, "start", startOf(0, sample.Forward)), words(t, "start", startOf(9, sample.Forward)),
		words(t, "sent", Sent{Packets: 1}), words(t, "sent", Sent{ID: 1, Packets: -1}), words(t, "cancel", Cancel{}),
	} {
		if r := p.serving.Handle(m); r == nil || r.ID != 0 || r.Reason != loadcontrol.BadRequest || r.Detail == "" {
			t.Errorf("%s %s: %+v", m.Name, m.Body, r)
		}
	}
	for _, m := range []*loadcontrol.TrafficMessage{words(t, "sent", Sent{ID: 8}), words(t, "cancel", Cancel{ID: 8})} { // of a transfer that has ended
		if r := p.serving.Handle(m); r != nil {
			t.Errorf("%s %s: %+v", m.Name, m.Body, r)
		}
	}
}

func TestStreamToAnUnprovedAddressIsRefused(t *testing.T) {
	p := meet(t, running(t), newHost())
	for id, d := range sample.Directions() {
		_, err := p.Start(t.Context(), startOf(uint16(id+1), d))
		if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.Unproved {
			t.Errorf("%s: %+v", d, got)
		}
	}
	if err := p.Prove(t.Context(), []byte(strings.Repeat("x", 34))); remoteend.Refusal(t, err).Reason != loadcontrol.Unproved {
		t.Errorf("a forged cookie: %v", err)
	}
	<-p.Done()
	if p.host.moved[sample.Reverse] != 0 {
		t.Error("bytes were sent")
	}
}

func TestAddressThatIsNotAllowedIsNotProved(t *testing.T) {
	p := meet(t, running(t), newHost())
	p.session = remoteend.Endpoint(t, netip.MustParseAddr("127.0.0.66")).Join(p.Reply.Session)
	if err := p.prove(); remoteend.Refusal(t, err).Reason != loadcontrol.Unproved || !strings.Contains(err.Error(), "is not allowed") {
		t.Errorf("%v", err)
	}
}

func TestRevokedTokenStartsNothingMore(t *testing.T) {
	p := ready(t)
	p.host.mu.Lock()
	p.host.revoked = true
	p.host.mu.Unlock()
	if _, err := p.Start(t.Context(), startOf(1, sample.Reverse)); remoteend.Refusal(t, err).Reason != loadcontrol.Unauthorized {
		t.Errorf("%v", err)
	}
	<-p.Done()
}

// This occurs if another type of traffic could not listen on the port at first.
func TestClosedSocketIsReplacedAndItsCountsStay(t *testing.T) {
	f := newRemote(t)
	at := f.open()[0].LocalAddr()
	f.open()[0].Close()
	shut, err := f.Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shut)
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ran <- f.Run(ctx) }()
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	discarded := func() (n uint64) {
		for _, k := range f.Discarded() {
			n += k
		}
		return n
	}
	remoteend.Eventually(t, "it receives", func() bool { _, _ = c.Write([]byte("what")); return discarded() > 0 })
	if e := f.at(at); e == nil || e.Stats().Ignored == (stream.Stats{}.Ignored) {
		t.Error("a session did not get the open socket")
	}
	cancel()
	if err := <-ran; err != nil || discarded() == 0 {
		t.Errorf("%v; %d counted after the end", err, discarded())
	}
}

func TestControlAddressWithoutATestPortIsRefused(t *testing.T) {
	f, h := newRemote(t), newHost()
	h.local = netip.MustParseAddrPort("127.0.0.1:1")
	if _, _, r := f.Open(h, nil); r == nil || r.Reason != loadcontrol.BadRequest || r.Detail != "no test port belongs to the address 127.0.0.1:1" {
		t.Errorf("%+v", r)
	}
}

// streaming returns a peer with reverse transfer 1 of 20,000 packets in progress.
func streaming(t *testing.T) (*peer, Start) {
	t.Helper()
	p := ready(t)
	x := startOf(1, sample.Reverse)
	x.Plan.Segments[0].Bursts = 20_000
	if _, err := p.session.Expect(1, x.Plan); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	remoteend.Eventually(t, "packets", func() bool { return p.endpoint.Stats().Accepted > 20 })
	return p, x
}

func TestCanceledTransferReturnsItsRecords(t *testing.T) {
	p, x := streaming(t)
	_ = p.SendMessage(msgCancel, Cancel{ID: 1})
	f, records, err := p.Wait(t.Context(), 1)
	if err != nil || f.Error != "canceled by the client" || f.Sent == nil {
		t.Fatalf("%+v, %v", f, err)
	}
	sent, err := stream.ParseSent(records, stream.MaxPackets)
	if err != nil || len(sent) < 20 || len(sent) >= 20_000 {
		t.Errorf("%d packets, %v", len(sent), err)
	}
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	packets, payload := (&stream.Sent{Packets: sent}).Totals(x.Plan)
	if p.host.begun != 1 || p.host.moved[sample.Reverse] != payload || p.host.headers != int64(28*packets) {
		t.Errorf("%d begun, %v bytes and %d of headers counted; %d packets were sent", p.host.begun, p.host.moved, p.host.headers, packets)
	}
}

func TestForwardStreamWithoutPacketsTimesOut(t *testing.T) {
	p := ready(t)
	p.serving.remote.reported = time.Second
	if _, err := p.Start(t.Context(), startOf(1, sample.Forward)); err != nil {
		t.Fatal(err)
	}
	f, _, err := p.Wait(t.Context(), 1)
	if err != nil || f.Received == nil || f.Error != "the number of packets sent did not arrive: the control connection was interrupted" {
		t.Errorf("%+v, %v", f, err)
	}
}

// After an outage TCP takes as long again to send: the number of packets arrives long after them and the idle timeout, and the
// transfer is complete.
func TestNumberOfPacketsSentMayBeLate(t *testing.T) {
	p := ready(t)
	x := startOf(1, sample.Forward)
	x.Idle = MinIdle
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if _, err := p.session.Send(t.Context(), 1, p.at(), x.Plan, stream.SendOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second) // the outage; its length is what is tested
	if err := p.Sent(t.Context(), 1, x.Plan.Packets()); err != nil {
		t.Fatal(err)
	}
	if f, _, err := p.Wait(t.Context(), 1); err != nil || f.Error != "" {
		t.Errorf("%+v, %v", f, err)
	}
}

// A random bit is equal in 100 numbers with a probability of 2^-93.
func TestNumberOfASessionHas64RandomBits(t *testing.T) {
	var ones, zeros uint64
	for range 100 {
		id := randomID()
		ones, zeros = ones|id, zeros|^id
	}
	if both := ones & zeros; both != math.MaxUint64 {
		t.Errorf("bits %#x are the same in all numbers", ^both)
	}
}

func TestTwoTransfersRunConcurrently(t *testing.T) {
	p := ready(t)
	c := &carrier{client: p.Client, session: p.session, remote: p.at(), clock: static.New(time.Millisecond, metric.Discard{}), drain: remoteend.Timeout}
	short, long := startOf(0, 0).Plan, startOf(0, 0).Plan
	long.Segments = append([]stream.Segment{}, long.Segments...)
	long.Segments[0].Bursts = 500
	begin := time.Now()
	var both sync.WaitGroup
	carry := func(d sample.Direction, plan stream.Plan) {
		both.Go(func() {
			out, err := c.Transfer(t.Context(), d, plan, 0, func(loadtest.Progress) {}, nil)
			if err != nil || out.Cut != "" || len(out.Received.Packets) != plan.Packets() || len(out.Sent.Packets) != plan.Packets() {
				t.Errorf("%s: %+v, %v", d, out, err)
			}
		})
	}
	carry(sample.Reverse, long)
	carry(sample.Forward, short)
	remoteend.Eventually(t, "the shorter one's end", func() bool { return p.host.movedIn(sample.Forward) > 0 })
	if until := p.host.busy(); !until.IsZero() && until.Before(begin.Add(long.Duration())) {
		t.Errorf("busy until %v after the begin; the longer one takes %v", until.Sub(begin), long.Duration())
	}
	both.Wait()
	remoteend.Eventually(t, "nothing runs", func() bool { return !p.serving.running(sample.Forward) && !p.serving.running(sample.Reverse) })
	if until := p.host.busy(); until.After(time.Now().Add(c.drain)) {
		t.Errorf("after both: busy for %v, want %v at most", time.Until(until), c.drain)
	}
	if p.host.movedIn(sample.Forward) != 50_000 || p.host.movedIn(sample.Reverse) != 250_000 || p.host.begun != 2 {
		t.Errorf("%v bytes, %d begun", p.host.moved, p.host.begun)
	}
}

func (h *host) movedIn(d sample.Direction) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved[d]
}

// FuzzHandleMessage passes arbitrary messages of a client to the remote end. The limits allow no transfer, so that
// none runs long.
func FuzzHandleMessage(f *testing.F) {
	for _, m := range []struct {
		name string
		body any
	}{
		{"prove", Prove{Cookie: make([]byte, 34)}}, {"start", startOf(1, 0)}, {"start", adjustedOf(2, 1)}, {"sent", Sent{1, 10}}, {"cancel", Cancel{1}},
	} {
		b, err := json.Marshal(m.body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.name, b)
	}
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		remote, h := newRemote(t), newHost()
		h.local = remote.open()[0].LocalAddr()
		h.conn = nil
		h.left = -1
		s, _, r := remote.Open(discardHost{h}, nil)
		if r != nil {
			t.Fatal(r)
		}
		defer s.Close()
		to := netip.MustParseAddrPort("127.0.0.1:9")
		s.(*serving).to.Store(&to)
		for range 2 {
			if r := s.Handle(&loadcontrol.TrafficMessage{Name: name, Body: body}); r != nil && (r.Check() != nil || r.ID != 0) {
				t.Errorf("%+v", r)
			}
		}
	})
}

// discardHost is a host that sends no messages.
type discardHost struct{ *host }

func (discardHost) SendMessage(string, any, []byte) error { return nil }

func (q discardHost) SendRefusal(string, *loadcontrol.Refusal) error { return nil }
