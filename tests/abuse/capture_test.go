package abuse

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// capture forwards all packets of a path and stores them. Its remote socket has the sender's address toward the
// reflector, its local one that of the reflector toward the sender; elsewhere is the socket of another host.
type capture struct {
	local, remote, elsewhere *net.UDPConn
	// asked is called with each request before it is forwarded, and answered with each reply; a reply for which
	// answered returns true is not forwarded.
	asked    func(tp *capture, number int, b []byte)
	answered func(tp *capture, number int, b []byte) (keep bool)

	mu                sync.Mutex
	sender            netip.AddrPort
	requests, replies [][]byte
}

func (tp *capture) open(t *testing.T, host netip.Addr, to netip.AddrPort) {
	t.Helper()
	tp.local = listen(t, netip.AddrPortFrom(host, 0))
	for _, c := range []**net.UDPConn{&tp.remote, &tp.elsewhere} {
		var err error
		if *c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		b := make([]byte, 1<<16)
		for number := 0; ; number++ {
			n, from, err := tp.local.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			tp.mu.Lock()
			tp.sender = from
			tp.requests = append(tp.requests, append([]byte(nil), b[:n]...))
			tp.mu.Unlock()
			if tp.asked != nil {
				tp.asked(tp, number, b[:n])
			}
			tp.sendRequest(b[:n])
		}
	})
	ended := make(chan struct{})
	running.Go(func() {
		b := make([]byte, 1<<16)
		for number := 0; ; {
			n, err := tp.remote.Read(b)
			select {
			case <-ended:
				return
			default:
			}
			if err != nil {
				continue // no reflector runs
			}
			tp.mu.Lock()
			tp.replies = append(tp.replies, append([]byte(nil), b[:n]...))
			tp.mu.Unlock()
			if tp.answered == nil || !tp.answered(tp, number, b[:n]) {
				tp.sendReply(b[:n])
			}
			number++
		}
	})
	t.Cleanup(func() {
		close(ended)
		tp.local.Close()
		tp.remote.Close()
		tp.elsewhere.Close()
		running.Wait()
	})
}

// sendRequest sends a request from the sender's address.
func (tp *capture) sendRequest(b []byte) {
	if _, err := tp.remote.Write(b); err != nil {
		_, _ = tp.remote.Write(b) // an error here belongs to the previous packet
	}
}

// sendReply sends a reply from the reflector's address.
func (tp *capture) sendReply(b []byte) {
	tp.mu.Lock()
	to := tp.sender
	tp.mu.Unlock()
	_, _ = tp.local.WriteToUDPAddrPort(b, to)
}

// answeredAll waits until each forwarded request has its reply. asked calls it before it stops the reflector: requests
// in progress there are lost, on a busy machine several.
func (tp *capture) answeredAll(t *testing.T) {
	t.Helper()
	if !await.Within(20*time.Second, func() bool {
		tp.mu.Lock()
		defer tp.mu.Unlock()
		return len(tp.replies) >= len(tp.requests)-1 // the last one is not forwarded yet
	}) {
		t.Errorf("%d requests have %d replies", len(tp.all(&tp.requests))-1, len(tp.all(&tp.replies)))
	}
}

// request returns stored request i.
func (tp *capture) request(i int) []byte {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.requests[i]
}

// all returns a copy of all stored requests, or of all replies.
func (tp *capture) all(of *[][]byte) [][]byte {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return (*of)[:len(*of):len(*of)]
}

// steal sends request i from another host, and returns the reply, or nil.
func (tp *capture) steal(i int) []byte {
	_, _ = tp.elsewhere.Write(tp.request(i))
	b := make([]byte, 1<<16)
	_ = tp.elsewhere.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n, err := tp.elsewhere.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}
