package httpd

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Limits of replies that are generated in memory; see space for the others.
const (
	makeTimeout = 10 * time.Second // waiting time for replies in progress
	pageBytes   = 64 << 10
)

// replies generates replies completely before the first byte is sent, so that a slow reader does not delay the generation
// of others. When too many bytes wait to be sent, the oldest replies of the source with the most such bytes are cut off.
type replies struct {
	log    *slog.Logger
	space  space
	making chan struct{}

	mu      sync.Mutex
	sources map[netip.Addr]*makers
	waiting map[*reply]struct{}
	bytes   int // of all waiting replies
	turn    uint64
}

// makers are the requests of one source whose replies are generated or wait for that.
type makers struct {
	making   chan struct{}
	requests int
}

// reply is a reply that is being sent.
type reply struct {
	from      netip.Addr
	turn      uint64
	left      int // bytes to send; replies.mu guards it
	truncated func()
}

func newReplies(log *slog.Logger, r space) *replies {
	return &replies{
		log: log, space: r, making: make(chan struct{}, r.making),
		sources: map[netip.Addr]*makers{}, waiting: map[*reply]struct{}{},
	}
}

// whole sends the output of next after next has returned.
func (a *replies) whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var from netip.Addr
		if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			from = sourceAt(at)
		}
		p, err := a.make(next, from, w.Header(), r)
		if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests at one time, try again later.", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(p.size))
		w.WriteHeader(p.status)
		if r.Method == http.MethodHead {
			return
		}
		if err := a.send(w, p, from); err != nil {
			a.log.Debug("Reply not sent", "url", r.URL.Path, "to", r.RemoteAddr, "err", err)
			panic(http.ErrAbortHandler) // the client must detect the incomplete reply
		}
	})
}

// make runs next when a place is free.
func (a *replies) make(next http.Handler, from netip.Addr, h http.Header, r *http.Request) (*pages, error) {
	ctx, cancel := context.WithTimeout(r.Context(), makeTimeout)
	defer cancel()
	m := a.enter(from)
	defer a.leave(from, m)
	for _, place := range []chan struct{}{m.making, a.making} {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p := &pages{header: h, status: http.StatusOK}
	next.ServeHTTP(p, r)
	return p, nil
}

func (a *replies) enter(from netip.Addr) *makers {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.sources[from]
	if m == nil {
		m = &makers{making: make(chan struct{}, a.space.makingFor)}
		a.sources[from] = m
	}
	m.requests++
	return m
}

func (a *replies) leave(from netip.Addr, m *makers) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.requests--; m.requests == 0 {
		delete(a.sources, from)
	}
}

// send writes the pages and releases each one after it is written.
func (a *replies) send(w http.ResponseWriter, p *pages, from netip.Addr) error {
	control := http.NewResponseController(w)
	one := &reply{from: from, left: len(p.all) * pageBytes, truncated: func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }}
	a.addPending(one)
	defer a.sent(one, len(p.all)*pageBytes)
	for i, page := range p.all {
		if _, err := w.Write(page); err != nil {
			return err
		}
		p.all[i] = nil
		a.sent(one, pageBytes)
	}
	return nil
}

// addPending counts a reply, and cuts off others while too many bytes wait.
func (a *replies) addPending(one *reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.bytes+one.left > a.space.mayWait(one.left) && len(a.waiting) > 0 {
		worst := a.worst()
		a.bytes -= worst.left
		worst.left = 0
		delete(a.waiting, worst)
		worst.truncated()
	}
	a.turn++
	one.turn = a.turn
	a.waiting[one] = struct{}{}
	a.bytes += one.left
}

// worst is the oldest reply of the source with the most waiting bytes.
func (a *replies) worst() (first *reply) {
	formatBytes := map[netip.Addr]int{}
	for one := range a.waiting {
		formatBytes[one.from] += one.left
	}
	for one := range a.waiting {
		if first == nil || formatBytes[one.from] > formatBytes[first.from] || formatBytes[one.from] == formatBytes[first.from] && one.turn < first.turn {
			first = one
		}
	}
	return first
}

// sent subtracts n bytes from a reply, at most those left; at zero the reply is done and cannot be cut off any more.
func (a *replies) sent(one *reply, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = min(n, one.left)
	one.left -= n
	a.bytes -= n
	if one.left == 0 {
		delete(a.waiting, one)
	}
}

// pages is an http.ResponseWriter that stores the reply in chunks, which are not copied when the reply grows.
type pages struct {
	header http.Header
	status int
	all    [][]byte
	size   int
}

// Header is the header of the reply.
func (p *pages) Header() http.Header { return p.header }

// WriteHeader stores the status.
func (p *pages) WriteHeader(status int) { p.status = status }

// Write stores b; it never fails.
func (p *pages) Write(b []byte) (int, error) {
	p.size += len(b)
	for rest := b; len(rest) > 0; {
		last := len(p.all) - 1
		if last < 0 || len(p.all[last]) == cap(p.all[last]) {
			p.all = append(p.all, make([]byte, 0, pageBytes))
			last++
		}
		page := p.all[last]
		n := copy(page[len(page):cap(page)], rest)
		p.all[last], rest = page[:len(page)+n], rest[n:]
	}
	return len(b), nil
}
