package linklease

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"testing"

	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe/link"
)

// After any input and the end of the connection the link is free, at most the quota is used, and
// each line of the server is a reply.
func FuzzRequests(f *testing.F) {
	first, err := json.Marshal(request{Op: opTerms, Version: version, Network: network(), Test: &Test{Kind: "train", Host: "192.0.2.7", Port: 8620, Link: "uplink"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(string(first) + "\n" + `{"op":"take","wait_ns":1}` + "\n" + `{"op":"reserve","bytes":500}` + "\n" + `{"op":"send"}` + "\n" + `{"op":"settle","forward_bytes":3,"reverse_bytes":-9}` + "\n"))
	f.Add([]byte(`{"op":"keep_alive"}` + "\n" + `{"op":"take"}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		links := link.NewTable(nil)
		if err := links.SetLinks([]link.Options{{Name: "uplink", QuotaBytes: 1000}}); err != nil {
			t.Fatal(err)
		}
		s := NewServer(Options{Links: links, Sink: &metrictest.Sink{}, Find: find, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		defer s.tasks.Wait()
		defer cancel()
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.serve(ctx, server)
		}()
		go func() {
			// The last line is no request; it ends the connection after all others were handled.
			_, _ = client.Write(append(bytes.Clone(said), "{}\n"...))
		}()
		replies, _ := io.ReadAll(client)
		<-done
		_ = client.Close()
		for lines := bufio.NewScanner(bytes.NewReader(replies)); lines.Scan(); {
			// The last line may be truncated if the client has closed.
			if line := lines.Bytes(); bytes.HasSuffix(line, []byte("}")) && !json.Valid(line) {
				t.Errorf("the server sent %q", line)
			}
		}
		if who, _, held := links.Holder("uplink"); held {
			t.Errorf("%v still holds the link after %q", who, said)
		}
		if u := links.Usage("uplink"); u.Used < 0 || u.Left < 0 || u.Used > u.Limit && u.Left > 0 {
			t.Errorf("%+v after %q", u, said)
		}
	})
}

// The client must end without a panic or deadlock after any input.
func FuzzReplies(f *testing.F) {
	f.Add([]byte(`{"result":"terms","terms":{"link":"uplink","limit_bytes":5}}` + "\n"))
	f.Add([]byte(`{"result":"refused","error":"no"}` + "\n"))
	f.Add([]byte("[]\n"))
	f.Fuzz(func(_ *testing.T, said []byte) {
		client, server := net.Pipe()
		l := newLease(client)
		go func() {
			_, _ = server.Write(said)
			_ = server.Close()
		}()
		go func() {
			for range l.replies {
			}
		}()
		l.read()
		close(l.replies)
		l.Close()
	})
}
