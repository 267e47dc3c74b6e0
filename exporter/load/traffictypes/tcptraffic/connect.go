package tcptraffic

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/net/tcpsocket"
)

// unproved is the number of connections beyond those of the flows that may be open without a cookie.
const unproved = 8

// connect listens for the flows of a transfer until all have proved their cookie.
func (s *serving) connect(x *serve) ([]connection, error) {
	ctx, cancel := context.WithTimeout(x.ctx, connectTime)
	defer cancel()
	defer x.unlisten() // a late connection is reset by the kernel
	g := &gathering{serve: x, conns: make([]connection, len(x.Plan.Flows)), missing: len(x.Plan.Flows), full: cancel}
	m := listening{ID: x.ID, Cookie: x.cookie}
	for _, f := range x.Plan.Flows {
		m.Ports = append(m.Ports, uint16(x.listeners[f.listening(x.sends())].Addr().(*net.TCPAddr).Port))
	}
	for o, l := range x.listeners {
		g.tasks.Go(func() { g.accept(ctx, o, l) })
	}
	_ = s.host.SendMessage(sayListening, m, nil) // an error ends the session, which reports it
	<-ctx.Done()
	x.unlisten()
	g.tasks.Wait()
	if g.missing == 0 {
		return g.conns, nil
	}
	for _, c := range g.conns {
		if c.Conn != nil {
			c.Abort()
		}
	}
	err := fmt.Errorf("%d of %d connections did not arrive within %v", g.missing, len(g.conns), connectTime)
	if x.ctx.Err() != nil {
		err = fmt.Errorf("the transfer was canceled before %d of %d connections arrived", g.missing, len(g.conns))
	}
	if g.failed != nil {
		err = fmt.Errorf("%w: %w", err, g.failed)
	}
	return nil, err
}

// gathering collects the connections of a transfer.
type gathering struct {
	*serve
	full  func() // all have arrived
	tasks sync.WaitGroup

	mu      sync.Mutex
	waiting []*net.TCPConn // without a proof, the oldest first
	conns   []connection   // by index of the flow
	missing int
	failed  error // the last one of accept; nil: it did not fail
}

func (g *gathering) accept(ctx context.Context, o tcpsocket.Options, l net.Listener) {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as no free file descriptor
			g.mu.Lock()
			g.failed = err
			g.mu.Unlock()
			if !ctxtime.Sleep(ctx, acceptPause) {
				return
			}
			continue
		}
		one := nc.(*net.TCPConn)
		g.await(one)
		g.tasks.Go(func() {
			g.admit(ctx, o, one)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.waiting = slices.DeleteFunc(g.waiting, func(w *net.TCPConn) bool { return w == one })
		})
	}
}

// await adds a connection, and resets the oldest one if there are too many: those of others, which send no cookie, must not
// keep the client's out.
func (g *gathering) await(one *net.TCPConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting = append(g.waiting, one); len(g.waiting) > len(g.conns)+unproved {
		_ = g.waiting[0].SetLinger(0) // a closed connection has ended
		_ = g.waiting[0].Close()
		g.waiting = g.waiting[1:]
	}
}

var errProof = errors.New("the connection did not prove its cookie")

// admit adds a connection whose cookie is right and whose flow has this listening socket. It resets others.
func (g *gathering) admit(ctx context.Context, o tcpsocket.Options, nc *net.TCPConn) {
	stop := context.AfterFunc(ctx, func() { _ = nc.SetReadDeadline(time.Unix(1, 0)) }) // a closed one has ended
	_ = nc.SetReadDeadline(time.Now().Add(proofTime))
	proof := make([]byte, cookieBytes+1)
	_, err := io.ReadFull(nc, proof)
	index := int(proof[cookieBytes])
	if err == nil && (!stop() || subtle.ConstantTimeCompare(proof[:cookieBytes], g.cookie) != 1 || index >= len(g.Plan.Flows) || g.Plan.Flows[index].listening(g.sends()) != o) {
		err = errProof
	}
	var c *tcpsocket.Conn
	if err == nil {
		c, err = g.Plan.Flows[index].at(g.sends()).Accepted(nc)
	}
	if err == nil {
		_ = nc.SetReadDeadline(time.Time{})
		err = g.add(index, g.Plan.connection(index, c, g.sends(), 0))
	}
	if err != nil {
		_ = nc.SetLinger(0) // the peer of a closed connection has ended it
		_ = nc.Close()
	}
}

func (g *gathering) add(index int, c connection) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns[index].Conn != nil {
		return errProof
	}
	g.conns[index] = c
	if g.missing--; g.missing == 0 {
		g.full()
	}
	return nil
}
