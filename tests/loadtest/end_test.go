package loadtest

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/traffic/udp"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
)

// The limits of these tests are specified: a session ends at both ends within a second of its connection's
// end (package loadcontrol), or after an Outage without expected packets of the peer (package traffic/udp);
// and no stream is sent to an address without a hello for 3 s.

func TestClientsThatStartTogetherNeverOverlap(t *testing.T) {
	s := newSite(t, overSlow())
	clients := []*process{s.saturation(t, "--max-wait=60s"), s.saturation(t, "--max-wait=60s")}
	for _, c := range clients {
		if r := c.finish(t, 0); r.Outcome != "completed" || len(r.Transfers) != 2 {
			t.Errorf("run %s: %s, %s: %s", r.Run, r.Outcome, r.Reason, r.Error)
		}
	}
	all := spans(s.drained(t))
	if len(all) != len(clients) {
		t.Errorf("%d sessions were on the link, want %d", len(all), len(clients))
	}
	disjoint(t, all)
	s.loadServer.Signal(t, syscall.SIGTERM)
	s.loadServer.Wait(t)
	said := s.loadServer.Stdout.String()
	t.Logf("the load server: %s", said)
	if !strings.Contains(said, "\n2 sessions, 4 transfers,") || !strings.Contains(said, "refused, busy") {
		t.Error("want 2 sessions of 2 transfers each, and one refused as busy")
	}
}

func TestClientOfAKilledLoadServerEndsWithTheReason(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	killed := s.loadServer.Kill(t)
	r := c.finish(t, 1)
	took := c.Ended.Sub(killed)
	t.Logf("the client ended %v later: %s", took, &c.Stderr)
	punctual(t, "the client's end", took, 2*time.Second)
	if r.Outcome != "incomplete" || r.Reason != "session_lost" {
		t.Errorf("%s, %s", r.Outcome, r.Reason)
	}
	if said := c.Stderr.String(); !strings.Contains(said, s.at.String()) || !strings.Contains(said, "session") || strings.Count(said, "\n") != 1 {
		t.Errorf("stderr of the client is %q; want one line with the session and the load server", said)
	}
	s.nothingAfter(t, killed)
	// A restarted load server serves at once.
	s.respond(t)
	s.saturation(t, "--direction=reverse", "--max-wait=0s").finish(t, 0)
}

func TestLoadServerStopsForAKilledClientAndServesTheNext(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	killed := c.Kill(t)
	s.freeAgain(t, killed, time.Second, "lost")
}

func TestLoadServerStopsForAClientThatIsCutOff(t *testing.T) {
	const hears = 4 * time.Second // 3 s of consent, and 1 s for a busy host
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t)
	r := c.finish(t, 1)
	t.Logf("the client ended %v later: %s", c.Ended.Sub(cut), &c.Stderr)
	// It sends nothing, and waits for its idle timeout.
	if took := c.Ended.Sub(cut); took > udp.Outage+5*time.Second {
		t.Errorf("the client ended after %v", took)
	}
	if r.Reason != "session_lost" {
		t.Errorf("%s, %s", r.Outcome, r.Reason)
	}
	s.freeAgain(t, cut, hears, "silent")
}

// With a drain timeout for a queue of many seconds, the load server detects the end of the client by its
// missing hello packets.
func TestLoadServerMissesTheHellosOfAClientThatIsCutOff(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload, "--drain-timeout=12s")
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t)
	c.Signal(t, syscall.SIGSTOP) // its socket stays open: no ICMP error
	defer c.Kill(t)
	s.freeAgain(t, cut, 4*time.Second, "silent")
}

// A radio link that stalls for seconds, as recorded ones do, ends no run. A load server that sends pauses
// its stream, and the packets not sent are not lost.
func TestRunContinuesAfterAnOutage(t *testing.T) {
	const outage = 6 * time.Second
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=12s", overload)
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t)
	<-time.After(outage)
	s.mend(t)
	mended := time.Now()
	r := c.finish(t, 0)
	if r.Outcome != "completed" || len(r.Transfers) != 1 {
		t.Fatalf("%s, %s: %s", r.Outcome, r.Reason, r.Error)
	}
	counts := r.Transfers[0].Counts
	t.Logf("%+v; %q", counts, r.Notes)
	if counts.Withheld == 0 || counts.Sent != counts.Arrived+counts.Lost {
		t.Errorf("%+v: want withheld packets, and none lost", counts)
	}
	if len(r.Notes) == 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "received nothing from this end") {
		t.Errorf("notes are %q; want the reason why packets were not sent", r.Notes)
	}
	blind, late := 0, 0
	s.drained(t)
	for _, p := range s.network.Log(sample.Reverse) {
		switch at := p.Entry.Time(); {
		case at.Before(cut.Add(4 * time.Second)):
		case at.Before(mended):
			blind++
		default:
			late++
		}
	}
	if blind > 0 || late == 0 {
		t.Errorf("%d packets entered the link after 4 s of the outage, and %d after it; want none, and the rest of the stream", blind, late)
	}
}

