package loan

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/wait"
)

// Options are what a Server is made of. All but Group are needed.
type Options struct {
	// Socket is the path of the UNIX socket. Its directory is made if need be.
	Socket string
	// Group is the group whose members may ask, besides this user and root; empty: none.
	Group string
	// Links are lent.
	Links *sched.Links
	Sink  metric.Sink
	Log   *slog.Logger
	// Find says where a test belongs. Its error is told to whoever asks.
	Find func(Ask) (Place, error)

	silence, linger time.Duration // of tests
}

// Server lends links. Make one with NewServer.
type Server struct {
	options Options

	mu       sync.Mutex
	lingered map[*shown]*time.Timer
}

const (
	// maxLoans bounds the connections at one time.
	maxLoans = 32
	// again is how long to wait after the socket could not be opened.
	again = 10 * time.Second
	// linger is how long the series of a test stay after it: the rules look back 6 min.
	linger = 7 * time.Minute
)

// NewServer opens nothing; Run does.
func NewServer(o Options) *Server {
	if o.silence == 0 {
		o.silence = Silence
	}
	if o.linger == 0 {
		o.linger = linger
	}
	return &Server{options: o, lingered: map[*shown]*time.Timer{}}
}

// Run lends until ctx ends; that ends the loans, too. A socket that cannot be opened is
// logged, and tried again.
func (s *Server) Run(ctx context.Context) error {
	defer s.forget()
	told := ""
	for {
		l, end, err := listen(ctx, s.options.Socket, s.options.Group)
		if err == nil {
			told = ""
			err = s.accept(ctx, l)
			end()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err.Error() != told {
			told = err.Error()
			s.options.Log.Warn("Heavy tests from this host's terminals cannot ask for links, they run beside the agent's own", "err", err)
		}
		if !wait.For(ctx, again) {
			return nil
		}
	}
}

// accept serves connections until ctx ends or the socket fails, and returns when all have
// ended.
func (s *Server) accept(ctx context.Context, l *net.UnixListener) error {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	places := make(chan struct{}, maxLoans)
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
		default:
			_ = write(conn, reply{Word: wordRefused, Error: "the agent has too many heavy tests waiting for its links; try again later"})
			_ = conn.Close() // it has been told
			continue
		}
		serving.Go(func() {
			defer func() { <-places }()
			s.serve(ctx, conn)
		})
	}
}

// shown is what a test shows in the metrics.
type shown struct {
	running metric.Series
	sent    [2]metric.Series
}

func (s *Server) show(p Place) *shown {
	one := &shown{running: s.options.Sink.Series(metric.TestRunning, p.Path, p.Probe, p.Link)}
	for i, way := range []string{"forward", "reverse"} {
		one.sent[i] = s.options.Sink.Series(metric.RunBytes, p.Path, p.Probe, way)
	}
	return one
}

func (o *shown) close() {
	for _, one := range []metric.Series{o.running, o.sent[0], o.sent[1]} {
		one.Close()
	}
}

// leave closes series after a while.
func (s *Server) leave(one *shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lingered[one] = time.AfterFunc(s.options.linger, func() {
		s.mu.Lock()
		_, open := s.lingered[one]
		delete(s.lingered, one)
		s.mu.Unlock()
		if open {
			one.close()
		}
	})
}

// forget closes them now.
func (s *Server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one, timer := range s.lingered {
		timer.Stop()
		delete(s.lingered, one)
		one.close()
	}
}

var errProtocol = errors.New("loan: a message that does not belong here")
