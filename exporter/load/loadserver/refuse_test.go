package loadserver

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/remoteend"
)

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
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.BadRequest || !strings.Contains(got.Detail, "0 of those announced for the session are left") {
		t.Errorf("%+v", got)
	}
}

func TestInvalidOpenIsRefused(t *testing.T) {
	s := newSite(t, Options{}, "a")
	good := loadcontrol.Open{Traffic: udptraffic.Name, Test: "train", Run: "r", Bytes: 1, Duration: time.Second}
	for name, c := range map[string]struct {
		change func(*loadcontrol.Open)
		reason loadcontrol.Reason
		detail string
	}{
		"traffic":  {func(o *loadcontrol.Open) { o.Traffic = "flood" }, loadcontrol.WrongVersion, `traffic "flood" is unknown to this load server, oneway 1.2.3; it has udp`},
		"nothing":  {func(o *loadcontrol.Open) { o.Bytes = 0 }, loadcontrol.BadRequest, "bytes is 0; it must be the most that the session moves"},
		"too much": {func(o *loadcontrol.Open) { o.Bytes = 1 << 60 }, loadcontrol.BadRequest, "bytes is 1152921504606846976"},
		"no time":  {func(o *loadcontrol.Open) { o.Duration = 0 }, loadcontrol.BadRequest, "duration is 0s; it must be"},
		"run":      {func(o *loadcontrol.Open) { o.Run = strings.Repeat("r", 101) }, loadcontrol.BadRequest, "the run has 101 bytes"},
		"test":     {func(o *loadcontrol.Open) { o.Test = strings.Repeat("t", 101) }, loadcontrol.BadRequest, "the test 101"},
	} {
		client, err := s.dial("a")
		if err != nil {
			t.Fatal(err)
		}
		o := good
		c.change(&o)
		_, err = client.Open(t.Context(), o, nil)
		if got := remoteend.Refusal(t, err); got.Reason != c.reason || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	p, err := s.join("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Open(t.Context(), good, nil) // a second one ends the session
	<-p.Done()
	if got := remoteend.Refusal(t, p.Err()); got.Reason != loadcontrol.BadRequest || got.Detail != "the session is open already" {
		t.Errorf("opened twice: %v", got)
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
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	s.stop()
	s.start()
	_, err := s.join("a", 50_001)
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.DayLimit || got.RetryAfter != 2*time.Hour || !strings.Contains(got.Detail, "the run may need 50001 B; the token has 50 kB left of its 200 kB a day: reduce the test, or let the operator of the load server raise per-day=") {
		t.Errorf("%+v", got)
	}
	if _, err := s.join("a", 200_001); remoteend.Refusal(t, err).RetryAfter != 0 {
		t.Errorf("more than the limit of a day: %v, want no retry", err)
	}
	later.Store(int64(3 * time.Hour))
	if _, err := s.join("a", 200_000); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

func TestQuotaOfTheLinkHolds(t *testing.T) {
	s := newSite(t, Options{}, "a")
	if err := s.links.SetLinks([]link.Options{{Name: DefaultLink, QuotaBytes: 100_000}}); err != nil {
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
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	if u := s.links.Usage(DefaultLink); u.Used != 100*528 || u.Reserved != 0 {
		t.Errorf("%+v, want the packets with headers", u)
	}
	_, err := s.join("a", 60_000)
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.DayLimit || got.RetryAfter <= 0 || !strings.Contains(got.Detail, "the quota of the load server's link has 47.2 kB left today") {
		t.Errorf("%+v", got)
	}
	if _, _, held := s.links.Holder(DefaultLink); held {
		t.Error("a refused session holds the link")
	}
}

func TestSessionsOfATokenAndOfAllAreBounded(t *testing.T) {
	s := newSite(t, Options{MaxSessions: 3}, "a sessions=2", "b")
	var first *loadcontrol.Client
	for range 2 {
		c, err := s.dial("a")
		if err != nil {
			t.Fatal(err)
		}
		first = c
	}
	_, err := s.dial("a")
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.TooMany || got.RetryAfter <= 0 || !strings.Contains(got.Detail, "the token has 2") {
		t.Errorf("%+v", got)
	}
	if _, err := s.dial("b"); err != nil {
		t.Errorf("another token: %v", err)
	}
	if _, err := s.dial("b"); remoteend.Refusal(t, err).Reason != loadcontrol.TooMany {
		t.Errorf("above MaxSessions: %v", err)
	}
	first.Close()
	remoteend.Eventually(t, "a place is free", func() bool {
		_, err := s.dial("a")
		return err == nil
	})
}

func TestRevokedTokenStartsNothingMore(t *testing.T) {
	another, _, err := NewToken("a", loadcontrol.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"its line is removed": "", "its name has another hash": another.String(), "its name has a certificate": "a certificate"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, Options{}, "a")
			p := s.ready("a", 1_000_000)
			if err := os.WriteFile(s.o.TokensFile, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := p.Start(t.Context(), transferOf(1, sample.Reverse))
			if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.Unauthorized {
				t.Errorf("%+v", got)
			}
			<-p.Done()
			remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["revoked"] == 1 })
			if _, err := s.dial("a"); remoteend.Refusal(t, err).Reason != loadcontrol.Unauthorized {
				t.Errorf("a new session: %v", err)
			}
		})
	}
}

// Otherwise a token without bytes left could keep the link reserved again and again.
func TestRefusedOpenCountsAsATurn(t *testing.T) {
	s := newSite(t, Options{}, "a per-day=1kB", "b")
	p := s.ready("b", 1)
	if _, err := s.join("a", 2000); remoteend.Refusal(t, err).Reason != loadcontrol.Busy { // waits, and has a place
		t.Errorf("%v, want busy", err)
	}
	p.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	if _, err := s.join("b", 1); remoteend.Refusal(t, err).Reason != loadcontrol.Busy {
		t.Errorf("%v, want busy: it is a's turn", err)
	}
	if _, err := s.join("a", 2000); remoteend.Refusal(t, err).Reason != loadcontrol.DayLimit {
		t.Errorf("%v, want day_limit", err)
	}
	if _, err := s.join("a", 2000); remoteend.Refusal(t, err).Reason != loadcontrol.Busy {
		t.Errorf("%v, want busy: it is b's turn", err)
	}
	if _, err := s.join("b", 1); err != nil {
		t.Errorf("b's turn: %v", err)
	}
}

func TestOpenSessionFillsItsLinkUntilItsEnd(t *testing.T) {
	s := newSite(t, Options{}, "a")
	c, err := s.dial("a")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.links.Uses(); len(got) > 0 {
		t.Errorf("a connection without a session fills %v", got)
	}
	p, err := s.open(c, 1000)
	if err != nil {
		t.Fatal(err)
	}
	u := link.Use{Link: DefaultLink, Peer: p.Local().Addr()}
	if at := s.links.Uses()[u]; at.IsZero() || at.Equal(s.links.Uses()[u]) {
		t.Errorf("an open session does not fill the link of %v", s.links.Uses())
	}
	p.Close()
	remoteend.Eventually(t, "the session no longer fills the link", func() bool {
		at := s.links.Uses()[u]
		return !at.IsZero() && at.Equal(s.links.Uses()[u])
	})
}

func TestLinkIsForOneTestAtATime(t *testing.T) {
	s := newSite(t, Options{}, "a", "b")
	release, _ := s.links.TryAcquire(DefaultLink, "a test of this host")
	_, err := s.join("a", 1000)
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.Busy || got.RetryAfter <= 0 {
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
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.Busy || got.RetryAfter < 15*time.Second || got.RetryAfter > 25*time.Second {
		t.Errorf("%+v, want about the rest of the transfer of 20 s", got)
	}
	longer := transferOf(2, sample.Forward)
	longer.Plan.Segments[0].Bursts = 1_000_000
	if _, err := p.Start(t.Context(), longer); err != nil {
		t.Fatal(err)
	}
	_, err = s.join("b", 1000)
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.Busy || got.RetryAfter != 30*time.Second {
		t.Errorf("%+v, want at most 30 s", got)
	}
	p.Close()
	remoteend.Eventually(t, "the link is free", func() bool {
		_, err := s.join("b", 1000)
		return err == nil
	})
}