// A client that sends receives nothing from its load server, and continues as planned; but it does not
// hold the link of the load server.
func TestLoadServerIsFreeAfterAClientThatIsCutOffWhileItSends(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=forward", "--duration=20s", "--rate-forward=12Mbit")
	s.underLoad(t, c, sample.Forward)
	cut := s.cut(t)
	defer c.Kill(t)
	time.Sleep(time.Until(cut.Add(udp.Outage + 2*time.Second))) // fixed wait: the absence of packets has no event
	s.mend(t)
	s.saturation(t, "--direction=reverse", "--max-wait=0s").finish(t, 0)
	s.ended(t, "silent", "1")
}

// The client's messages still arrive: the load server receives the end of the session.
func TestClientEndsTheSessionWithALoadServerThatIsCutOff(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=30s", overload)
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t, sample.Reverse)
	r := c.finish(t, 1)
	took := c.Ended.Sub(cut)
	t.Logf("the client ended %v later: %s", took, &c.Stderr)
	if took < udp.Outage-2*time.Second || took > udp.Outage+5*time.Second || r.Outcome != "incomplete" || r.Reason != "session_lost" {
		t.Errorf("%s, %s after %v", r.Outcome, r.Reason, took)
	}
	if said := c.Stderr.String(); !strings.Contains(said, s.at.String()) {
		t.Errorf("stderr of the client is %q; want one line with the load server", said)
	}
	s.mend(t)
	s.saturation(t, "--direction=reverse", "--max-wait=5s").finish(t, 0)
	s.ended(t, "closed", "1", "2") // the load server may report that of the next client
}

// cut drops all packets that enter the link from now on, in these directions or both, silently.
func (s *site) cut(t *testing.T, directions ...sample.Direction) time.Time {
	t.Helper()
	if len(directions) == 0 {
		directions = sample.Directions()
	}
	for _, d := range directions {
		l := s.mended(d)
		l.Loss = 1
		s.link(t, d, l)
	}
	return time.Now()
}

func (s *site) mend(t *testing.T) {
	t.Helper()
	for _, d := range sample.Directions() {
		s.link(t, d, s.mended(d))
	}
}

func (*site) mended(d sample.Direction) lab.Link {
	if d == sample.Forward {
		return slow().Forward
	}
	return slow().Reverse
}

func (s *site) link(t *testing.T, d sample.Direction, l lab.Link) {
	t.Helper()
	if err := s.network.SetLink(d, l); err != nil {
		t.Fatal(err)
	}
}

// punctual fails if an event took as long as without the cause under test: the stream takes 20 s. Exceeding
// the specified limit is reported as imprecision.
func punctual(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if took > 10*time.Second {
		t.Errorf("%s was after %v", what, took)
	}
	if took > limit {
		precision.Missed(t, fmt.Errorf("%s was after %v, want at most %v", what, took, limit))
	}
}

// freeAgain fails if the load server continues to send after the end of the session, or is not free for the
// next client. how is the reason that the load server reports.
func (s *site) freeAgain(t *testing.T, since time.Time, within time.Duration, how string) {
	t.Helper()
	limit := since.Add(within)
	if how == "silent" { // the session is longer than the stream, as the client may return
		limit = since.Add(udp.Outage + 2*time.Second)
	}
	time.Sleep(time.Until(limit)) // fixed wait: the absence of packets has no event
	s.mend(t)
	next := s.saturation(t, "--direction=reverse", "--max-wait=20s")
	if r := next.finish(t, 0); r.Outcome != "completed" {
		t.Errorf("the next client: %s, %s: %s", r.Outcome, r.Reason, r.Error)
	}
	all := spans(s.drained(t))
	if len(all) != 2 {
		t.Fatalf("%d sessions were on the link, want 2", len(all))
	}
	disjoint(t, all)
	took := all[0].sent.Time().Sub(since)
	t.Logf("the load server sent its last packet %v later", took)
	punctual(t, "the load server's last packet", took, within)
	s.ended(t, how, "1")
}

// ended fails unless one of these numbers of sessions ended for this reason.
func (s *site) ended(t *testing.T, how string, sessions ...string) {
	t.Helper()
	s.loadServer.Signal(t, syscall.SIGTERM)
	s.loadServer.Wait(t)
	if !slices.ContainsFunc(sessions, func(n string) bool { return s.loadServer.logged("ended,", how, n) }) {
		t.Errorf("want %v sessions ended as %q; the load server: %s", sessions, how, &s.loadServer.Stdout)
	}
}
