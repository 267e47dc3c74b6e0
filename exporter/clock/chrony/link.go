package chrony

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	fb "github.com/facebook/time/ntp/chrony"
)

// Layout of chronyd's command protocol, version 6 (chrony's candm.h), big-endian:
//
//	request: 0 version, 1 type (1), 4-5 command, 6-7 attempt, 8-11 sequence
//	reply:   0 version, 1 type (2), 2-3 zero, 4-5 command, 6-7 reply, 8-9 status,
//	         16-19 sequence, 28.. data
const (
	protocolVersion = 6
	typeReply       = 2
	replyHeadBytes  = 28
	maxReplyBytes   = 2048 // chronyd's longest is 520
	statusSuccess   = 0

	commandSources    = 14
	commandSourceData = 15
	commandTracking   = 33
)

// maxDiscards is how many datagrams that are not the reply one query looks at.
const maxDiscards = 64

// link is one connection to chronyd. It exchanges whole datagrams, and lets
// nothing through to the decoder but the reply to the last request. It is not safe
// for concurrent use.
type link struct {
	conn   net.Conn
	client fb.Client
	// command and sequence of the request on its way.
	command  uint16
	sequence uint32
	deadline time.Time
	in       [maxReplyBytes]byte
}

// newLink takes conn over. The first sequence number is random, so that replies
// to an earlier process on the same socket path are not taken for ours.
func newLink(conn net.Conn) *link {
	l := &link{conn: conn}
	var start [4]byte
	_, _ = rand.Read(start[:]) // never fails
	l.client = fb.Client{Connection: l, Sequence: binary.BigEndian.Uint32(start[:])}
	return l
}

func (l *link) Close() error { return l.conn.Close() }

// Write sends a request. The decoder's client calls it.
func (l *link) Write(request []byte) (int, error) {
	if len(request) < replyHeadBytes {
		return 0, &queryError{malformed, fmt.Errorf("request of %d octets", len(request))}
	}
	l.command = binary.BigEndian.Uint16(request[4:])
	l.sequence = binary.BigEndian.Uint32(request[8:])
	l.deadline = time.Now().Add(queryTimeout)
	if err := l.conn.SetDeadline(l.deadline); err != nil {
		return 0, &queryError{unreachable, err}
	}
	n, err := l.conn.Write(request)
	if err != nil {
		return n, &queryError{reasonOf(err), err}
	}
	return n, nil
}

// Read waits for the reply to the last request and returns it whole. What else
// arrives is dropped: a late reply to an earlier query is nothing unusual. If the
// reply does not come in time, the error names what came last instead.
func (l *link) Read(reply []byte) (int, error) {
	var last error
	for range maxDiscards {
		n, err := l.conn.Read(l.in[:])
		if err != nil {
			if last != nil && errors.Is(err, os.ErrDeadlineExceeded) {
				return 0, last
			}
			return 0, &queryError{reasonOf(err), err}
		}
		if last = l.check(l.in[:n]); last == nil {
			return copy(reply, l.in[:n]), nil
		}
		var q *queryError
		if errors.As(last, &q) && q.reason == refused {
			return 0, last // an answer, if not the one hoped for
		}
	}
	return 0, &queryError{flood, last}
}

// check reports why a datagram is not the whole and successful reply to the
// last request.
func (l *link) check(b []byte) error {
	if len(b) < replyHeadBytes {
		return &queryError{truncated, fmt.Errorf("%d octets, want %d for the head", len(b), replyHeadBytes)}
	}
	if b[0] != protocolVersion || b[1] != typeReply || b[2] != 0 || b[3] != 0 ||
		binary.BigEndian.Uint16(b[4:]) != l.command {
		return &queryError{malformed, fmt.Errorf("head %x, want version %d, type %d, command %d",
			b[:6], protocolVersion, typeReply, l.command)}
	}
	if got := binary.BigEndian.Uint32(b[16:]); got != l.sequence {
		return &queryError{wrongSequence, fmt.Errorf("%d, want %d", got, l.sequence)}
	}
	if status := binary.BigEndian.Uint16(b[8:]); status != statusSuccess {
		return &queryError{refused, fmt.Errorf("status %v", fb.ResponseStatusType(status))}
	}
	kind, want := replyTo(l.command)
	if got := binary.BigEndian.Uint16(b[6:]); got != uint16(kind) {
		return &queryError{malformed, fmt.Errorf("reply type %d, want %d", got, kind)}
	}
	switch {
	case len(b) < want:
		return &queryError{truncated, fmt.Errorf("%d octets, want %d", len(b), want)}
	case len(b) > want:
		return &queryError{oversized, fmt.Errorf("%d octets, want %d", len(b), want)}
	}
	return nil
}

// replyTo is the type and length of the successful reply to a command.
func replyTo(command uint16) (kind fb.ReplyType, octets int) {
	switch command {
	case commandSources:
		return fb.RpyNSources, replyHeadBytes + 4
	case commandSourceData:
		return fb.RpySourceData, replyHeadBytes + 48
	case commandTracking:
		return fb.RpyTracking, replyHeadBytes + 76
	}
	return 0, 0 // we ask nothing else
}

func reasonOf(err error) failure {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return timeout
	}
	return unreachable
}

// tracking asks for the state of the clock.
func (l *link) tracking() (*fb.Tracking, error) {
	reply, err := l.client.Communicate(fb.NewTrackingPacket())
	if err != nil {
		return nil, err
	}
	t, ok := reply.(*fb.ReplyTracking)
	if !ok {
		return nil, &queryError{malformed, fmt.Errorf("decoded as %T", reply)}
	}
	return &t.Tracking, nil
}

// maxSources bounds how many sources are asked about.
const maxSources = 64

// pollInterval asks how often the selected source is polled; zero if none is
// selected.
func (l *link) pollInterval() (time.Duration, error) {
	reply, err := l.client.Communicate(fb.NewSourcesPacket())
	if err != nil {
		return 0, err
	}
	sources, ok := reply.(*fb.ReplySources)
	if !ok {
		return 0, &queryError{malformed, fmt.Errorf("decoded as %T", reply)}
	}
	for i := range min(maxSources, uint32(sources.NSources)) {
		reply, err := l.client.Communicate(fb.NewSourceDataPacket(int32(i)))
		if err != nil {
			return 0, err
		}
		source, ok := reply.(*fb.ReplySourceData)
		if !ok {
			return 0, &queryError{malformed, fmt.Errorf("decoded as %T", reply)}
		}
		if source.State == fb.SourceStateSync {
			// chrony's poll is the binary logarithm of seconds, from -7 to 24.
			return time.Second << max(0, min(24, source.Poll)), nil
		}
	}
	return 0, nil
}
