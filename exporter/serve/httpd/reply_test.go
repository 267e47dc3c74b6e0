package httpd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadersOfTheSourceThatHoldsMostAreCutOffFirst(t *testing.T) {
	a, many := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	s := newReplies(slog.New(slog.DiscardHandler), space{pending: 10 * pageBytes, most: math.MaxInt})
	var cut []string
	read := func(name string, from netip.Addr, n int) *reply {
		one := &reply{from: from, left: n * pageBytes, truncated: func() { cut = append(cut, name) }}
		s.addPending(one)
		return one
	}
	read("a", a, 2)
	first := read("1", many, 3)
	read("2", many, 2)
	read("3", many, 2)
	s.sent(first, pageBytes)
	if len(cut) != 0 || s.bytes != 8*pageBytes {
		t.Fatalf("cut off %q, %d bytes wait", cut, s.bytes)
	}
	last := read("b", a, 2) // now the limit is reached
	read("c", netip.MustParseAddr("192.0.2.3"), 1)
	if !slices.Equal(cut, []string{"1"}) || s.bytes != 9*pageBytes {
		t.Errorf("cut off %q, %d bytes wait; want 1, the oldest of the busiest source", cut, s.bytes)
	}
	s.sent(last, 2*pageBytes)
	s.sent(last, 2*pageBytes) // the end of one that was written
	s.sent(first, 9*pageBytes)
	if s.bytes != 7*pageBytes {
		t.Errorf("%d bytes wait", s.bytes)
	}
	read("large", many, 100)
	if s.bytes != 107*pageBytes {
		t.Errorf("%d bytes wait, want as many large replies as are generated at the same time", s.bytes)
	}
}

func TestSourceWithManyRequestsLeavesConnectionsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, running := make(chan struct{}), make(chan string, 100)
		h := newReplies(slog.New(slog.DiscardHandler), spaceIn(math.MaxInt64)).whole(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			running <- r.RemoteAddr
			<-release
		}))
		codes := make(chan int, 100)
		ask := func(from string) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = from
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			codes <- w.Code
		}
		for range 10 {
			go ask("192.0.2.1:1")
		}
		begin := time.Now()
		synctest.Wait()
		for i, want := range []int{2, 3, 4, 4} { // 2 of one source, and 4 of all
			if len(running) != want {
				t.Errorf("%d replies for %d sources are generated, want %d", len(running), i+1, want)
			}
			go ask(fmt.Sprintf("192.0.2.%d:1", i+2))
			synctest.Wait()
		}
		for range 8 + 2 {
			if code := <-codes; code != http.StatusServiceUnavailable {
				t.Errorf("status %d of one that waited too long", code)
			}
		}
		if waited := time.Since(begin); waited != 10*time.Second {
			t.Errorf("they have waited for %v, want 10 s", waited)
		}
		close(release)
		for range 4 {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("status %d", code)
			}
		}
	})
}

func TestCanceledRequestDoesNotWait(t *testing.T) {
	a := newReplies(slog.New(slog.DiscardHandler), spaceIn(math.MaxInt64))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range maxMaking {
		a.making <- struct{}{}
	}
	_, err := a.make(http.NotFoundHandler(), netip.Addr{}, http.Header{}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if !errors.Is(err, context.Canceled) || len(a.sources) != 0 {
		t.Errorf("%v, %d sources left", err, len(a.sources))
	}
}

// TestSlowReaderIsCutOffAndOthersAreServed has more slow readers than may wait.
func TestSlowReaderIsCutOffAndOthersAreServed(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // more than sockets hold
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(version, func(t *testing.T) {
			made := newReplies(slog.New(slog.DiscardHandler), space{making: maxMaking, makingFor: maxMaking, most: math.MaxInt})
			s := httptest.NewUnstartedServer(made.whole(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(content)
			})))
			s.EnableHTTP2 = version == "HTTP/2.0"
			s.StartTLS()
			t.Cleanup(s.Close)
			ask := func() io.Reader {
				c := &http.Client{Transport: &http.Transport{
					ForceAttemptHTTP2: s.EnableHTTP2, TLSClientConfig: s.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
				}}
				t.Cleanup(c.CloseIdleConnections)
				reply, err := c.Get(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = reply.Body.Close() })
				if reply.Proto != version {
					t.Fatalf("%s", reply.Proto)
				}
				return reply.Body
			}
			var slow []io.Reader
			for range 2 * maxMaking { // the transport holds a quarter of each
				slow = append(slow, ask())
			}
			last := ask()
			got, err := io.ReadAll(last)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("the last one read %d bytes of %d, %v", len(got), len(content), err)
			}
			got, err = io.ReadAll(slow[0])
			if err == nil || len(got) == len(content) {
				t.Errorf("the first one read %d bytes of %d, %v", len(got), len(content), err)
			}
		})
	}
}

func TestReplyIsUnchanged(t *testing.T) {
	h := newReplies(slog.New(slog.DiscardHandler), spaceIn(math.MaxInt64)).whole(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Kept", "yes")
		w.WriteHeader(http.StatusTeapot)
		for range 3 {
			_, _ = io.WriteString(w, strings.Repeat("x", pageBytes-1))
		}
	}))
	for method, want := range map[string]int{http.MethodGet: 3 * (pageBytes - 1), http.MethodHead: 0} {
		w := get(t, h, method, "/")
		if w.Code != http.StatusTeapot || w.Header().Get("X-Kept") != "yes" || w.Body.Len() != want || w.Header().Get("Content-Length") != "196605" {
			t.Errorf("%s: %d, %v, %d bytes", method, w.Code, w.Header(), w.Body.Len())
		}
	}
}

var _ http.ResponseWriter = (*pages)(nil)

// TestTLSServerCompressesMetrics scrapes as Prometheus does, with TLS, password, HTTP/2 and gzip.
func TestTLSServerCompressesMetrics(t *testing.T) {
	file, pool := webConfig(t)
	at := serve(t, 1, file)[0]
	c := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer c.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("prometheus", "test")
	reply, err := c.Do(r) // requests gzip and decompresses
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.Proto != "HTTP/2.0" || !reply.Uncompressed || !bytes.Contains(body, []byte("oneway_build_info{")) {
		t.Errorf("%s, decompressed %v, %d bytes, %v", reply.Proto, reply.Uncompressed, len(body), err)
	}
}
