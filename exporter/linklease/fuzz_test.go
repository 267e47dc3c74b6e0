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

	"oneway.example/exporter/link"
	"oneway.example/exporter/metric/metrictest"
)

// Whatever a client says before it goes, the link is free again, no more than the quota is
// used, and each word of the server's is a reply.
func FuzzRequests(f *testing.F) {
	first, err := json.Marshal(request{Op: opAsk, Version: version, Network: network(), Ask: &Ask{Kind: "train", Host: "192.0.2.7", Port: 8620, Link: "uplink"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(string(first) + "\n" + `{"op":"take","wait":1}` + "\n" + `{"op":"reserve","bytes":500}` + "\n" + `{"op":"send"}` + "\n" + `{"op":"settle","forward":3,"reverse":-9}` + "\n"))
	f.Add([]byte(`{"op":"alive"}` + "\n" + `{"op":"take"}` + "\n"))
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
			// What comes last is no request, and ends the connection when all others have been handled.
			_, _ = client.Write(append(bytes.Clone(said), "{}\n"...))
		}()
		replies, _ := io.ReadAll(client)
		<-done
		_ = client.Close()
		for lines := bufio.NewScanner(bytes.NewReader(replies)); lines.Scan(); {
			// The last may be cut off where the client has closed.
			if line := lines.Bytes(); bytes.HasSuffix(line, []byte("}")) && !json.Valid(line) {
				t.Errorf("the server says %q", line)
			}
		}
		if who, _, held := links.Holder("uplink"); held {
			t.Errorf("%v holds the link after %q", who, said)
		}
		if u := links.Usage("uplink"); u.Used < 0 || u.Left < 0 || u.Used > u.Limit && u.Left > 0 {
			t.Errorf("%+v after %q", u, said)
		}
	})
}

// Whatever an agent says, the client ends without harm.
func FuzzReplies(f *testing.F) {
	f.Add([]byte(`{"word":"terms","terms":{"link":"uplink","limit":5}}` + "\n"))
	f.Add([]byte(`{"word":"refused","error":"no"}` + "\n"))
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
