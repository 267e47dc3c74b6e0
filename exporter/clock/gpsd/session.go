package gpsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	// patience is how long the receiver may be silent until gpsd is asked whether
	// it is there, and how long gpsd may take to answer that: it has been seen to
	// take 3 s while it probes a new device.
	patience = 15 * time.Second
	// writeTimeout bounds the sending of a request of 200 octets.
	writeTimeout = 5 * time.Second
	// maxQuoted bounds what of gpsd's own words is logged.
	maxQuoted = 200
	// protocol is the version of gpsd's protocol that is read here: 3.20 to 3.27.
	protocol = 3
)

// errHang is the end of a connection on which gpsd does not answer.
var errHang = errors.New("gpsd: no answer, it hangs or is no gpsd")

// session is one connection.
type session struct {
	*Client
	conn       net.Conn
	request    []byte
	pace       *paced
	lines      *lines
	asked      time.Time // when WATCH was sent last
	heard      time.Time // when the receiver was heard last
	answered   bool      // gpsd has said something that makes sense since it was asked
	ever       bool      // or since it was connected
	complained string    // its last ERROR
	complaints int       // that were logged
	foreign    bool      // it has told of another protocol
	malformed  bool      // a line was, and the log knows
}

// request is what is sent. gpsd 3.22 answers it with DEVICES and WATCH; sent
// again, it makes gpsd try once more to open what it could not.
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
	s.pace = &paced{ctx: ctx, stream: s.conn}
	s.lines = newLines(s.pace, maxLine)
	if err := s.ask(); err != nil {
		return err
	}
	for {
		if err := s.pace.wait(); err != nil {
			return err
		}
		line, err := s.lines.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			line, err = nil, nil // time to ask
		}
		if err := s.read(line, err); err != nil {
			return err
		}
		if time.Since(s.lastSign()) < s.options.patience {
			continue
		}
		if !s.answered {
			return errHang
		}
		if err := s.ask(); err != nil {
			return err
		}
	}
}

// lastSign is from when on patience is counted.
func (s *session) lastSign() time.Time {
	if s.heard.After(s.asked) {
		return s.heard
	}
	return s.asked
}

// ask sends the request.
func (s *session) ask() error {
	s.asked, s.answered = time.Now(), false
	_ = s.conn.SetWriteDeadline(s.asked.Add(writeTimeout)) // a closed connection shows in the write
	_ = s.conn.SetReadDeadline(s.asked.Add(s.options.patience))
	if _, err := s.conn.Write(s.request); err != nil {
		return fmt.Errorf("gpsd: cannot send WATCH: %w", err)
	}
	return nil
}

// read takes one line, or why there is none. Only an error of the connection is
// returned.
func (s *session) read(line []byte, err error) error {
	var report any
	if err == nil {
		s.pace.spend(lineCost)
		if len(line) == 0 {
			return nil // or no line at all
		}
		report, err = parse(line)
	}
	if err != nil {
		reason, ofLine := reasonOf(err)
		if !ofLine {
			return fmt.Errorf("gpsd: the connection ended: %w", err)
		}
		s.count(reason, err)
		return nil
	}
	s.take(report)
	return nil
}

// count counts a line that was not understood; the log has the first of a connection.
func (s *session) count(reason malformation, err error) {
	s.series.malformed[reason].Add(1)
	if !s.malformed {
		s.malformed = true
		s.options.Log.Warn("gpsd sent a line that makes no sense", "receiver", s.options.Name, "err", quote(err.Error()))
	}
}

// take brings a report to the receiver's state.
func (s *session) take(report any) {
	now := time.Now()
	s.answered, s.ever = true, true
	switch m := report.(type) {
	case *version:
		if m.Major != protocol && !s.foreign {
			s.foreign = true
			s.options.Log.Warn("gpsd speaks another version of its protocol", "receiver", s.options.Name,
				"release", quote(m.Release), "protocol", m.Major, "known", protocol)
		}
	case *complaint:
		if m.Message != s.complained && s.complaints < mostComplaints {
			s.complained = m.Message
			s.complaints++
			s.options.Log.Warn("gpsd complains", "receiver", s.options.Name, "message", quote(m.Message))
		}
	}
	if s.Client.take(report, now) {
		s.heard = now
		_ = s.conn.SetReadDeadline(now.Add(s.options.patience))
	}
}

// mostComplaints of a connection are logged: more is a flood.
const mostComplaints = 8

// quote bounds a text for the log.
func quote(text string) string {
	if len(text) > maxQuoted {
		return text[:maxQuoted] + "..."
	}
	return text
}
