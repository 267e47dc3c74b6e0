package influxql

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"oneway.example/tests/await"
)

const root = "../.."

// server is an InfluxDB 1.8 with the database "oneway".
type server struct{ url string }

// start starts the influxd of build/influxdb-1.8.* with an empty directory, until the test ends.
func start(t *testing.T) *server {
	t.Helper()
	found, err := filepath.Glob(root + "/build/influxdb-1.8.*/influxd")
	if err != nil || len(found) == 0 {
		t.Skip("NOT TESTED: no influxd in build/influxdb-1.8.*: tests/influxql/influxdb.sh builds it from its Go module")
	}
	dir, s := t.TempDir(), &server{"http://" + freeAddress(t)}
	config := filepath.Join(dir, "influxdb.conf")
	text := fmt.Sprintf("reporting-disabled = true\nbind-address = %q\n[meta]\ndir = %q\n[data]\ndir = %q\nwal-dir = %q\n[http]\nbind-address = %q\n[monitor]\nstore-enabled = false\n",
		freeAddress(t), dir+"/meta", dir+"/data", dir+"/wal", s.url[len("http://"):])
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log await.Text
	cmd := exec.Command(found[len(found)-1], "-config", config)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	await.That(t, "influxd replies", func() bool {
		res, err := http.Get(s.url + "/ping")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	s.query(t, "CREATE DATABASE oneway")
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *server) write(t *testing.T, lines []byte) {
	t.Helper()
	res, err := http.Post(s.url+"/write?db=oneway&precision=ns", "text/plain", bytes.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusNoContent {
		t.Fatalf("write: %s: %s", res.Status, text)
	}
}

// series is a series of a result.
type series struct {
	Name    string
	Tags    map[string]string
	Columns []string
	Values  [][]any
}

// query requests what Grafana does (pkg/tsdb/influxdb/influxql: times in ms).
func (s *server) query(t *testing.T, statement string) []series {
	t.Helper()
	res, err := http.PostForm(s.url+"/query?db=oneway&epoch=ms", url.Values{"q": {statement}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var reply struct {
		Results []struct {
			Series []series
			Error  string
		}
		Error string
	}
	if err := json.NewDecoder(res.Body).Decode(&reply); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if reply.Error != "" || len(reply.Results) != 1 || reply.Results[0].Error != "" {
		t.Fatalf("%s: %+v", statement, reply)
	}
	return reply.Results[0].Series
}
