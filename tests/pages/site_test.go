package pages

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/report"
	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
	"oneway.example/tests/process"
)

// site is an agent on this host with a reflector of its own, and a directory with reports.
type site struct {
	dir, url string
	// reflector is a peer that replies, silent one that does not.
	reflector, silent string
	reports           *report.Store
	now               time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), now: time.Now(), reflector: freeport.Address(t), silent: freeport.Address(t)}
	s.reports = report.Open(report.Options{Dir: filepath.Join(s.dir, "reports"), MaxRuns: 10_000})
	for name, content := range map[string]string{"token": "token\n", "key": strings.Repeat("k", 32) + "\n"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// serve starts the agent with the paths of a configuration.
func (s *site) serve(t *testing.T, paths string) {
	t.Helper()
	config := filepath.Join(s.dir, "oneway.yml")
	text := fmt.Sprintf("clock: {source: static, bound: 250us}\nstate_dir: %s\nreflector: {listen: [%q]}\nreports: {max_runs: 10000}\n%s", s.dir, s.reflector, paths)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := process.Run(t, exec.Command(binary, "agent", "--config.file="+config, "--web.listen-address=127.0.0.1:0", "--test.socket="))
	await.That(t, "the agent serves", func() bool {
		select {
		case <-p.Done:
			t.Fatalf("the agent has ended: %s", &p.Stderr)
		default:
		}
		_, rest, _ := strings.Cut(p.Stderr.String(), `msg="Listening on" address=`)
		address, _, found := strings.Cut(rest, "\n")
		if !found {
			return false
		}
		s.url = "http://" + strings.TrimSpace(address)
		r, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

// recording is a report of testdata.
type recording struct {
	Header report.Header   `json:"header"`
	Shown  report.View     `json:"view"`
	Body   json.RawMessage `json:"body"`
}

func (r recording) View() report.View            { return r.Shown }
func (r recording) MarshalJSON() ([]byte, error) { return r.Body, nil }

// load reads a recorded report.
func load(t *testing.T, kind string) (r recording) {
	t.Helper()
	f, err := os.Open("testdata/" + kind + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var plain struct {
		Header  report.Header
		Summary []report.Line
		View    report.View
		Body    json.RawMessage
	}
	if err := json.NewDecoder(zipped).Decode(&plain); err != nil {
		t.Fatal(err)
	}
	h := plain.Header
	if h.Summary = plain.Summary; len(h.Summary) == 0 {
		t.Fatalf("the recorded report of %s has no summary", kind)
	}
	return recording{h, plain.View, plain.Body}
}

// store stores a recorded report as that of a path, some time ago.
func (s *site) store(t *testing.T, kind, path, peer string, ago time.Duration, change ...func(*recording)) (id string) {
	t.Helper()
	r := load(t, kind)
	h := &r.Header
	took := h.End.Sub(h.Begin)
	h.Path, h.Peer, h.Begin = path, peer, s.now.Add(-ago)
	h.End, h.ID = h.Begin.Add(took), report.NewID(h.Begin, nil)
	for _, f := range change {
		f(&r)
	}
	if err := s.reports.Write(*h, r); err != nil {
		t.Fatal(err)
	}
	return h.ID
}

// failed makes a run incomplete, with the error that the runner writes.
func failed(r *recording) {
	o := loadtest.Outcome{
		Run: &loadtest.Run{}, Result: loadtest.Incomplete, Reason: runreason.Lost,
		Error: "the session with the load server at [2001:db8::7]:8620 ended: read tcp [2001:db8::2]:41734->[2001:db8::7]:8620: connection reset by peer",
	}
	r.Header.Result, r.Header.Reason, r.Header.Error, r.Header.Summary = string(o.Result), o.Reason, o.Error, nil
	r.Shown = o.View()
}
