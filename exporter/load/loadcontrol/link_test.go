package loadcontrol

import (
	"net"
	"sync"
	"testing"
	"time"
)

// link is a simulated network between two ends, for synctest, with a delay and a queue without limit.
// freeze drops all data silently; cut closes both ends.
type link struct {
	ends  [2]net.Conn // those of the two programs
	inner [2]net.Conn // the network's side of each
	tasks sync.WaitGroup

	mu     sync.Mutex
	delay  [2]time.Duration // of data from end 0 and end 1
	frozen bool
}

// chunk is sent data with its time of arrival.
type chunk struct {
	data []byte
	at   time.Time
}

func newLink(t *testing.T) *link {
	t.Helper()
	l := &link{}
	for i := range l.ends {
		l.ends[i], l.inner[i] = net.Pipe()
	}
	for i := range l.ends {
		queue := make(chan chunk, 1<<16)
		l.tasks.Go(func() { l.take(i, queue) })
		l.tasks.Go(func() { l.give(1-i, queue) })
	}
	t.Cleanup(func() {
		l.cut()
		l.tasks.Wait()
	})
	return l
}

// take reads the data of an end.
func (l *link) take(from int, queue chan<- chunk) {
	defer close(queue)
	for {
		b := make([]byte, 4096)
		n, err := l.inner[from].Read(b)
		if err != nil {
			return
		}
		l.mu.Lock()
		at := time.Now().Add(l.delay[from])
		if l.frozen {
			at = time.Time{}
		}
		l.mu.Unlock()
		if !at.IsZero() {
			queue <- chunk{b[:n], at}
		}
	}
}

// give delivers data in order, then closes.
func (l *link) give(to int, queue <-chan chunk) {
	for c := range queue {
		// simulated time (synctest)
		time.Sleep(time.Until(c.at))
		if l.passes() {
			_, _ = l.inner[to].Write(c.data) // fails if that end has closed
		}
	}
	if l.passes() {
		_ = l.inner[to].Close()
	}
}

// passes returns whether data is delivered.
func (l *link) passes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.frozen
}

// slow sets the delay of data from one end.
func (l *link) slow(from int, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay[from] = delay
}

// freeze drops all data from now on.
func (l *link) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
}

// cut closes the connection at both ends.
func (l *link) cut() {
	for _, c := range l.inner {
		_ = c.Close()
	}
}

// pair returns a client end and a load server end of one link.
func pair(t *testing.T) (client, loadServer *Conn, l *link) {
	t.Helper()
	l = newLink(t)
	client, loadServer = newConn(l.ends[0], nil, true), newConn(l.ends[1], nil, false)
	t.Cleanup(func() {
		client.Close()
		loadServer.Close()
	})
	return client, loadServer, l
}

// raw returns a connection with a peer whose bytes the test writes.
func raw(t *testing.T, client bool) (c *Conn, peer net.Conn) {
	t.Helper()
	l := newLink(t)
	c = newConn(l.ends[0], nil, client)
	t.Cleanup(func() {
		c.Close()
		l.ends[1].Close()
	})
	return c, l.ends[1]
}
