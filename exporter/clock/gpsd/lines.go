package gpsd

import (
	"bytes"
	"context"
	"io"
	"time"

	"oneway.example/exporter/wait"
)

// maxLine is the longest line that is read. gpsd's own limit for a report is
// 10240 octets (GPS_JSON_RESPONSE_MAX), 1536 in the manual.
const maxLine = 64 << 10

// lines cuts a stream into lines, in a buffer that does not grow. What it holds
// survives an error of the stream: after a deadline, reading goes on where it was.
type lines struct {
	stream     io.Reader
	buffer     []byte // a line and its newline
	start, end int    // what is held
	searched   int    // up to here there is no newline
	skipping   bool   // the rest of a line too long
}

// newLines cuts a stream into lines of at most so many octets, newline not counted.
func newLines(stream io.Reader, most int) *lines {
	return &lines{stream: stream, buffer: make([]byte, most+1)}
}

// next returns the next line without its newline, valid until the call after.
// A line too long is a *lineError, once; any other error is the stream's. What
// comes after the last newline of the stream is no line.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buffer[l.searched:l.end], '\n'); i >= 0 {
			line := l.buffer[l.start : l.searched+i]
			l.start = l.searched + i + 1
			l.searched = l.start
			if l.skipping {
				l.skipping = false
				continue
			}
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		l.searched = l.end
		if l.end-l.start == len(l.buffer) && !l.skipping {
			l.skipping = true
			return nil, &lineError{reason: tooLong}
		}
		l.makeRoom()
		n, err := l.stream.Read(l.buffer[l.end:])
		l.end += n
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// makeRoom moves what is still wanted to the buffer's start.
func (l *lines) makeRoom() {
	if l.skipping {
		l.end = l.start
	}
	copy(l.buffer, l.buffer[l.start:l.end])
	l.end -= l.start
	l.start, l.searched = 0, l.end
}

const (
	// paceLimit is how much is read in a second: 4 MiB, of which a line costs
	// lineCost apart from its octets. A receiver at 25 Hz needs a tenth.
	paceLimit = 4 << 20
	lineCost  = 1 << 10
)

// paced slows a flood down to paceLimit: the rest waits in the kernel, and then
// in gpsd, which drops a client that does not keep up.
type paced struct {
	ctx    context.Context
	stream io.Reader
	debt   int       // what was read and has not been waited for
	at     time.Time // when that was true
}

// Read reads from the stream, after a pause if much has just been read.
func (p *paced) Read(b []byte) (int, error) {
	if err := p.wait(); err != nil {
		return 0, err
	}
	n, err := p.stream.Read(b)
	p.spend(n)
	return n, err
}

// wait lets half of the debt be paid once it is too high: few long pauses cost
// less than many short ones.
func (p *paced) wait() error {
	if p.debt < paceLimit {
		return nil
	}
	over := float64(p.debt-paceLimit/2) / paceLimit
	if !wait.For(p.ctx, time.Duration(over*float64(time.Second))) {
		return p.ctx.Err()
	}
	p.spend(0)
	return nil
}

// spend adds a cost, and forgives what time has paid.
func (p *paced) spend(cost int) {
	now := time.Now()
	paid := float64(paceLimit) * now.Sub(p.at).Seconds()
	p.debt -= int(min(paid, float64(p.debt)))
	p.debt += cost
	p.at = now
}
