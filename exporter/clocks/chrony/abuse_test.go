package chrony

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/tests/testseed"
)

// abuser is a misbehaving chronyd: replies returns what to send for a request.
type abuser struct {
	replies func(request []byte) [][]byte
	// endless: it sends the replies repeatedly, without further requests.
	endless  bool
	mu       sync.Mutex
	dials    atomic.Int64
	received atomic.Int64
	sent     atomic.Int64
	bytes    atomic.Int64
}

func (a *abuser) dial(address) (net.Conn, error) {
	a.dials.Add(1)
	here, there := net.Pipe()
	go a.serve(there)
	return here, nil
}

// next is called by the goroutines of several connections.
func (a *abuser) next(request []byte) [][]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.replies(request)
}

func (a *abuser) serve(conn net.Conn) {
	defer conn.Close()
	request := make([]byte, 1024)
	for {
		n, err := conn.Read(request)
		if err != nil {
			return
		}
		a.received.Add(1)
		for once := true; once || a.endless; once = false {
			for _, reply := range a.next(request[:n]) {
				if _, err := conn.Write(reply); err != nil {
					return
				}
				a.sent.Add(1)
				a.bytes.Add(int64(len(reply)))
			}
		}
	}
}

// forged is a correct reply of chronyd, to be altered.
func forged(request []byte) []byte {
	return newDaemon(clocktest.NewClock()).reply(request)
}

// abuses are ways to hang, to send false replies and to flood.
func abuses(random *rand.Rand) map[string]*abuser {
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	one := func(f func(reply []byte) []byte) *abuser {
		return &abuser{replies: func(q []byte) [][]byte { return [][]byte{f(forged(q))} }}
	}
	return map[string]*abuser{
		"hangs":               {replies: func([]byte) [][]byte { return nil }},
		"truncates":           one(func(r []byte) []byte { return r[:random.IntN(len(r))] }),
		"oversizes":           one(func(r []byte) []byte { return append(r, noise(1+random.IntN(8000))...) }),
		"replies to another":  one(func(r []byte) []byte { r[16] ^= 0x80; return r }),
		"random bytes":        one(func(r []byte) []byte { return noise(random.IntN(600)) }),
		"one byte is wrong":   one(func(r []byte) []byte { r[random.IntN(len(r))] ^= byte(1 + random.IntN(255)); return r }),
		"random data":         one(func(r []byte) []byte { return append(r[:replyHeadBytes], noise(len(r)-replyHeadBytes)...) }),
		"empty datagrams":     {replies: func([]byte) [][]byte { return [][]byte{{}, {}, {}} }},
		"many sources":        {replies: manySources},
		"floods with noise":   {endless: true, replies: func(q []byte) [][]byte { return [][]byte{noise(100)} }},
		"floods with replies": {endless: true, replies: func(q []byte) [][]byte { return [][]byte{forged(q)} }},
	}
}

// manySources reports four billion sources, none of them selected.
func manySources(q []byte) [][]byte {
	r := forged(q)
	switch q[5] {
	case commandSources:
		copy(r[replyHeadBytes:], "\xff\xff\xff\xff")
	case commandSourceData:
		r[replyHeadBytes+25] = 4 // state: not selected
	}
	return [][]byte{r}
}

// pace requests the clock's quality as the pacer's goroutine does, ten times a second, and fails if the time of the synctest
// bubble advances meanwhile: it advances only while all goroutines wait, so a call that blocks is detected.
func pace(t *testing.T, m *Monitor, c *clocktest.Clock, d time.Duration) {
	t.Helper()
	// simulated time (synctest)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		before := time.Now()
		q := m.Quality(c.Read().Wall)
		if took := time.Since(before); took != 0 {
			t.Fatalf("Quality blocked for %v", took)
		}
		if q.Synchronized() && q.Bound.Error < 0 {
			t.Fatalf("a bound below zero: %+v", q)
		}
	}
}

func TestNoAbuseBlocksTheProbesOrMakesTheMonitorBusy(t *testing.T) {
	seed := testseed.Of(t)
	for name, a := range abuses(rand.New(rand.NewPCG(seed, 0))) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, sink := clocktest.NewClock(), &metrictest.Sink{}
				m, stop := abused(t, a, c, sink)
				const lasts = 10 * time.Minute
				pace(t, m, c, lasts)
				// One tracking request a second, also at both ends of the time; the sources once a minute (64 of them at most).
				most := int64(lasts/time.Second+1) + int64(lasts/time.Minute+1)*(maxSources+1)
				if n := a.received.Load(); n < 50 || n > most {
					t.Errorf("%d requests in %v, want 50 to %d", n, lasts, most)
				}
				if n := a.dials.Load(); n > int64(lasts/time.Second) {
					t.Errorf("%d connections in %v", n, lasts)
				}
				// The number of datagrams read per request is limited.
				if n, most := a.sent.Load(), a.received.Load()*(maxDiscards+1); n > most {
					t.Errorf("%d datagrams were read for %d requests", n, a.received.Load())
				}
				checkCounted(t, name, a, sink)
				stop()
			})
		})
	}
}

