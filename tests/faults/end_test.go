package faults

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/loadsite"
)

// The limits of these tests are specified: a session ends at both ends within a second of its connection's
// end (package loadcontrol), or after an Outage without expected packets of the peer (package traffic/udp);
// and no stream is sent to an address without a hello for 3 s.

func TestClientsThatStartTogetherNeverOverlap(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	clients := []*loadsite.Process{s.saturation(t, "--max-wait=60s"), s.saturation(t, "--max-wait=60s")}
	for _, c := range clients {
		if r := c.Finish(t, 0); r.Outcome != "completed" || len(r.Transfers) != 2 {
			t.Errorf("run %s: %s, %s: %s", r.Run, r.Outcome, r.Reason, r.Error)
		}
	}
	all := spans(s.Drained(t))
	if len(all) != len(clients) {
		t.Errorf("%d sessions were on the link, want %d", len(all), len(clients))
	}
	disjoint(t, all)
	s.LoadServer.Signal(t, syscall.SIGTERM)
	s.LoadServer.Wait(t)
	said := s.LoadServer.Stdout.String()
	t.Logf("the load server: %s", said)
	if !strings.Contains(said, "\n2 sessions, 4 transfers,") || !strings.Contains(said, "refused, busy") {
		t.Error("want 2 sessions of 2 transfers each, and one refused as busy")
	}
}

func TestClientOfAKilledLoadServerEndsWithTheReason(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	killed := s.LoadServer.Kill(t)
	r := c.Finish(t, 1)
	took := c.Ended.Sub(killed)
	t.Logf("the client ended %v later: %s", took, &c.Stderr)
	punctual(t, "the client's end", took, 2*time.Second)
	if r.Outcome != "incomplete" || r.Reason != "session_lost" {
		t.Errorf("%s, %s", r.Outcome, r.Reason)
	}
	if said := c.Stderr.String(); !strings.Contains(said, s.At.String()) || !strings.Contains(said, "session") || strings.Count(said, "\n") != 1 {
		t.Errorf("stderr of the client is %q; want one line with the session and the load server", said)
	}
	s.nothingAfter(t, killed)
	// A restarted load server serves at once.
	s.Respond(t)
	s.saturation(t, "--direction=reverse", "--max-wait=0s").Finish(t, 0)
}

func TestLoadServerStopsForAKilledClientAndServesTheNext(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	killed := c.Kill(t)
	s.freeAgain(t, killed, time.Second, "lost")
}

func TestLoadServerStopsForAClientThatIsCutOff(t *testing.T) {
	const hears = 4 * time.Second // 3 s of consent, and 1 s for a busy host
	s := newSite(t, loadsite.OverSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload)
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t)
	r := c.Finish(t, 1)
	t.Logf("the client ended %v later: %s", c.Ended.Sub(cut), &c.Stderr)
	// It sends nothing, and waits for its idle timeout.
	if took := c.Ended.Sub(cut); took > udptraffic.Outage+5*time.Second {
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
	s := newSite(t, loadsite.OverSlow())
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
	s := newSite(t, loadsite.OverSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=12s", overload)
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t)
	<-time.After(outage)
	s.mend(t)
	mended := time.Now()
	r := c.Finish(t, 0)
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
	s.Drained(t)
	for _, p := range s.Network.Log(sample.Reverse) {
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

// A client that sends, and receives nothing from its load server, does not hold the link of the load server. It ends itself
// as well.
func TestLoadServerIsFreeAfterAClientThatIsCutOffWhileItSends(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	c := s.saturation(t, "--direction=forward", "--duration=20s", "--rate-forward=12Mbit")
	s.underLoad(t, c, sample.Forward)
	cut := s.cut(t)
	r := c.Finish(t, 1)
	if took := c.Ended.Sub(cut); took > udptraffic.Outage+5*time.Second || r.Reason != "session_lost" {
		t.Errorf("the client ended after %v: %s, %s", took, r.Outcome, r.Reason)
	}
	time.Sleep(time.Until(cut.Add(udptraffic.Outage + 2*time.Second))) // fixed wait: the absence of packets has no event
	s.mend(t)
	s.saturation(t, "--direction=reverse", "--max-wait=0s").Finish(t, 0)
	s.ended(t, "silent", "1")
}

// The client's messages still arrive: the load server receives the end of the session.
func TestClientEndsTheSessionWithALoadServerThatIsCutOff(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	c := s.saturation(t, "--direction=reverse", "--duration=30s", overload)
	s.underLoad(t, c, sample.Reverse)
	cut := s.cut(t, sample.Reverse)
	r := c.Finish(t, 1)
	took := c.Ended.Sub(cut)
	t.Logf("the client ended %v later: %s", took, &c.Stderr)
	if took < udptraffic.Outage-2*time.Second || took > udptraffic.Outage+5*time.Second || r.Outcome != "incomplete" || r.Reason != "session_lost" {
		t.Errorf("%s, %s after %v", r.Outcome, r.Reason, took)
	}
	if said := c.Stderr.String(); !strings.Contains(said, s.At.String()) {
		t.Errorf("stderr of the client is %q; want one line with the load server", said)
	}
	s.mend(t)
	s.saturation(t, "--direction=reverse", "--max-wait=5s").Finish(t, 0)
	s.ended(t, "closed", "1", "2") // the load server may report that of the next client
}
