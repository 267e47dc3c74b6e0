package loadtest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// site is a link with a load server at its server end.
type site struct {
	network    *lab.Lab
	dir        string
	at         netip.AddrPort
	tokenFile  string
	tokensFile string
	pin        string
	loadServer *process
	disk       *disk // of the agents' state directory; nil: the host's
}

func overSlow() lab.Options { return lab.Options{Profile: slow()} }

// slow is a link with a queue of half a second, of which the default rates use half.
func slow() lab.Profile {
	return lab.Profile{
		Name:    "slow",
		Forward: lab.Link{Rate: 4e6, Delay: 10 * time.Millisecond, Queue: 250_000},
		Reverse: lab.Link{Rate: 8e6, Delay: 10 * time.Millisecond, Queue: 500_000},
	}
}

// newSite makes a site. Sites of one test run are independent.
func newSite(t *testing.T, o lab.Options) *site {
	t.Helper()
	t.Parallel()
	if o.Seed = 1; o.Classifier == nil {
		o.Classifier = testPackets
	}
	s := &site{network: lab.Start(t, o), dir: t.TempDir()}
	s.at = netip.AddrPortFrom(s.network.Server.Addr4, loadcontrol.DefaultPort)
	s.tokenFile, s.tokensFile = filepath.Join(s.dir, "token"), filepath.Join(s.dir, "tokens")
	out, err := exec.Command(binary, "token", "new", "--name=lab", "--file="+s.tokensFile).Output()
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(out), "\n")
	if err := os.WriteFile(s.tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.respond(t)
	return s
}

// respond starts the load server, and waits until it listens.
func (s *site) respond(t *testing.T) {
	t.Helper()
	s.loadServer = start(t, s.network.Server, "load-server", "--tokens-file="+s.tokensFile, "--state-dir="+s.dir,
		"--listen="+s.at.String(), "--clock=static", "--clock-bound=1ms")
	program.Eventually(t, "the load server prints its pin", func() bool {
		for line := range strings.Lines(s.loadServer.Stdout.String()) {
			if pin, ok := strings.CutPrefix(line, "pin "); ok && strings.HasSuffix(pin, "\n") {
				s.pin = strings.TrimSpace(pin)
				return true
			}
		}
		return false
	})
}

// overload is a rate of the load server's stream that fills the queue in a quarter of a second.
const overload = "--rate-reverse=24Mbit"

// saturation starts `oneway test saturation` on the client: one second of load after two of single
// packets, in both directions at once or in the given one.
func (s *site) saturation(t *testing.T, more ...string) *process {
	t.Helper()
	args := []string{
		"test", "saturation", s.at.String(), "--token-file=" + s.tokenFile, "--pin=" + s.pin, "--clock=static", "--clock-bound=1ms",
		"--json", "--skip=200ms", "--together",
	}
	for _, usual := range []string{"--duration=1s", "--drain-timeout=1s", "--rate-forward=5Mbit", "--rate-reverse=10Mbit"} {
		key, _, _ := strings.Cut(usual, "=")
		if !slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(arg, key+"=") }) {
			args = append(args, usual)
		}
	}
	if !slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(arg, "--agent-socket=") }) {
		args = append(args, "--no-agent")
	}
	return start(t, s.network.Client, append(args, more...)...)
}

// result has the fields of `oneway test --json` and of reports that the tests use.
type result struct {
	Run       string   `json:"id"`
	Outcome   string   `json:"result"`
	Reason    string   `json:"reason"`
	Error     string   `json:"error"`
	Notes     []string `json:"notes"`
	Transfers []struct {
		Direction string           `json:"direction"`
		Received  *stream.Received `json:"received"`
		Counts    struct {
			Sent     int            `json:"sent_packets"`
			Arrived  int            `json:"arrived_packets"`
			Lost     int            `json:"lost_packets"`
			Refused  int            `json:"send_failed_packets"`
			Withheld int            `json:"withheld_packets"`
			Damaged  map[string]int `json:"corrupted_packets"`
		} `json:"counts"`
	} `json:"transfers"`
}

// finish waits for the end of a client with a status, and decodes its result.
func (p *process) finish(t *testing.T, status int) (r result) {
	t.Helper()
	if got := p.Wait(t); got != status {
		t.Fatalf("%v ended with status %d, want %d\n%s%.2000s", p.Cmd.Args, got, status, &p.Stderr, p.Stdout.String())
	}
	if err := json.Unmarshal([]byte(p.Stdout.String()), &r); err != nil {
		t.Fatalf("%v in %.2000s\n%s", err, p.Stdout.String(), &p.Stderr)
	}
	return r
}

// underLoad waits until the client's stream in a direction has filled the queue.
func (s *site) underLoad(t *testing.T, client *process, d sample.Direction) {
	t.Helper()
	program.Eventually(t, "the queue is full", func() bool {
		select {
		case <-client.Done:
			t.Fatalf("the client has ended: %s", &client.Stderr)
		default:
		}
		c, _ := s.network.Counts(d)
		return c.DroppedQueue > 0
	})
}

// drained returns all test packets in the link's log, of both directions.
func (s *site) drained(t *testing.T) (all []lab.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), program.Timeout)
	defer cancel()
	if err := s.network.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	for _, d := range sample.Directions() {
		all = append(all, s.network.Log(d)...)
	}
	return all
}

// nothingAfter fails if packets from the load server entered the link after a time.
func (s *site) nothingAfter(t *testing.T, end time.Time) {
	t.Helper()
	s.drained(t)
	log := s.network.Log(sample.Reverse)
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
func (p *process) logged(fields ...string) bool {
	for line := range strings.Lines(p.Stdout.String()) {
		if slices.Equal(strings.Fields(line), fields) {
			return true
		}
	}
	return false
}
