package influxql

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"oneway.example/tests/influx"
)

const root = "../.."

// server is an InfluxDB 1.8 with the database "oneway".
type server struct{ url string }

// start starts a server without data, until the test ends.
func start(t *testing.T) *server {
	t.Helper()
	running := influx.New(t, false)
	running.Start()
	s := &server{running.URL}
	s.query(t, "CREATE DATABASE oneway")
	return s
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
