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

// The limits of these tests are promises: a session ends on both sides within a second of its
// connection's end (package control), or after an Outage in which nothing of a peer came that should
// (package traffic/udp); and no stream is sent to who has not been heard for 3 s.

func TestClientsThatStartTogetherNeverOverlap(t *testing.T) {
	s := newSite(t, overSlow())
	clients := []*process{s.saturation(t, "--wait=60s"), s.saturation(t, "--wait=60s")}
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
		t.Error("want 2 sessions of 2 transfers each, and one that was told busy")
	}
}

func TestClientOfAKilledLoadServerEndsAndSaysWhy(t *testing.T) {
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
		t.Errorf("the client says %q; want one line that names the session and the load server", said)
	}
	s.nothingAfter(t, killed)
	// A load server that comes back serves at once.
	s.respond(t)
	s.saturation(t, "--direction=reverse", "--wait=0s").finish(t, 0)
}

func TestLoadServerStopsForAKilledClientAndServesTheNext(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	killed := c.Kill(t)
	s.freeAgain(t, killed, time.Second, "lost")
}

func TestLoadServerStopsForAClientThatIsCutOff(t *testing.T) {
	const hears = 4 * time.Second // those 3 s, and a busy host's own
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t)
	r := c.finish(t, 1)
	t.Logf("the client ended %v later: %s", c.Ended.Sub(cut), &c.Stderr)
	// It sends nothing, and waits for the path.
	if took := c.Ended.Sub(cut); took > udp.Outage+5*time.Second {
		t.Errorf("the client's end came after %v", took)
	}
	if r.Reason != "session_lost" {
		t.Errorf("%s, %s", r.Outcome, r.Reason)
	}
	s.freeAgain(t, cut, hears, "silent")
}

// With a drain time that allows for a queue of many seconds, it is the client's hellos that
// tell the load server that it is still there.
func TestLoadServerMissesTheHellosOfAClientThatIsCutOff(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload, "--drain=12s")
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t)
	c.Signal(t, syscall.SIGSTOP) // its socket stays open: no error comes back
	defer c.Kill(t)
	s.freeAgain(t, cut, 4*time.Second, "silent")
}

// A radio link that stands still for seconds, as recorded ones do, ends no run, not even where the
// load server sends: it waits, and what it did not send is not lost.
func TestRunOutlivesAnOutage(t *testing.T) {
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
		t.Errorf("%+v: want packets that were withheld, and are not lost", counts)
	}
	if len(r.Notes) == 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "heard nothing of this end") {
		t.Errorf("notes %q do not tell why packets were not sent", r.Notes)
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
		t.Errorf("%d packets entered the link after 4 s of silence, and %d afterwards; want none, and the rest of the stream", blind, late)
	}
}

// A client that sends hears nothing of its load server, and goes on as planned; but the link at the
// remote end is not its own for that.
func TestLoadServerIsFreeAfterAClientThatIsCutOffWhileItSends(t *testing.T) {
	s := newSite(t, overSlow())
	c := s.saturation(t, "--direction=forward", "--duration=20s", "--forward=12Mbit")
	s.underLoad(t, c, sample.Forward)
	cut := s.cut(t)
	defer c.Kill(t)
	time.Sleep(time.Until(cut.Add(udp.Outage + 2*time.Second))) // nothing tells of what does not come
	s.mend(t)
	s.saturation(t, "--direction=reverse", "--wait=0s").finish(t, 0)
	s.ended(t, "silent", "1")
}

// What the client says still passes: the load server learns that it was given up.
func TestClientGivesUpALoadServerThatIsCutOff(t *testing.T) {
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
		t.Errorf("the client says %q; want one line that names the load server", said)
	}
	s.mend(t)
	s.saturation(t, "--direction=reverse", "--wait=5s").finish(t, 0)
	s.ended(t, "closed", "1", "2") // that of the next client may meet the load server's end
}

// cut loses whatever enters the link from now on, in these directions, or both, and without a word.
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

// punctual fails if something took as long as it takes without what ended the session: a
// stream of 20 s. That it keeps the promised limit, too, is precision.
func punctual(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if took > 10*time.Second {
		t.Errorf("%s came after %v", what, took)
	}
	if took > limit {
		precision.Missed(t, fmt.Errorf("%s came after %v, want %v at most", what, took, limit))
	}
}

// freeAgain fails if the load server goes on sending after what ended the session, or is not
// free for the next client then. how is the session's end in its own words.
func (s *site) freeAgain(t *testing.T, since time.Time, within time.Duration, how string) {
	t.Helper()
	limit := since.Add(within)
	if how == "silent" { // the session outlasts the stream, should the client come back
		limit = since.Add(udp.Outage + 2*time.Second)
	}
	time.Sleep(time.Until(limit)) // nothing tells of what does not come
	s.mend(t)
	next := s.saturation(t, "--direction=reverse", "--wait=20s")
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

// ended fails if not so many sessions ended as this, in the load server's words.
func (s *site) ended(t *testing.T, how string, sessions ...string) {
	t.Helper()
	s.loadServer.Signal(t, syscall.SIGTERM)
	s.loadServer.Wait(t)
	if !slices.ContainsFunc(sessions, func(n string) bool { return s.loadServer.said("ended,", how, n) }) {
		t.Errorf("want %v sessions that ended as %q; the load server: %s", sessions, how, &s.loadServer.Stdout)
	}
}
