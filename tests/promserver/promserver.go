// Package promserver runs a Prometheus server in tests.
package promserver

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
	"oneway.example/tests/process"
)

// Options of a server. The zero value is Debian's Prometheus that scrapes nothing.
type Options struct {
	// Program is the file of the program; empty is the one of Debian.
	Program string
	// Config is the text of its configuration file.
	Config string
	// Data is the directory of its database; empty is a new one.
	Data string
	// Address is where it listens; empty is an unused port of the loopback interface.
	Address string
	// Args are further arguments.
	Args []string
}

// Server is a server that runs.
type Server struct {
	*process.Process
	// URL is the address of its API.
	URL string
}

// Debian is the program of Debian's package prometheus. Without it the test skips.
func Debian(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("NOT TESTED: prometheus is not installed (Debian package prometheus)")
	}
	return program
}

// Start runs a server, which is ready when Start returns, until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Program == "" {
		o.Program = Debian(t)
	}
	if o.Data == "" {
		o.Data = filepath.Join(t.TempDir(), "data")
	}
	if o.Address == "" {
		o.Address = freeport.Address(t)
	}
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	if o.Config == "" {
		o.Config = "{}\n"
	}
	if err := os.WriteFile(config, []byte(o.Config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--config.file=" + config, "--storage.tsdb.path=" + o.Data, "--web.listen-address=" + o.Address}, o.Args...)
	s := &Server{process.Run(t, exec.Command(o.Program, args...)), "http://" + o.Address}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Prometheus: %.8000s", s.Stderr.String())
		}
	})
	await.That(t, "Prometheus is ready", func() bool {
		select {
		case <-s.Done:
			t.Fatalf("Prometheus has ended: %s", s.Stderr.String())
		default:
		}
		reply, err := http.Get(s.URL + "/-/ready")
		return err == nil && reply.Body.Close() == nil && reply.StatusCode == http.StatusOK
	})
	return s
}
