package gpsd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/time/rate"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
)

const (
	// timeout is the time of silence after which gpsd gets a request, and the time that it has to reply: up to 3 s have
	// been observed while it probes a new device.
	timeout = 15 * time.Second
	// writeTimeout limits the time to send a request of 200 bytes.
	writeTimeout = 5 * time.Second
	// maxQuoted limits the quotation of gpsd's texts in the log.
	maxQuoted = 200
	// protocol is the supported version of gpsd's protocol: gpsd 3.20 to 3.27.
	protocol = 3
)

// errNoReply is the error of a connection on which gpsd does not reply.
var errNoReply = errors.New("gpsd: no reply; gpsd hangs, or the peer is not gpsd")

// session is one connection.
type session struct {
	*Client
	conn         net.Conn
	request      []byte
	pace         *paced
	lines        *lines
	watchSent    time.Time // when WATCH was sent last
	reported     time.Time // time of the receiver's last report
	answered     bool      // gpsd has sent a valid line since the request
	replied      bool      // the same since the connection was made
	lastError    string    // its last ERROR
	loggedErrors int       // number of logged errors
	foreign      bool      // it has reported another protocol version
	malformed    bool      // a malformed line was logged
}

// request is the request to gpsd. gpsd 3.22 replies with DEVICES and WATCH; a further request makes it retry devices that it
// could not open.
func request(device string) []byte {
	if device != "" {
		device = `,"device":"` + device + `"` // checkDevice: nothing to escape
	}
	return []byte(`?WATCH={"enable":true,"json":true,"pps":true,"timing":true` + device + "};\n")
}

// serve reads until the connection ends, gpsd hangs or ctx ends. The error is never nil.
func (s *session) serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = s.conn.Close() })() // ends a read
	defer func() { _ = s.conn.Close() }()
	s.pace = &paced{ctx, s.conn, rate.NewLimiter(paceLimit, paceLimit)}
	s.lines = newLines(s.pace, maxLine)
	if err := s.sendWatch(); err != nil {
		return err
	}
	for {
		if err := s.pace.wait(); err != nil {
			return err
		}
		line, err := s.lines.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			line, err = nil, nil // time for a request
		}
		if err := s.read(line, err); err != nil {
			return err
		}
		if min(time.Since(s.reported), time.Since(s.watchSent)) < s.options.timeout {
			continue
		}
		if !s.answered {
			return errNoReply
		}
		if err := s.sendWatch(); err != nil {
			return err
		}
	}
}

// sendWatch sends the request.
func (s *session) sendWatch() error {
	s.watchSent, s.answered = time.Now(), false
	_ = s.conn.SetWriteDeadline(s.watchSent.Add(writeTimeout)) // the write reports a closed connection
	_ = s.conn.SetReadDeadline(s.watchSent.Add(s.options.timeout))
	if _, err := s.conn.Write(s.request); err != nil {
		return fmt.Errorf("gpsd: cannot send WATCH: %w", err)
	}
	return nil
}

// read handles one line, or the error in its place. It returns errors of the connection only.
func (s *session) read(line []byte, err error) error {
	var report any
	if err == nil {
		s.pace.charge(lineCost)
		if len(line) == 0 {
			return nil // an empty line, or none
		}
		report, err = parse(line)
	}
	if err != nil {
		l, ofLine := errors.AsType[*lineError](err)
		if !ofLine {
			return fmt.Errorf("gpsd: the connection ended: %w", err)
		}
		s.series.Series(metric.GNSSMalformed, string(l.reason)).Add(1)
		if !s.malformed {
			s.malformed = true
			s.options.Log.Warn("Malformed line from gpsd", "receiver", s.options.Name, "err", quote(err.Error()))
		}
		return nil
	}
	s.take(report, line)
	return nil
}

