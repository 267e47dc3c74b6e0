package responder

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
)

func TestTransferBeyondALimitIsRefusedWithItsReason(t *testing.T) {
	s := newSite(t, Options{}, "a rate=10Mbit duration=2s")
	p := s.ready("a", 2_000_000)
	plan := func(payload, burst, bursts int, interval time.Duration) stream.Plan {
		return stream.Plan{Segments: []stream.Segment{{PayloadBytes: payload, Burst: burst, Bursts: bursts, Interval: interval}}}
	}
	for i, c := range []struct {
		name   string
		plan   stream.Plan
		reason control.Reason
		detail string
	}{
		{"too fast", plan(1250, 1, 500, 999*time.Microsecond), control.RateLimit, "10.01001001Mbit"},
		{"as fast as can be", plan(1250, 1, 1000, 0), control.RateLimit, "at once"},
		{"too long", plan(100, 1, 201, 10*time.Millisecond), control.TimeLimit, "takes 2.01s, the token allows 2s"},
		{"more than announced", plan(1250, 1, 1601, 1200*time.Microsecond), control.BadRequest, "of those announced for the session 2000000 are left"},
	} {
		for _, d := range sample.Directions() {
			id := uint16(2*i + int(d) + 1)
			_, err := p.Start(t.Context(), control.Transfer{ID: id, Direction: d, Plan: c.plan, Idle: control.MinIdle})
			if got := refusal(t, err); got.ID != id || got.Reason != c.reason || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s, %s: %+v", c.name, d, got)
			}
		}
	}
	select {
	case <-p.Done():
		t.Fatalf("a refused transfer ended the session: %v", p.Err())
	default:
	}
	if n := s.r.Status().Refused; n[control.RateLimit] != 4 || n[control.TimeLimit] != 2 || n[control.BadRequest] != 2 {
		t.Errorf("refused: %v", n)
	}
	if _, err := p.Start(t.Context(), transferOf(99, sample.Reverse)); err != nil {
		t.Errorf("a transfer within the limits: %v", err)
	}
}

