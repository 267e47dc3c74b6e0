// Package influx runs a real InfluxDB 1.8 for tests, and tests the output influxdb with it. InfluxDB 2 and 3 cannot be built from
// Go modules: the tests use version 2's API as InfluxDB 1.8.10 has it, and those of exporter/outputs/influxdb the documented replies
// of version 3.
package influx

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/await"
	"oneway.example/tests/process"
)

// Version is the version that influxdb1.sh builds.
const Version = "1.8.10"

// Program finds a program of InfluxDB that influxdb1.sh has built: influxd or influx. The test's directory is two below that of the
// repository.
func Program(t testing.TB, name string) string {
	t.Helper()
	file, err := filepath.Abs("../../build/influxdb-" + Version + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Skipf("NOT TESTED: no InfluxDB in build: tests/influx/influxdb1.sh builds it from its Go module: %v", err)
	}
	return file
}

// Server is an InfluxDB with its data, started and killed by a test.
type Server struct {
	// URL is its address, the same after each start.
	URL string
	// User and Password are added to queries, if the server requires them.
	User, Password string

	t       testing.TB
	program string
	dir     string
	config  string
	private string // the configuration without a known address
	running *process.Process
}

// directory is a directory for data, in memory where the host has a file system for it: a start and each write of InfluxDB wait for fsync,
// and SIGKILL of a process leaves the same as on a disk.
func directory(t testing.TB) string {
	t.Helper()
	const memory = "/dev/shm"
	var is unix.Statfs_t
	if unix.Statfs(memory, &is) != nil || is.Type != unix.TMPFS_MAGIC {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "influxdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// deploy has the script that makes the database.
const deploy = "../../deploy/influxdb/"

// Create makes the database oneway with the script, as an administrator does. The environment has the user, if there is one.
func Create(t testing.TB, s *Server, env ...string) {
	t.Helper()
	cmd := exec.Command(deploy+"create.sh", "1", s.URL)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

const configuration = `reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "%[1]s/meta"
[data]
  dir = "%[1]s/data"
  wal-dir = "%[1]s/wal"
  index-version = "tsi1"
[continuous_queries]
  run-interval = "1s"
[http]
  bind-address = "%[2]s"
  auth-enabled = %[3]t
  flux-enabled = true
  log-enabled = false
`

// New makes a server that is not running; the end of the test kills it.
func New(t testing.TB, auth bool) *Server {
	t.Helper()
	s := &Server{t: t, program: Program(t, "influxd")}
	dir := directory(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.URL, s.dir, s.config, s.private = "http://"+address, dir, filepath.Join(dir, "influxdb.conf"), filepath.Join(dir, "private.conf")
	for file, bind := range map[string]string{s.config: address, s.private: "127.0.0.1:0"} {
		if err := os.WriteFile(file, fmt.Appendf(nil, configuration, dir, bind, auth), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Recover opens the data of a killed server and ends it, where no writer finds it. A WAL entry that the kill has left incomplete is
// cut off only after its end was taken as the place of the next entry: what a server writes after that, the next start does not read.
func (s *Server) Recover() {
	s.t.Helper()
	s.running = process.Run(s.t, exec.Command(s.program, "-config", s.private))
	await.That(s.t, "influxd has read its WAL", func() bool { return strings.Contains(s.running.Stderr.String(), "Listening for signals") }, &s.running.Stderr)
	s.Kill()
}

// Start starts it, and waits until it replies.
func (s *Server) Start() {
	s.t.Helper()
	s.running = process.Run(s.t, exec.Command(s.program, "-config", s.config))
	await.That(s.t, "influxd replies", func() bool {
		r, err := http.Get(s.URL + "/ping")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusNoContent
	}, &s.running.Stderr)
}

// Kill sends SIGKILL, and returns when it has ended.
func (s *Server) Kill() {
	s.t.Helper()
	s.running.Kill(s.t)
}

// Query executes InfluxQL and returns the rows of all series of the last statement, without column names.
func (s *Server) Query(database, query string) (rows [][]any) {
	s.t.Helper()
	form := url.Values{"q": {query}, "db": {database}, "epoch": {"ns"}}
	request, err := http.NewRequest(http.MethodPost, s.URL+"/query", strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.User != "" {
		request.SetBasicAuth(s.User, s.Password)
	}
	client := http.Client{Timeout: time.Minute}
	r, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	var v struct {
		Error   string
		Results []struct {
			Error  string
			Series []struct{ Values [][]any }
		}
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil || v.Error != "" {
		s.t.Fatalf("%s: %v %s", query, err, text)
	}
	for _, one := range v.Results {
		if one.Error != "" {
			s.t.Fatalf("%s: %s", query, one.Error)
		}
		rows = nil
		for _, series := range one.Series {
			rows = append(rows, series.Values...)
		}
	}
	return rows
}

// Write writes lines to a retention policy of the database oneway.
func (s *Server) Write(t testing.TB, policy, lines string) {
	t.Helper()
	for lines != "" {
		end := min(len(lines), 8<<20)
		if end < len(lines) {
			end = strings.LastIndexByte(lines[:end], '\n') + 1
		}
		r, err := http.Post(s.URL+"/write?db=oneway&rp="+policy, "", strings.NewReader(lines[:end]))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body) // of an error
		_ = r.Body.Close()
		if r.StatusCode != http.StatusNoContent {
			t.Fatalf("write: status %d: %s", r.StatusCode, text)
		}
		lines = lines[end:]
	}
}

// Number is the value of a query with one row, in its second column; 0 without a row.
func (s *Server) Number(database, query string) float64 {
	s.t.Helper()
	rows := s.Query(database, query)
	if len(rows) == 0 {
		return 0
	}
	n, ok := rows[0][1].(float64)
	if !ok {
		s.t.Fatalf("%s: %v, want a number", query, rows)
	}
	return n
}

// Flux executes a query of Flux and returns its CSV.
func (s *Server) Flux(query string) string {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.URL+"/api/v2/query", strings.NewReader(query))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/vnd.flux")
	r.Header.Set("Accept", "application/csv")
	client := http.Client{Timeout: time.Minute}
	reply, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		s.t.Fatalf("status %d: %s %v", reply.StatusCode, text, err)
	}
	return string(text)
}