// take applies a report to the receiver's state, and its line to the track.
func (s *session) take(report any, line []byte) {
	now := time.Now()
	s.answered, s.replied = true, true
	switch m := report.(type) {
	case *version:
		if m.Major != protocol && !s.foreign {
			s.foreign = true
			s.options.Log.Warn("Unsupported protocol version of gpsd", "receiver", s.options.Name,
				"release", quote(m.Release), "protocol", m.Major, "known", protocol)
		}
	case *errorReport:
		if m.Message != s.lastError && s.loggedErrors < maxLoggedErrors {
			s.lastError = m.Message
			s.loggedErrors++
			s.options.Log.Warn("Error message from gpsd", "receiver", s.options.Name, "message", quote(m.Message))
		}
	}
	if s.Client.take(report, now) {
		s.reported = now
		_ = s.conn.SetReadDeadline(now.Add(s.options.timeout))
		s.track(report, line, now)
	}
}

// track records the position in a TPV with a fix if there is a listener.
func (s *session) track(report any, line []byte, now time.Time) {
	to := s.options.Recorder.Tables()
	p, ok := report.(*position)
	if !ok || Fix(*p.Mode) < Fix2D || !to.HasListeners() {
		return
	}
	if one, ok := point(line, now); ok {
		to.Record(&one)
	}
}

// maxLoggedErrors limits the logged errors of a connection.
const maxLoggedErrors = 8

// quote limits a text for the log.
func quote(text string) string {
	if len(text) > maxQuoted {
		return text[:maxQuoted] + "..."
	}
	return text
}

// maxLine is the maximum length of a line. gpsd's own limit for a report is 10240 bytes (GPS_JSON_RESPONSE_MAX), 1536 in
// the manual.
const maxLine = 64 << 10

// lines splits a stream into lines, in a buffer of fixed size. The buffer is kept on an error of the stream: after a
// deadline, reading continues where it was.
type lines struct {
	*bufio.Reader
	consumed int  // bytes of the last returned line, to discard
	skipping bool // skipping the rest of a line that is too long
}

// newLines splits a stream into lines of at most so many bytes, 15 or more, newline not counted.
func newLines(stream io.Reader, most int) *lines {
	return &lines{Reader: bufio.NewReaderSize(stream, most+1)}
}

// next returns the next line without its newline, valid until the next call. A line that is too long is one *lineError; any
// other error is that of the stream. Data after the last newline of the stream is not a line.
func (l *lines) next() ([]byte, error) {
	_, _ = l.Discard(l.consumed) // no error: it is buffered
	l.consumed = 0
	for searched := 0; ; {
		held, _ := l.Peek(l.Buffered())
		end := bytes.IndexByte(held[searched:], '\n')
		switch {
		case end >= 0 && !l.skipping:
			l.consumed = searched + end + 1
			return bytes.TrimSuffix(held[:l.consumed-1], []byte("\r")), nil
		case end >= 0:
			_, _ = l.Discard(end + 1)
			l.skipping, searched = false, 0
			continue
		case l.skipping:
			_, _ = l.Discard(len(held))
			held = nil
		case len(held) == l.Size():
			l.skipping = true
			return nil, &lineError{tooLong, fmt.Errorf("more than %d bytes", l.Size()-1)}
		}
		searched = len(held)
		if _, err := l.Peek(searched + 1); err != nil {
			return nil, err
		}
	}
}

const (
	// paceLimit is the limit of the cost read per second: 4 MiB, of which a line costs lineCost in addition to its bytes.
	// A receiver at 25 Hz needs a tenth.
	paceLimit = 4 << 20
	lineCost  = 1 << 10
)

// paced limits the rate of a flood to paceLimit: the rest waits in the kernel and in gpsd, which disconnects a client that
// does not keep up.
type paced struct {
	ctx    context.Context
	stream io.Reader
	quota  *rate.Limiter
}

// Read reads from the stream, after a pause if the quota is used up.
func (p *paced) Read(b []byte) (int, error) {
	if err := p.wait(); err != nil {
		return 0, err
	}
	n, err := p.stream.Read(b)
	p.charge(n)
	return n, err
}

// wait waits until the quota is half full again once it is empty: few long pauses cost less than many short ones.
func (p *paced) wait() error {
	left := p.quota.Tokens()
	if left <= 0 && !ctxtime.Sleep(p.ctx, time.Duration((0.5-left/paceLimit)*float64(time.Second))) {
		return p.ctx.Err()
	}
	return nil
}

// charge takes a cost from the quota, which may become negative.
func (p *paced) charge(cost int) { p.quota.ReserveN(time.Now(), cost) }