func TestManySmallTransfersDoNotExceedWhatWasAnnounced(t *testing.T) {
	s := newSite(t, Options{}, "a")
	p := s.ready("a", 100_000) // two of 50,000
	for id := uint16(1); id <= 2; id++ {
		if _, err := p.Start(t.Context(), transferOf(id, sample.Reverse)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.Start(t.Context(), transferOf(3, sample.Reverse))
	if got := refusal(t, err); got.Reason != control.BadRequest || !strings.Contains(got.Detail, "0 are left") {
		t.Errorf("%+v", got)
	}
}

// What may leave at once is refilled in days here.
func TestRateIsOfAllSessionsOfATokenInEachDirection(t *testing.T) {
	s := newSite(t, Options{}, "a rate=8bit", "b rate=8bit")
	burst := func(id uint16, d sample.Direction) control.Transfer {
		x := transferOf(id, d)
		x.Plan.Segments[0] = stream.Segment{PayloadBytes: 1000, Burst: 200, Bursts: 1}
		return x
	}
	for _, c := range []struct {
		token   string
		refused bool
	}{{"a", false}, {"a", true}, {"b", false}} {
		p := s.ready(c.token, 1<<20)
		for _, d := range sample.Directions() {
			switch _, err := p.Start(t.Context(), burst(uint16(d+1), d)); {
			case c.refused && refusal(t, err).Reason != control.RateLimit, !c.refused && err != nil:
				t.Errorf("token %s, %s: %v; is to be refused: %v", c.token, d, err, c.refused)
			}
		}
		p.Close()
		eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	}
}

func TestTransferThatMakesNoSenseIsRefused(t *testing.T) {
	s := newSite(t, Options{}, "a")
	p := s.ready("a", 1_000_000)
	long := transferOf(1, sample.Reverse)
	long.Plan.Segments[0].Bursts = 1000
	if _, err := p.Start(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	_, err := p.Start(t.Context(), transferOf(2, sample.Reverse))
	if got := refusal(t, err); got.Reason != control.BadRequest || !strings.Contains(got.Detail, "runs already") {
		t.Errorf("a second one of a direction: %+v", got)
	}
	if err := p.Prove(t.Context(), []byte("x")); refusal(t, err).Reason != control.BadRequest {
		t.Errorf("another address while a transfer runs: %v", err)
	}
	eventually(t, "the session's end", func() bool { return s.r.Status().Ended["protocol"] == 1 })
}

// Our own client would not say such things.
func TestPlanIsCheckedAsAWhole(t *testing.T) {
	s := newSite(t, Options{}, "a")
	p := s.ready("a", 1<<30)
	v, _ := s.r.byID.Load(p.opened.Session)
	for name, spoil := range map[string]func(*control.Transfer){
		"nothing":               func(*control.Transfer) {},
		"the last segment":      func(x *control.Transfer) { x.Plan.Segments[1].PayloadBytes = stream.HeaderBytes - 1 },
		"the number of packets": func(x *control.Transfer) { x.Plan.Segments[1].Bursts = stream.MaxPackets },
		"idle":                  func(x *control.Transfer) { x.Idle = 0 },
	} {
		x := transferOf(1, sample.Reverse)
		x.Plan.Segments = append(x.Plan.Segments, x.Plan.Segments[0])
		spoil(&x)
		if got := v.(*session).permit(&x); (got == nil) != (name == "nothing") || got != nil && (got.ID != 1 || got.Reason != control.BadRequest) {
			t.Errorf("%s is wrong: %+v", name, got)
		}
	}
}

func TestStreamToAnUnprovedAddressIsRefused(t *testing.T) {
	s := newSite(t, Options{}, "a")
	p, err := s.join("a", 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	for id, d := range sample.Directions() {
		_, err := p.Start(t.Context(), transferOf(uint16(id+1), d))
		if got := refusal(t, err); got.Reason != control.Unproved {
			t.Errorf("%s: %+v", d, got)
		}
	}
	if err := p.Prove(t.Context(), []byte(strings.Repeat("x", 34))); refusal(t, err).Reason != control.Unproved {
		t.Errorf("an invented cookie: %v", err)
	}
	<-p.Done()
	if s.r.Status().Sent != 0 {
		t.Error("something was sent")
	}
}

func TestOpenThatMakesNoSenseIsRefused(t *testing.T) {
	s := newSite(t, Options{}, "a")
	good := control.Open{Version: control.Version, Kind: control.Train, Run: "r", Bytes: 1}
	for name, c := range map[string]struct {
		change func(*control.Open)
		reason control.Reason
	}{
		"version":  {func(o *control.Open) { o.Version = 2 }, control.WrongVersion},
		"kind":     {func(o *control.Open) { o.Kind = "flood" }, control.BadRequest},
		"nothing":  {func(o *control.Open) { o.Bytes = 0 }, control.BadRequest},
		"too much": {func(o *control.Open) { o.Bytes = 1 << 60 }, control.BadRequest},
		"run":      {func(o *control.Open) { o.Run = strings.Repeat("r", 101) }, control.BadRequest},
	} {
		client, err := s.dial("a")
		if err != nil {
			t.Fatal(err)
		}
		o := good
		c.change(&o)
		_, err = client.Open(t.Context(), o)
		if got := refusal(t, err); got.Reason != c.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
	p, err := s.join("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(t.Context(), good); refusal(t, err).Reason != control.BadRequest {
		t.Errorf("opened twice: %v", err)
	}
}

func TestDayLimitHoldsAcrossARestartUntilMidnight(t *testing.T) {
	begin := time.Date(2026, 3, 28, 22, 0, 0, 0, time.Local)
	var later atomic.Int64
	s := newSite(t, Options{now: func() time.Time { return begin.Add(time.Duration(later.Load())) }}, "a per-day=200kB")
	p := s.ready("a", 150_000)
	if p.Welcome().Limits.LeftToday != 200_000 {
		t.Errorf("%+v", p.Welcome())
	}
	for id := uint16(1); id <= 3; id++ {
		if _, err := p.Start(t.Context(), transferOf(id, sample.Reverse)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	s.stop()
	s.start()
	_, err := s.join("a", 50_001)
	if got := refusal(t, err); got.Reason != control.DayLimit || got.RetryAfter != 2*time.Hour || !strings.Contains(got.Detail, "50000 of the 200000") {
		t.Errorf("%+v", got)
	}
	if _, err := s.join("a", 200_001); refusal(t, err).RetryAfter != 0 {
		t.Errorf("more than a whole day's is told to come back: %v", err)
	}
	later.Store(int64(3 * time.Hour))
	if _, err := s.join("a", 200_000); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

func TestBudgetOfTheLinkHolds(t *testing.T) {
	s := newSite(t, Options{}, "a")
	if err := s.links.SetLinks([]sched.LinkOptions{{Name: DefaultLink, BudgetBytes: 100_000}}); err != nil {
		t.Fatal(err)
	}
	p := s.ready("a", 60_000)
	if _, err := p.Start(t.Context(), transferOf(1, sample.Reverse)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	p.Close()
	eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	if u := s.links.Usage(DefaultLink); u.Used != 100*528 || u.Reserved != 0 {
		t.Errorf("%+v, want the packets with their headers", u)
	}
	_, err := s.join("a", 60_000)
	if got := refusal(t, err); got.Reason != control.DayLimit || got.RetryAfter <= 0 || !strings.Contains(got.Detail, "link's budget") {
		t.Errorf("%+v", got)
	}
	if _, _, held := s.links.Holder(DefaultLink); held {
		t.Error("a refused session holds the link")
	}
}

func TestSessionsOfATokenAndOfAllAreBounded(t *testing.T) {
	s := newSite(t, Options{MaxSessions: 3}, "a sessions=2", "b")
	var first *control.Client
	for range 2 {
		c, err := s.dial("a")
		if err != nil {
			t.Fatal(err)
		}
		first = c
	}
	_, err := s.dial("a")
	if got := refusal(t, err); got.Reason != control.TooMany || got.RetryAfter <= 0 || !strings.Contains(got.Detail, "the token has 2") {
		t.Errorf("%+v", got)
	}
	if _, err := s.dial("b"); err != nil {
		t.Errorf("another token: %v", err)
	}
	if _, err := s.dial("b"); refusal(t, err).Reason != control.TooMany {
		t.Errorf("beyond all sessions: %v", err)
	}
	first.Close()
	eventually(t, "a place is free", func() bool {
		_, err := s.dial("a")
		return err == nil
	})
}

func TestRevokedTokenStartsNothingMore(t *testing.T) {
	another, _, err := NewToken("a", control.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"its line is gone": "", "its name is another's": another.String(), "its name is a certificate's": "a certificate"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, Options{}, "a")
			p := s.ready("a", 1_000_000)
			if err := os.WriteFile(s.o.TokensFile, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := p.Start(t.Context(), transferOf(1, sample.Reverse))
			if got := refusal(t, err); got.Reason != control.Unauthorised {
				t.Errorf("%+v", got)
			}
			<-p.Done()
			if _, err := s.dial("a"); refusal(t, err).Reason != control.Unauthorised {
				t.Errorf("a new session: %v", err)
			}
		})
	}
}

// Else a token without an octet left could have the link wait for it again and again.
func TestRefusedOpenCountsAsATurn(t *testing.T) {
	s := newSite(t, Options{}, "a per-day=1kB", "b")
	p := s.ready("b", 1)
	if _, err := s.join("a", 2000); refusal(t, err).Reason != control.Busy { // its place
		t.Errorf("%v: the link is taken", err)
	}
	p.Close()
	eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	if _, err := s.join("b", 1); refusal(t, err).Reason != control.Busy {
		t.Errorf("%v: it is a's turn", err)
	}
	if _, err := s.join("a", 2000); refusal(t, err).Reason != control.DayLimit {
		t.Errorf("%v: more than a day's", err)
	}
	if _, err := s.join("a", 2000); refusal(t, err).Reason != control.Busy {
		t.Errorf("%v: it is b's turn", err)
	}
	if _, err := s.join("b", 1); err != nil {
		t.Errorf("b's turn: %v", err)
	}
}

func TestLinkIsForOneTestAtATime(t *testing.T) {
	s := newSite(t, Options{}, "a", "b")
	release, _ := s.links.TryAcquire(DefaultLink, "a test of this host's own")
	_, err := s.join("a", 1000)
	if got := refusal(t, err); got.Reason != control.Busy || got.RetryAfter <= 0 {
		t.Errorf("%+v", got)
	}
	release()
	p := s.ready("a", 1<<30)
	long := transferOf(1, sample.Reverse)
	long.Plan.Segments[0].Bursts = 20_000
	if _, err := p.Start(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	_, err = s.join("b", 1000)
	if got := refusal(t, err); got.Reason != control.Busy || got.RetryAfter < 15*time.Second || got.RetryAfter > 25*time.Second {
		t.Errorf("%+v: want about what the transfer of 20 s still takes", got)
	}
	longer := transferOf(2, sample.Forward)
	longer.Plan.Segments[0].Bursts = 1_000_000
	if _, err := p.Start(t.Context(), longer); err != nil {
		t.Fatal(err)
	}
	_, err = s.join("b", 1000)
	if got := refusal(t, err); got.Reason != control.Busy || got.RetryAfter != 30*time.Second {
		t.Errorf("%+v: want no more than 30 s, whatever a transfer takes", got)
	}
	p.Close()
	eventually(t, "the link is free", func() bool {
		_, err := s.join("b", 1000)
		return err == nil
	})
}
