package influxdb

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// times replies n times with a status, and then accepts.
func times(n int32, status int, body string, header ...string) func(http.ResponseWriter, request) bool {
	var left atomic.Int32
	left.Store(n)
	return func(w http.ResponseWriter, _ request) bool {
		if left.Add(-1) < 0 {
			return false
		}
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}

// TestFailuresAreRepeatedInOrder: the store fails a few times, in each way that is not the fault of a point.
func TestFailuresAreRepeatedInOrder(t *testing.T) {
	const foreign = " (not a message of InfluxDB: check url; a proxy or a firewall may reply, or the port may expect https)"
	for name, c := range map[string]struct {
		reply  func(http.ResponseWriter, request) bool
		result string
		reason string
	}{
		"unauthorized":   {times(3, 401, `{"error":"authorization failed"}`), resultUnauthorized, "status 401 Unauthorized: authorization failed"},
		"forbidden":      {times(3, 403, `{"code":"forbidden","message":"insufficient permissions"}`), resultUnauthorized, "status 403 Forbidden: insufficient permissions"},
		"no write API":   {times(3, 404, "404 page not found\n"), resultNotFound, "status 404 Not Found: 404 page not found: no write API of this version at this address; check url and version"},
		"not found":      {times(3, 404, `{"error":"database not found: \"oneway\""}`), resultNotFound, `status 404 Not Found: database not found: "oneway"`},
		"too many":       {times(3, 429, `{"code":"too many requests","message":"rate limit"}`), resultRateLimited, "status 429 Too Many Requests: rate limit"},
		"unavailable":    {times(3, 503, "", "Retry-After", "0"), resultServerError, "status 503 Service Unavailable"},
		"error":          {times(3, 500, `{"error":"timeout"}`), resultServerError, "status 500 Internal Server Error: timeout"},
		"bad gateway":    {times(3, 502, "<html>\n<h1>nginx</h1>"), resultServerError, "status 502 Bad Gateway: <html> <h1>nginx</h1>"},
		"redirect":       {times(3, 307, "", "Location", "http://127.0.0.1:1/"), resultServerError, "status 307: the store redirects to another address, which is not followed; configure it as url"},
		"wants TLS":      {times(3, 400, "Client sent an HTTP request to an HTTPS server.\n"), resultServerError, "status 400 Bad Request: Client sent an HTTP request to an HTTPS server." + foreign},
		"proxy's page":   {times(3, 400, "<html>"), resultServerError, "status 400 Bad Request: <html>" + foreign},
		"another server": {times(3, 405, ""), resultServerError, "status 405 Method Not Allowed" + foreign},
		"portal's page":  {times(3, 200, "<html>"), resultServerError, "status 200 OK: <html>" + foreign},
		"error with 200": {times(3, 200, `{"error":"timeout"}`), resultServerError, "status 200 OK: timeout"},
		"empty refusal":  {times(3, 400, ""), resultServerError, "status 400 Bad Request" + foreign},
		"refusal":        {times(3, 400, "Bad Request\n"), resultServerError, "status 400 Bad Request: Bad Request" + foreign},
		"firewall":       {times(3, 422, `{"incident":"42","status":"blocked"}`), resultServerError, `status 422 Unprocessable Entity: {"incident":"42","status":"blocked"}` + foreign},
		"long line":      {cut(strings.Repeat("A", 100_000) + "\r\n"), resultUnreachable, `net/http: HTTP/1.x transport connection broken: malformed HTTP response "` + strings.Repeat("A", maxReasonBytes-73) + "..."},
		"no reply":       {cut(""), resultUnreachable, "the store closed the connection without a reply: check url (http or https, the port); a firewall may have closed it"},
		"half a header":  {cut("HTTP/1.1 204 No Con"), resultUnreachable, "net/http: HTTP/1.x transport connection broken: unexpected EOF"},
		"half a body":    {cut("HTTP/1.1 503 Unavailable\r\nContent-Length: 100\r\n\r\n"), resultUnreachable, "read the reply: unexpected EOF"},
		"no HTTP":        {cut("SSH-2.0-OpenSSH_9.2\r\n"), resultUnreachable, `net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-OpenSSH_9.2"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			r := start(t, options(s), t.TempDir())
			reasons := make(chan string, 100)
			s.on(func(w http.ResponseWriter, got request) bool {
				reasons <- r.Status().Reason
				return c.reply(w, got)
			})
			r.add(0, 10)
			r.add(10, 10)
			r.arrive(s, 20)
			<-reasons
			if reason := <-reasons; reason != c.reason {
				t.Errorf("reason %q, want %q", reason, c.reason)
			}
			if n := r.requests(c.result); n != 3 {
				t.Errorf("%v requests with result %s, want 3", n, c.result)
			}
			if status := r.Status(); status.Reason != "" || status.Written != 20 || status.Rejected != 0 || status.LastSuccess.IsZero() {
				t.Errorf("status is %+v", status)
			}
			r.stop()
			if log := r.log.String(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "not delivered") || !strings.Contains(log, "delivered again") {
				t.Errorf("want one line for each change of state, got\n%s", log)
			}
		})
	}
}

// cut writes a text and closes the connection, three times.
func cut(text string) func(http.ResponseWriter, request) bool {
	var left atomic.Int32
	left.Store(3)
	return func(w http.ResponseWriter, _ request) bool {
		if left.Add(-1) < 0 {
			return false
		}
		c, b, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = b.WriteString(text)
		_ = b.Flush()
		_ = c.Close()
		return true
	}
}

func TestProxyThatRefusesTheConnectionIsNamed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer proxy.Close()
	to, _ := url.Parse(proxy.URL)
	store := &url.URL{Scheme: "https", Host: "influx.example.net:8086"}
	c := newClient(Options{Version: 1, Timeout: await.Timeout}, store, nil)
	defer c.close()
	c.http.Transport.(*http.Transport).Proxy = http.ProxyURL(to)
	want := "the proxy " + to.Host + " refuses the connection: status 403 Forbidden; set HTTPS_PROXY or NO_PROXY"
	if r := c.write(t.Context(), []byte("m n=1 1"), nil); r.result != resultUnreachable || r.reason != want {
		t.Errorf("%s, reason %q, want %q", r.result, r.reason, want)
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	for name, after := range map[string]func() string{
		"seconds": func() string { return "1" },
		"date":    func() string { return time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat) }, // cut to 1 s
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			r := start(t, options(s), "")
			var refused, accepted time.Time
			s.on(func(w http.ResponseWriter, got request) bool {
				if refused.IsZero() {
					refused = time.Now()
					return times(1, 503, "", "Retry-After", after())(w, got)
				}
				accepted = time.Now()
				return false
			})
			r.add(0, 1)
			r.arrive(s, 1)
			if pause := accepted.Sub(refused); pause < 900*time.Millisecond || r.requests(resultRateLimited) != 1 {
				t.Errorf("the next request came after %v", pause)
			}
			if log := r.log.String(); !strings.Contains(log, "retry_after=") {
				t.Errorf("the log is %q, without the time that the store asked for", log)
			}
		})
	}
}

func TestRefusedPointsAreCountedAndTheRestIsKept(t *testing.T) {
	v3 := `{"error":"partial write of line protocol occurred","data":[{"original_line":"m n=1i","line_number":2,"error_message":"invalid column type for column 'n', expected float, got integer"},{"original_line":"m n=2i","line_number":4,"error_message":"x"}]}`
	for name, c := range map[string]struct {
		status   int
		body     string
		refused  uint64
		contains string
	}{
		"1.8":       {400, `{"error":"partial write: field type conflict: input field \"n\" on measurement \"m\" is type integer, already exists as type float dropped=3"}`, 3, "field type conflict"},
		"1.8 parse": {400, `{"error":"partial write: unable to parse 'm n=x': invalid number\nunable to parse 'm n=y': invalid number dropped=0"}`, 2, "unable to parse"},
		"2":         {422, `{"code":"unprocessable entity","message":"failure writing points to database: partial write: field type conflict dropped=4"}`, 4, "field type conflict"},
		"3":         {400, v3, 2, "line 2: invalid column type"},
		"many":      {400, `{"error":"partial write: points beyond retention policy dropped=99999999999999999999"}`, 10, "retention policy"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			r := start(t, options(s), "")
			s.on(times(1, c.status, c.body))
			r.add(100, 10)
			r.add(0, 10)
			r.arrive(s, 10)
			await.That(t, "the result is counted", func() bool { return r.Status().Written == 20-c.refused })
			result := resultPartial
			if c.refused == 10 {
				result = resultRejected
			}
			if r.Status().Rejected != c.refused || r.requests(result) != 1 || r.requests(resultWritten) != 1 {
				t.Errorf("status is %+v", r.Status())
			}
			if got := r.value("oneway_output_points_total", `result="rejected"`); got != float64(c.refused) {
				t.Errorf("counter is %v, want %d", got, c.refused)
			}
			if log := r.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, c.contains) {
				t.Errorf("log\n%s\nwant one line with %s", log, c.contains)
			}
		})
	}
}

func TestReplyThatRefusesAllPointsIsNoSuccess(t *testing.T) {
	s := newStore(t)
	r := start(t, options(s), "")
	s.on(times(1, 400, `{"error":"partial write: points beyond retention policy dropped=10"}`))
	r.add(0, 10)
	await.That(t, "the points are refused", func() bool { return r.Status().Rejected == 10 })
	if status := r.Status(); !status.LastSuccess.IsZero() || !strings.Contains(status.Reason, "retention policy") {
		t.Errorf("status is %+v, want the reason and no success", status)
	}
}

// refuses a request that has one of these numbers, as a whole.
func refuses(t *testing.T, bad ...int64) func(http.ResponseWriter, request) bool {
	return func(w http.ResponseWriter, got request) bool {
		if !slices.ContainsFunc(numbers(t, got.lines), func(n int64) bool { return slices.Contains(bad, n) }) {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"code":"invalid","message":"unable to parse 'm': missing fields"}`)
		return true
	}
}

func TestRefusedBatchLosesOnlyTheRefusedPoints(t *testing.T) {
	for _, zip := range []bool{true, false} {
		t.Run(fmt.Sprintf("gzip=%t", zip), func(t *testing.T) {
			s := newStore(t)
			o := options(s)
			o.Gzip = zip
			r := start(t, o, "")
			s.on(refuses(t, 0, 77, 999))
			r.add(0, 1000)
			await.That(t, "all are processed", func() bool { return r.Status().Waiting == 0 })
			want := slices.DeleteFunc(sequence(0, 1000), func(n int64) bool { return n == 0 || n == 77 || n == 999 })
			if got := s.values(); !slices.Equal(got, want) {
				t.Errorf("%d points, want %d in order", len(got), len(want))
			}
			if status := r.Status(); status.Rejected != 3 || status.Written != 997 {
				t.Errorf("status is %+v", status)
			}
		})
	}
}

// TestUnknownNameOfTheStoreHasItsRemedy as it has for a peer.
func TestUnknownNameOfTheStoreHasItsRemedy(t *testing.T) {
	o := options(newStore(t))
	o.URL = "http://nosuch.invalid:8086"
	r := start(t, o, "")
	r.add(0, 1)
	await.That(t, "the reason", func() bool { return r.Status().Reason != "" })
	if reason := r.Status().Reason; !strings.Contains(reason, "lookup nosuch.invalid") || !strings.Contains(reason, "; correct the name") && !strings.Contains(reason, "; the DNS server") {
		t.Error(reason)
	}
}

func TestStoreThatRefusesEverythingEndsTheDivision(t *testing.T) {
	s := newStore(t)
	r := start(t, options(s), "")
	s.on(refuses(t, sequence(0, 5000)...))
	r.add(0, 5000)
	r.add(5000, 1)
	await.That(t, "all are processed", func() bool { return r.Status().Waiting == 0 })
	if status := r.Status(); status.Rejected != 5000 || status.Written != 1 || r.requests(resultRejected) > 2*maxDivisions+1 {
		t.Errorf("status is %+v after %v requests", status, r.requests(resultRejected))
	}
}

func TestTooLargeBatchIsHalvedDownToOnePoint(t *testing.T) {
	for most, want := range map[int]int{100: 1000, 1: 1000, 0: 0} {
		t.Run(strconv.Itoa(most), func(t *testing.T) {
			s := newStore(t)
			r := start(t, options(s), "")
			s.on(func(w http.ResponseWriter, got request) bool {
				if len(got.lines) <= most {
					return false
				}
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				fmt.Fprint(w, `{"error":"Request Entity Too Large"}`)
				return true
			})
			r.add(0, 1000)
			await.That(t, "all are processed", func() bool { return r.Status().Waiting == 0 })
			if got := s.values(); !slices.Equal(got, sequence(0, want)) {
				t.Errorf("%d points arrived, want %d in order", len(got), want)
			}
			if got := r.Status().Rejected; got != uint64(1000-want) {
				t.Errorf("%d refused, want %d", got, 1000-want)
			}
		})
	}
}

// TestStoreThatTakesNoPointIsNotFlooded: a proxy whose limit is wrong refuses each part of a record as too large.
func TestStoreThatTakesNoPointIsNotFlooded(t *testing.T) {
	s := newStore(t)
	r := start(t, options(s), "")
	s.on(func(w http.ResponseWriter, _ request) bool {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return true
	})
	begin := time.Now()
	const points = 500
	r.add(0, points)
	await.That(t, "all are processed", func() bool { return r.Status().Waiting == 0 })
	if took, least := time.Since(begin), (points-1-maxDivisions)*r.backoff.first*3/4; took < least {
		t.Errorf("%v requests within %v, want a pause of each division after %d: at least %v", r.requests(resultTooLarge), took, maxDivisions, least)
	}
	if got := r.Status().Rejected; got != points {
		t.Errorf("%d refused, want %d", got, points)
	}
}

func TestSlowStoreIsATimeout(t *testing.T) {
	s := newStore(t)
	o := options(s)
	o.Timeout = 200 * time.Millisecond
	r := start(t, o, t.TempDir())
	release := make(chan struct{})
	defer close(release)
	s.on(func(w http.ResponseWriter, got request) bool {
		if r.requests(resultUnreachable) >= 2 {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		for range 100 {
			fmt.Fprint(w, "x")
			w.(http.Flusher).Flush()
			select {
			case <-release:
				return true
			case <-got.Context().Done():
				return true
			case <-time.After(50 * time.Millisecond): // the store is slow
			}
		}
		return true
	})
	r.add(0, 10)
	await.That(t, "a request fails", func() bool { return r.requests(resultServerError)+r.requests(resultUnreachable) > 0 })
	s.on(nil)
	r.arrive(s, 10)
}

// TestStoreThatReadsNothing accepts the connection and reads a byte a second.
func TestStoreThatReadsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var accepted atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			defer c.Close() // at the end of the test
		}
	}()
	s := newStore(t)
	o := options(s)
	o.URL, o.Timeout, o.Gzip = "http://"+l.Addr().String(), 100*time.Millisecond, false
	r := start(t, o, "")
	r.add(0, 5000)
	await.That(t, "it tries again", func() bool { return accepted.Load() >= 3 && r.requests(resultUnreachable) >= 2 })
	if reason := r.Status().Reason; reason != "no complete reply within 100ms" {
		t.Errorf("reason is %q", reason)
	}
	r.add(5000, 10) // nothing blocks
	if got := r.Status().Waiting; got != 5010 {
		t.Errorf("%d points wait", got)
	}
	begin := time.Now()
	r.stop()
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("the end took %v", d)
	}
}

func TestRefusedConnectionIsRepeated(t *testing.T) {
	s := newStore(t)
	o := options(s)
	s.Close()
	r := start(t, o, "")
	r.add(0, 1)
	await.That(t, "it tries again", func() bool { return r.requests(resultUnreachable) >= 2 })
	if reason := r.Status().Reason; !strings.HasSuffix(reason, "connect: connection refused") {
		t.Errorf("reason is %q", reason)
	}
}

func TestEarlyReplyToALargeRequest(t *testing.T) {
	s := newStore(t)
	var early atomic.Int32
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if early.Add(1) <= 3 {
			w.WriteHeader(http.StatusTooManyRequests) // without reading the body
			return
		}
		inner.ServeHTTP(w, r)
	})
	o := options(s)
	o.Gzip, o.BatchPoints, o.BatchBytes = false, 100_000, 16<<20
	r := start(t, o, "")
	r.add(0, 100_000)
	r.arrive(s, 100_000)
}
