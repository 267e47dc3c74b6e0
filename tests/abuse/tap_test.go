package abuse

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// tap is a place on the path that passes on all that comes, and keeps it. Its far socket has the
// address that the reflector knows the sender by, its near one that of the reflector; elsewhere is another host's.
type tap struct {
	near, far, elsewhere *net.UDPConn
	// asked is called with each question before it goes on, and answered with each answer; what answered
	// keeps back does not go on.
	asked    func(tp *tap, number int, b []byte)
	answered func(tp *tap, number int, b []byte) (keep bool)

	mu                 sync.Mutex
	sender             netip.AddrPort
	questions, answers [][]byte
}

func (tp *tap) open(t *testing.T, host netip.Addr, to netip.AddrPort) {
	t.Helper()
	tp.near = listen(t, netip.AddrPortFrom(host, 0))
	for _, c := range []**net.UDPConn{&tp.far, &tp.elsewhere} {
		var err error
		if *c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		b := make([]byte, 1<<16)
		for number := 0; ; number++ {
			n, from, err := tp.near.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			tp.mu.Lock()
			tp.sender = from
			tp.questions = append(tp.questions, append([]byte(nil), b[:n]...))
			tp.mu.Unlock()
			if tp.asked != nil {
				tp.asked(tp, number, b[:n])
			}
			tp.ask(b[:n])
		}
	})
	ended := make(chan struct{})
	running.Go(func() {
		b := make([]byte, 1<<16)
		for number := 0; ; {
			n, err := tp.far.Read(b)
			select {
			case <-ended:
				return
			default:
			}
			if err != nil {
				continue // no reflector runs
			}
			tp.mu.Lock()
			tp.answers = append(tp.answers, append([]byte(nil), b[:n]...))
			tp.mu.Unlock()
			if tp.answered == nil || !tp.answered(tp, number, b[:n]) {
				tp.tell(b[:n])
			}
			number++
		}
	})
	t.Cleanup(func() {
		close(ended)
		tp.near.Close()
		tp.far.Close()
		tp.elsewhere.Close()
		running.Wait()
	})
}

// ask sends a question from the sender's address.
func (tp *tap) ask(b []byte) {
	if _, err := tp.far.Write(b); err != nil {
		_, _ = tp.far.Write(b) // that error was the one before's
	}
}

// tell sends an answer from the reflector's address.
func (tp *tap) tell(b []byte) {
	tp.mu.Lock()
	to := tp.sender
	tp.mu.Unlock()
	_, _ = tp.near.WriteToUDPAddrPort(b, to)
}

// answeredAll waits until each question that went on has its answer. It is for asked, before the reflector is
// stopped: what is with the reflector then is rightly lost, and on a busy machine that may be some.
func (tp *tap) answeredAll(t *testing.T) {
	t.Helper()
	if !await.Within(20*time.Second, func() bool {
		tp.mu.Lock()
		defer tp.mu.Unlock()
		return len(tp.answers) >= len(tp.questions)-1 // the last one has not gone on
	}) {
		t.Errorf("%d questions have %d answers", len(tp.all(&tp.questions))-1, len(tp.all(&tp.answers)))
	}
}

// question is one of before.
func (tp *tap) question(i int) []byte {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.questions[i]
}

// all is every question, or every answer, of before.
func (tp *tap) all(of *[][]byte) [][]byte {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return (*of)[:len(*of):len(*of)]
}

// steal asks question i from elsewhere, and gives the answer, or nil.
func (tp *tap) steal(i int) []byte {
	_, _ = tp.elsewhere.Write(tp.question(i))
	b := make([]byte, 1<<16)
	_ = tp.elsewhere.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n, err := tp.elsewhere.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}
