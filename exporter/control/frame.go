package control

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"oneway.example/exporter/stream"
)

// A frame is
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     type      |             length of what follows            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    length     |  payload ...
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// of type 1, one Message in JSON, or 2, some of the records that the Finished before it
// announced. Numbers are big-endian.
const (
	frameMessage = 1
	frameRecords = 2

	frameHeaderBytes = 5
)

// Limits of frames. What is longer, or empty, ends the connection.
const (
	// MaxMessageBytes of JSON; some 600 segments of a plan fit.
	MaxMessageBytes = 64 << 10
	// MaxChunkBytes of records in one frame.
	MaxChunkBytes = 64 << 10
	// MaxRecordsBytes of all records of a transfer: 32 octets for each packet.
	MaxRecordsBytes = 32 * stream.MaxPackets
)

// frameTime is how long one frame may be under way from its first octet to its last:
// 64 KiB in it are 17 kb/s. A peer that drips octets is not waited for.
const frameTime = 30 * time.Second

// ErrProtocol is wrapped by the errors about a peer that says what it must not.
var ErrProtocol = errors.New("control: protocol violated")

// appendFrame appends a frame to b. The payload is within its limit.
func appendFrame(b []byte, kind byte, payload []byte) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// readFrame reads one frame. It calls began when the first octet of it is there. The
// payload is buf's memory where that is large enough, and valid until the next call.
//
// The error is io.EOF where the connection ends between two frames, wraps
// io.ErrUnexpectedEOF where it ends within one, and ErrProtocol where it is none.
func readFrame(r *bufio.Reader, buf []byte, began func()) (kind byte, payload []byte, err error) {
	if _, err := r.Peek(1); err != nil {
		return 0, buf, err
	}
	began()
	var header [frameHeaderBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, buf, truncated(err)
	}
	kind, length := header[0], binary.BigEndian.Uint32(header[1:])
	limit := uint32(MaxMessageBytes)
	switch kind {
	case frameMessage:
	case frameRecords:
		limit = MaxChunkBytes
	default:
		return 0, buf, fmt.Errorf("%w: frame of type %d, want %d or %d", ErrProtocol, kind, frameMessage, frameRecords)
	}
	if length == 0 || length > limit {
		return 0, buf, fmt.Errorf("%w: frame of %d octets, want 1 to %d", ErrProtocol, length, limit)
	}
	if int(length) > cap(buf) {
		buf = make([]byte, length)
	}
	buf = buf[:length]
	if _, err := io.ReadFull(r, buf); err != nil {
		return 0, buf, truncated(err)
	}
	return kind, buf, nil
}

// truncated is the error of a stream that ends within a frame.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("within a frame: %w", io.ErrUnexpectedEOF)
	}
	return err
}
