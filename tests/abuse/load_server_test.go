package abuse

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/net/wire/loadfmt"
	"oneway.example/tests/await"
	"oneway.example/tests/remoteend"
)

func TestGuessedTokensAreRefused(t *testing.T) {
	const guesses = 40
	f := startLoadServer(t, loadcontrol.Limits{})
	for i := range guesses {
		token := ""
		switch i % 4 {
		case 1:
			token = fmt.Sprintf("owt_%043d", i)
		case 2:
			token = f.token[:len(f.token)-1]
		case 3:
			token = strings.ToLower(f.token)
		}
		if _, err := f.dial(token); remoteend.Refusal(t, err).Reason != loadcontrol.Unauthorized {
			t.Fatalf("token %q: got %v", token, err)
		}
	}
	if n := f.r.Status().Refused[loadcontrol.Unauthorized]; n != guesses {
		t.Errorf("counted %d refusals, want %d", n, guesses)
	}
	f.enter(1)
}

func TestClosedSessionCannotBeReplayed(t *testing.T) {
	f := startLoadServer(t, loadcontrol.Limits{})
	first := f.enter(1 << 20)
	cookie, err := first.prove()
	if err != nil {
		t.Fatal(err)
	}
	first.close()
	if !await.Within(20*time.Second, func() bool { return f.r.Status().Sessions == 0 }) {
		t.Fatal("the session has not ended")
	}
	a := newAttacker(t, f.addr())
	a.from(netip.MustParseAddr("127.0.0.1"))
	packets := [][]byte{
		loadfmt.AppendHello(nil, first.Reply.Session, 0, nil),
		loadfmt.AppendChallenge(nil, first.Reply.Session, 0, cookie),
		loadfmt.Header{Type: loadfmt.Data, Transfer: 1, Session: first.Reply.Session, PayloadBytes: 100}.AppendTo(nil),
	}
	for _, p := range packets {
		if err := a.send(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.received(t, 300*time.Millisecond); len(got) != 0 {
		t.Errorf("%d replies to packets of a closed session, want 0", len(got))
	}
	if n := f.r.Status().Discarded[stream.UnknownSession.String()]; n != uint64(len(packets)) {
		t.Errorf("counted %d packets of an unknown session, want %d", n, len(packets))
	}
	second, err := f.visit(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Prove(t.Context(), cookie); remoteend.Refusal(t, err).Reason != loadcontrol.Unproved {
		t.Errorf("cookie of another session: got %v", err)
	}
	<-second.Done()
}

func TestNothingIsSentToASpoofedAddress(t *testing.T) {
	f := startLoadServer(t, loadcontrol.Limits{})
	v, err := f.visit(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	a := newAttacker(t, f.addr())
	rng := seeded(t)
	const spoofed = 300
	for i := range spoofed {
		a.from(netip.AddrFrom4([4]byte{127, 9, byte(rng.IntN(250)), byte(1 + rng.IntN(250))}))
		packet := loadfmt.AppendHello(nil, rng.Uint64(), 0, nil)
		switch i % 3 {
		case 1: // of the valid session, but not a hello
			packet = loadfmt.Header{Type: loadfmt.Data, Transfer: 1, Session: v.Reply.Session, PayloadBytes: 100}.AppendTo(nil)
		case 2: // a hello too short for a challenge of its length
			packet = loadfmt.AppendHello(nil, v.Reply.Session, 0, nil)[:loadfmt.HeaderBytes]
		}
		if err := a.send(packet); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.received(t, 300*time.Millisecond); len(got) != 0 {
		t.Errorf("%d packets were sent to spoofed addresses, want 0", len(got))
	}
	if !await.Within(20*time.Second, func() bool { return f.discarded() == spoofed }) {
		t.Errorf("counted %d of %d packets: %v", f.discarded(), spoofed, f.r.Status().Discarded)
	}
}

// An attacker that knows a session's number can have challenges sent to another address: few, no longer than its own
// packets, and never a stream.
func TestHelloFromAnotherAddressDoesNotMoveTheStream(t *testing.T) {
	f := startLoadServer(t, loadcontrol.Limits{})
	v := f.enter(10 << 20)
	long := reverse(1, 700)
	reception, err := v.session.Expect(1, long.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Start(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	a := newAttacker(t, f.addr())
	a.from(netip.MustParseAddr("127.9.9.9"))
	hello := loadfmt.AppendHello(nil, v.Reply.Session, 0, nil)
	begin := time.Now()
	for range 1000 {
		if err := a.send(hello); err != nil {
			t.Fatal(err)
		}
	}
	got := a.received(t, 300*time.Millisecond)
	if most := 5 + 20*time.Since(begin).Seconds(); float64(len(got)) > most {
		t.Errorf("%d challenges, want at most %.0f", len(got), most)
	}
	for _, b := range got {
		if h, err := loadfmt.Parse(b); err != nil || h.Type != loadfmt.Challenge || len(b) > len(hello) {
			t.Fatalf("a packet of %d bytes, type %v, was sent to an unproved address", len(b), h.Type)
		}
	}
	finished, _, err := v.Wait(t.Context(), 1)
	if err != nil || finished.Error != "" {
		t.Fatalf("finished %+v, error %v", finished, err)
	}
	if n := len(reception.Finish(t.Context(), 700, 20*time.Second).Packets); n < 690 {
		t.Errorf("%d of 700 packets arrived at the proved address", n)
	}
	if err := v.stream(2, 100); err != nil {
		t.Errorf("next stream: %v", err)
	}
	for _, b := range a.received(t, 300*time.Millisecond) {
		if h, err := loadfmt.Parse(b); err != nil || h.Type != loadfmt.Challenge {
			t.Fatalf("a packet of %d bytes, type %v, of the next stream was sent to an unproved address", len(b), h.Type)
		}
	}
}

func TestRandomPacketsAtTheTestPortAreCountedAndGetNoReply(t *testing.T) {
	const burst, bursts = 100, 30
	f := startLoadServer(t, loadcontrol.Limits{})
	a := newAttacker(t, f.addr())
	a.from(netip.MustParseAddr("127.0.0.1"))
	rng := seeded(t)
	model := loadfmt.AppendHello(nil, 1, 0, nil)
	for i := range bursts {
		for range burst {
			b := make([]byte, rng.IntN(1400))
			for at := range b {
				b[at] = byte(rng.Uint32())
			}
			if i%2 == 0 { // half of them start like a valid packet
				copy(b, model[:rng.IntN(len(model))])
			}
			if err := a.send(b); err != nil {
				t.Fatal(err)
			}
		}
		if !await.Within(20*time.Second, func() bool { return f.discarded() == uint64((i+1)*burst) }) {
			t.Fatalf("counted %d of %d packets", f.discarded(), (i+1)*burst)
		}
	}
	if got := a.received(t, 100*time.Millisecond); len(got) != 0 {
		t.Errorf("%d packets got a reply, want 0", len(got))
	}
	f.enter(1)
}

func TestRefusedTransfersUseNoMemory(t *testing.T) {
	const asked = 500
	f := startLoadServer(t, loadcontrol.Limits{BytesPerSecond: 1000})
	v := f.enter(1 << 30)
	before := heap()
	for id := range uint16(asked) {
		_, err := v.Start(t.Context(), reverse(id+1, 100_000))
		if r, ok := errors.AsType[*loadcontrol.Refusal](err); !ok || r.Reason != loadcontrol.RateLimit {
			t.Fatalf("transfer %d: %v", id+1, err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > mostHeapGrowth {
		t.Errorf("the heap grew by %d bytes, above the limit", grown)
	}
	if s := f.r.Status(); s.Sent != 0 || s.Started != 0 || s.Refused[loadcontrol.RateLimit] != asked {
		t.Errorf("%+v", s)
	}
}

func TestGarbageOnTheControlConnectionEndsIt(t *testing.T) {
	f := startLoadServer(t, loadcontrol.Limits{})
	rng := seeded(t)
	for range 30 {
		c, err := tls.Dial("tcp", f.addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: %s\r\nAuthorization: Bearer %s\r\n\r\n", loadcontrol.Path, loadcontrol.Protocol, f.token)
		b := make([]byte, 1+rng.IntN(300))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if rng.IntN(2) == 0 { // a frame of invalid JSON
			b = append([]byte{0, 0, 0, byte(len(b)), 0, 0, 0, 0}, b...)
		}
		_, _ = c.Write(b)
		c.Close()
	}
	if !await.Within(20*time.Second, func() bool { return f.r.Status().Connections == 0 }) {
		t.Errorf("%d connections are open, want 0", f.r.Status().Connections)
	}
	f.enter(1)
}

func TestCrashingClientsLeaveNoSessions(t *testing.T) {
	f := startLoadServer(t, loadcontrol.Limits{BytesPerDay: 1 << 30})
	for i := range 5 {
		var v *testClient
		if !await.Within(20*time.Second, func() (ok bool) {
			var err error
			v, err = f.visit(10 << 20)
			return err == nil
		}) {
			t.Fatalf("crash %d: the link is in use", i)
		}
		_, err := v.prove()
		if err == nil {
			_, err = v.Start(t.Context(), reverse(1, 10_000))
		}
		if err != nil {
			t.Logf("crash %d: the session had ended already: %v", i, err)
		}
		v.close()
	}
	if !await.Within(20*time.Second, func() bool { return f.r.Status().Sessions == 0 }) {
		t.Error("a session is still open")
	}
	if _, _, held := f.links.Holder(loadserver.DefaultLink); held {
		t.Error("the link is still in use")
	}
	f.stop()
	f.run() // and both ends at the same time
	if left := f.enter(1).Welcome().Limits.LeftToday; left < 1<<30-5*5_000_000 || left > 1<<30 {
		t.Errorf("remaining quota is %d bytes", left)
	}
}

// span is the time between the first and the last packet of a stream, by kernel timestamps.
type span struct{ first, last instant.Time }

func TestTwoClientsNeverOverlapOnALink(t *testing.T) {
	const runs = 6
	f := startLoadServer(t, loadcontrol.Limits{Sessions: 64}) // earlier ones end shortly after their clients
	var busy atomic.Int64
	var spans [2][]span
	var clients sync.WaitGroup
	for client := range spans {
		clients.Go(func() {
			for len(spans[client]) < runs && t.Context().Err() == nil {
				s, err := f.stream(60)
				r, refused := errors.AsType[*loadcontrol.Refusal](err)
				switch {
				case err == nil:
					spans[client] = append(spans[client], s)
				case !refused:
					t.Logf("client %d: a run failed: %v", client, err) // a busy host: sessions end after their idle timeout
				case r.Reason != loadcontrol.Busy || r.RetryAfter <= 0:
					t.Errorf("got %+v, want busy with a time to retry", r)
					return
				default:
					busy.Add(1)
				}
			}
		})
	}
	clients.Wait()
	for _, a := range spans[0] {
		for _, b := range spans[1] {
			if a.first <= b.last && b.first <= a.last {
				t.Errorf("streams overlap: %v to %v and %v to %v", a.first, a.last, b.first, b.last)
			}
		}
	}
	if busy.Load() == 0 {
		t.Error("no client was refused: the sessions did not coincide")
	}
}

// stream runs a session with one reverse stream of n packets.
func (f *remoteEnd) stream(n int) (span, error) {
	v, err := f.visit(1 << 20)
	if err != nil {
		return span{}, err
	}
	defer v.close()
	if _, err := v.prove(); err != nil {
		return span{}, err
	}
	t := reverse(1, n)
	reception, err := v.session.Expect(1, t.Plan)
	if err != nil {
		return span{}, err
	}
	if _, err := v.Start(f.t.Context(), t); err != nil {
		return span{}, err
	}
	if _, _, err := v.Wait(f.t.Context(), 1); err != nil {
		return span{}, err
	}
	got := reception.Finish(f.t.Context(), n, time.Second).Packets
	if len(got) == 0 {
		return span{}, errors.New("received no packet")
	}
	return span{got[0].Stamp.At, got[len(got)-1].Stamp.At}, nil
}