// checkCounted: datagrams that are not a reply are counted as a failure, once per request.
func checkCounted(t *testing.T, name string, a *abuser, sink *metrictest.Sink) {
	t.Helper()
	failed := 0.0
	for _, n := range sink.Present(metric.ClockQueryFailures.Name) {
		failed += n
	}
	if failed > float64(a.received.Load()) {
		t.Errorf("%v failures of %d requests", failed, a.received.Load())
	}
	if harmless := name == "many sources" || name == "floods with replies" || name == "random data" ||
		name == "one byte is wrong"; failed == 0 && !harmless {
		t.Error("no failure was counted")
	}
}

// abused is a running monitor of an abuser.
func abused(t *testing.T, a *abuser, c *clocktest.Clock, sink metric.Sink) (m *Monitor, stop func()) {
	t.Helper()
	m, err := New(Options{Sink: sink, Steps: clock.StepOptions{Read: c.Read, Watch: waitOnly}, dial: a.dial})
	if err != nil {
		t.Fatal(err)
	}
	stop = clocktest.Start(t, m.Run, nil)
	synctest.Wait()
	return m, stop
}

func waitOnly(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

func TestAbuseLeavesMemoryAndGoroutinesFlat(t *testing.T) {
	random := rand.New(rand.NewPCG(testseed.Of(t), 2))
	for name, a := range abuses(random) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clocktest.NewClock()
				m, stop := abused(t, a, c, metric.Discard{})
				defer stop()
				pace(t, m, c, 2*time.Minute)
				heap, goroutines := inUse()
				pace(t, m, c, 20*time.Minute)
				heapThen, goroutinesThen := inUse()
				if grown := heapThen - heap; grown > 256<<10 {
					t.Errorf("the heap grew by %d bytes in 20 minutes (%d bytes were sent)", grown, a.bytes.Load())
				}
				if goroutinesThen > goroutines+2 {
					t.Errorf("%d goroutines, then %d", goroutines, goroutinesThen)
				}
			})
		})
	}
}

// inUse is the heap in bytes and the number of goroutines.
func inUse() (heap int64, goroutines int) {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc), runtime.NumGoroutine()
}

// stuck is a socket whose peer reads nothing: even a write blocks.
type stuck struct {
	net.Conn
	deadline chan struct{}
}

func (s *stuck) SetDeadline(at time.Time) error {
	d := s.deadline
	time.AfterFunc(time.Until(at), func() { d <- struct{}{} })
	return nil
}

func (s *stuck) Write([]byte) (int, error) {
	<-s.deadline
	return 0, errors.New("i/o timeout")
}

func (s *stuck) Close() error { return nil }

func TestSocketThatIsNeverReadBlocksNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sink := clocktest.NewClock(), &metrictest.Sink{}
		dials := 0
		m, err := New(Options{Sink: sink, Steps: clock.StepOptions{Read: c.Read, Watch: waitOnly}, dial: func(address) (net.Conn, error) {
			dials++
			return &stuck{deadline: make(chan struct{}, 1)}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		stop := clocktest.Start(t, m.Run, sink)
		pace(t, m, c, time.Minute)
		stop()
		if dials < 3 || dials > 15 {
			t.Errorf("%d connections in a minute", dials)
		}
	})
}

// FuzzConversation replies to a monitor's requests with arbitrary datagrams, one after another: tracking, sources, each
// source.
func FuzzConversation(f *testing.F) {
	tracking := correctTracking()
	f.Add(tracking, []byte{0, 0, 0, 1}, []byte{0, 0}, uint8(0))
	f.Add(tracking, []byte{255, 255, 255, 255}, []byte{0, 24}, uint8(4))
	f.Add([]byte("noise"), []byte{}, []byte{}, uint8(255))
	f.Fuzz(func(t *testing.T, data, sources, source []byte, spoil uint8) {
		asked := 0
		reply := func(q []byte) []byte {
			asked++
			r := forged(q)
			copy(r[replyHeadBytes:], map[byte][]byte{
				commandTracking: data, commandSources: sources, commandSourceData: source,
			}[q[5]])
			if spoil != 0 && asked%int(spoil) == 0 {
				r = append(r[:int(spoil)%len(r)], data...)
			}
			return r
		}
		m, err := New(Options{dial: func(address) (net.Conn, error) { return &scripted{respond: reply}, nil }})
		if err != nil {
			t.Fatal(err)
		}
		a := newPoller(m)
		defer a.drop()
		for range 4 {
			if pause := a.pollOnce(t.Context()); pause < 0 || pause > defaultMaxBackOff {
				t.Fatalf("a pause of %v", pause)
			}
			if q := m.Quality(0); q.Synchronized() && q.Bound.Error < 0 {
				t.Fatalf("%+v", q)
			}
		}
		if asked > 4*(2+maxSources) {
			t.Fatalf("%d requests", asked)
		}
	})
}

// scripted replies at once.
type scripted struct {
	net.Conn
	respond func(request []byte) []byte
	reply   []byte
}

func (s *scripted) SetDeadline(time.Time) error { return nil }
func (s *scripted) Close() error                { return nil }

func (s *scripted) Write(request []byte) (int, error) {
	s.reply = s.respond(request)
	return len(request), nil
}

func (s *scripted) Read(b []byte) (int, error) {
	if s.reply == nil {
		return 0, fmt.Errorf("read: %w", context.DeadlineExceeded)
	}
	n := copy(b, s.reply)
	s.reply = nil
	return n, nil
}
