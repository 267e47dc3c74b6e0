package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/precision"
	"oneway.example/tests/program"
)

// overload is a rate of the load server's stream that fills the queue in a quarter of a second.
const overload = "--rate-reverse=24Mbit"

// saturation starts `oneway test saturation` on the client: one second of load after two of single
// packets, in both directions at once or in the given one.
func (s *site) saturation(t *testing.T, more ...string) *loadsite.Process {
	t.Helper()
	args := []string{"--clock-bound=1ms", "--skip=200ms", "--together"}
	for _, usual := range []string{"--duration=1s", "--drain-timeout=1s", "--rate-forward=5Mbit", "--rate-reverse=10Mbit"} {
		key, _, _ := strings.Cut(usual, "=")
		if !slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(arg, key+"=") }) {
			args = append(args, usual)
		}
	}
	return s.Test(t, "saturation", append(args, more...)...)
}

// underLoad waits until the client's stream in a direction has filled the queue.
func (s *site) underLoad(t *testing.T, client *loadsite.Process, d sample.Direction) {
	t.Helper()
	program.Eventually(t, "the queue is full", func() bool {
		select {
		case <-client.Done:
			t.Fatalf("the client has ended: %s", &client.Stderr)
		default:
		}
		c, _ := s.Network.Counts(d)
		return c.DroppedQueue > 0
	})
}

// nothingAfter fails if packets from the load server entered the link after a time.
func (s *site) nothingAfter(t *testing.T, end time.Time) {
	t.Helper()
	s.Drained(t)
	log := s.Network.Log(sample.Reverse)
	limit, late := instant.FromTime(end), 0
	for i := range log {
		if log[i].Entry > limit {
			late++
		}
	}
	last := log[len(log)-1].Entry
	t.Logf("%d packets were sent, the last %v before the limit", len(log), limit.Sub(last))
	if late > 0 {
		t.Errorf("%d packets were sent after the limit, the last %v after it", late, last.Sub(limit))
	}
}

// span is the time of one session's packets on the link: from the first that entered to the last that
// left. The last entered at sent.
type span struct {
	session           uint64
	first, sent, last instant.Time
	packets           int
}

// spans returns those of all sessions, by their begin.
func spans(records []lab.Record) (all []span) {
	for i := range records {
		r := &records[i]
		k := slices.IndexFunc(all, func(s span) bool { return s.session == r.Key })
		if k < 0 {
			k, all = len(all), append(all, span{session: r.Key, first: r.Entry})
		}
		s := &all[k]
		s.packets++
		s.first = min(s.first, r.Entry)
		s.sent = max(s.sent, r.Entry)
		s.last = max(s.last, r.Entry, r.Exit.After)
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return all
}

// disjoint fails if two sessions were on the link at the same time.
func disjoint(t *testing.T, all []span) {
	t.Helper()
	for i := range all {
		t.Logf("session %016x: %d packets in %v", all[i].session, all[i].packets, all[i].last.Sub(all[i].first))
		if i > 0 && all[i].first <= all[i-1].last {
			t.Errorf("session %016x began %v before the end of session %016x", all[i].session, all[i-1].last.Sub(all[i].first), all[i-1].session)
		}
	}
}

// logged returns whether the load server's last output has a line with these fields.
func logged(p *loadsite.Process, fields ...string) bool {
	for line := range strings.Lines(p.Stdout.String()) {
		if slices.Equal(strings.Fields(line), fields) {
			return true
		}
	}
	return false
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
		return loadsite.Slow().Forward
	}
	return loadsite.Slow().Reverse
}

func (s *site) link(t *testing.T, d sample.Direction, l lab.Link) {
	t.Helper()
	if err := s.Network.SetLink(d, l); err != nil {
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
		limit = since.Add(udptraffic.Outage + 2*time.Second)
	}
	time.Sleep(time.Until(limit)) // fixed wait: the absence of packets has no event
	s.mend(t)
	next := s.saturation(t, "--direction=reverse", "--max-wait=20s")
	if r := next.Finish(t, 0); r.Outcome != "completed" {
		t.Errorf("the next client: %s, %s: %s", r.Outcome, r.Reason, r.Error)
	}
	all := spans(s.Drained(t))
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
	s.LoadServer.Signal(t, syscall.SIGTERM)
	s.LoadServer.Wait(t)
	if !slices.ContainsFunc(sessions, func(n string) bool { return logged(s.LoadServer, "ended,", how, n) }) {
		t.Errorf("want %v sessions ended as %q; the load server: %s", sessions, how, &s.LoadServer.Stdout)
	}
}
