package loadsite

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/document"
	paused "oneway.example/exporter/core/standstill"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/tests/documents"
	"oneway.example/tests/standstill"
)

// Result has the fields of `oneway test --json` and of reports that the tests use.
type Result struct {
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
			Arrived  int            `json:"received_packets"`
			Lost     int            `json:"lost_packets"`
			Refused  int            `json:"send_failed_packets"`
			Withheld int            `json:"withheld_packets"`
			Damaged  map[string]int `json:"corrupted_packets"`
		} `json:"counts"`
	} `json:"transfers"`
}

// Decode waits for the end of a client with a status, and decodes its result.
func (p *Process) Decode(t *testing.T, status int, result any) {
	t.Helper()
	select {
	case <-p.Done: // some take longer than Wait waits
	case <-time.After(2 * time.Minute):
	}
	if got := p.Wait(t); got != status {
		p.ran(t)
		t.Fatalf("%v ended with status %d, want %d\n%s%.2000s", p.Cmd.Args, got, status, &p.Stderr, p.Stdout.String())
	}
	documents.Valid(t, document.Test, []byte(p.Stdout.String()))
	if err := json.Unmarshal([]byte(p.Stdout.String()), result); err != nil {
		t.Fatalf("%v in %.2000s\n%s", err, p.Stdout.String(), &p.Stderr)
	}
}

// ran ends the test if the client or the load server says that its host did not run, and this host did stand still: the test cannot
// tell.
func (p *Process) ran(t *testing.T) {
	t.Helper()
	if p.watch == nil || !strings.Contains(p.Stderr.String(), "did not run for ") {
		return
	}
	if still := p.watch.FoundFrom(p.begun); still.Longest >= paused.Limit*9/10 { // the two look at different moments
		standstill.CannotTell(t, still, p.Stderr.String())
	}
}

// Finish is Decode of a Result.
func (p *Process) Finish(t *testing.T, status int) (r Result) {
	t.Helper()
	p.Decode(t, status, &r)
	return r
}

// TCPOutcome is the output of `oneway test tcp --json`.
type TCPOutcome struct {
	Outcome string     `json:"result"`
	Reason  string     `json:"reason"`
	Error   string     `json:"error"`
	Forward int64      `json:"forward_sent_bytes"`
	Reverse int64      `json:"reverse_sent_bytes"`
	Result  tcp.Result `json:"results"`
}

// StartTCP starts `oneway test tcp` on the client.
func (s *Site) StartTCP(t *testing.T, more ...string) *Process {
	t.Helper()
	return s.Test(t, "tcp", append([]string{"--max-wait=30s"}, more...)...)
}

// FinishTCP is Decode of a TCPOutcome.
func (p *Process) FinishTCP(t *testing.T, status int) (o TCPOutcome) {
	t.Helper()
	p.Decode(t, status, &o)
	return o
}

// ShortOutcome is the output of `oneway test tcp-short --json`.
type ShortOutcome struct {
	Outcome string `json:"result"`
	Reason  string `json:"reason"`
	Error   string `json:"error"`
	Result  struct {
		Sizes []tcpshort.Size `json:"sizes"`
	} `json:"results"`
}

// StartShort starts `oneway test tcp-short` on the client.
func (s *Site) StartShort(t *testing.T, more ...string) *Process {
	t.Helper()
	return s.Test(t, "tcp-short", append([]string{"--congestion-control=reno", "--seed=1"}, more...)...)
}

// FinishShort is Decode of a ShortOutcome.
func (p *Process) FinishShort(t *testing.T, status int) (o ShortOutcome) {
	t.Helper()
	p.Decode(t, status, &o)
	return o
}

// SweepOutcome is the output of `oneway test tcp-sweep --json`.
type SweepOutcome struct {
	Result struct {
		Knees   []tcpsweep.Knee         `json:"knees"`
		Cells   []tcpsweep.MeasuredCell `json:"cells"`
		Omitted []tcpsweep.Omission     `json:"omitted"`
	} `json:"results"`
	Notes []string `json:"notes"`
}

// StartSweep starts `oneway test tcp-sweep` on the client.
func (s *Site) StartSweep(t *testing.T, more ...string) *Process {
	t.Helper()
	return s.Test(t, "tcp-sweep", more...)
}

// FinishSweep is Decode of a SweepOutcome.
func (p *Process) FinishSweep(t *testing.T) (o SweepOutcome) {
	t.Helper()
	p.Decode(t, 0, &o)
	return o
}
