package stamp

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// ClockCode is what the far end says of its clock in a Receipt.
type ClockCode uint8

// The codes; they go over the wire.
const (
	ClockOK ClockCode = iota
	ClockUnsynchronised
	ClockStepped
	ClockNone
	ClockSilent
)

// ReceiptFixedBytes is a Receipt's value without its bitmap.
const ReceiptFixedBytes = 72

// MaxReceiptWords is the longest bitmap, in 64-bit words.
const MaxReceiptWords = 4

const (
	receiptMagic   = 0x4f57
	receiptVersion = 1
	flagQuery      = 0x80
	flagFinish     = 0x40
	flagFilled     = 0x20
	crcOffset      = 4
)

// Receipt is our private TLV: the far end's account of the forward direction,
// in place of the sender's question for it. Its layout is in the package's
// documentation.
type Receipt struct {
	// Words is the length of Recent on the wire, 0..MaxReceiptWords.
	Words int
	// Query: no test packet. Finish: all that was sent has been waited for.
	// Filled: the reflector wrote the counts.
	Query, Finish, Filled bool
	// T2Origin is where the reflector's receive stamp was taken: sample.Absent
	// (not told), User, Kernel or Hardware.
	T2Origin sample.Origin
	// Clock is the reflector's word on its clock.
	Clock ClockCode
	// Run is the sender's random name of this run, Epoch the reflector's of this
	// life of its session.
	Run, Epoch uint32
	// The low 32 bits of seqwin.Counts.
	Next, Base, Received, Lost, Duplicated,
	Reordered, Late, Corrupted, Bursts uint32
	// Tx is the number of answers sent to test packets, this one included. In a
	// question: the sender's waiting time (Tmax, RFC 7680) in milliseconds.
	Tx uint32
	// T3 are transmit stamps of earlier answers; zero: not known. In the answer
	// numbered n they are those of n-2 and n-3 (n-1 is in Follow-Up Telemetry).
	T3 [2]instant.Time
	// Recent is seqwin.Counts.Recent.
	Recent [MaxReceiptWords]uint64
}

// ErrNotReceipt says that the value is another vendor's type 252, or of another version.
var ErrNotReceipt = errors.New("stamp: not a Receipt")

// AppendTo appends the whole TLV; the CRC is left zero for SealCRC.
func (r Receipt) AppendTo(b []byte) []byte {
	words := min(max(r.Words, 0), MaxReceiptWords)
	b = appendHeader(b, 0, TypeReceipt, ReceiptFixedBytes+8*words)
	b = be.AppendUint16(b, receiptMagic)
	b = append(b, receiptVersion<<4|uint8(words), r.flags())
	for _, v := range [...]uint32{
		0, r.Run, r.Epoch, r.Next, r.Base, r.Received, r.Lost, r.Duplicated,
		r.Reordered, r.Late, r.Corrupted, r.Bursts, r.Tx,
	} {
		b = be.AppendUint32(b, v)
	}
	b = be.AppendUint64(be.AppendUint64(b, uint64(r.T3[0])), uint64(r.T3[1]))
	for _, w := range r.Recent[:words] {
		b = be.AppendUint64(b, w)
	}
	return b
}

func (r Receipt) flags() (f uint8) {
	for _, c := range [...]struct {
		set bool
		bit uint8
	}{{r.Query, flagQuery}, {r.Finish, flagFinish}, {r.Filled, flagFilled}} {
		if c.set {
			f |= c.bit
		}
	}
	if r.T2Origin <= sample.Hardware {
		f |= uint8(r.T2Origin) << 3
	}
	return f | uint8(r.Clock)&7
}

// ParseReceipt reads the value.
func ParseReceipt(v []byte) (r Receipt, err error) {
	if len(v) < ReceiptFixedBytes || be.Uint16(v) != receiptMagic || v[2]>>4 != receiptVersion {
		return r, ErrNotReceipt
	}
	r.Words = int(v[2] & 15)
	if r.Words > MaxReceiptWords || len(v) != ReceiptFixedBytes+8*r.Words {
		return r, fmt.Errorf("%w: %d bytes with a bitmap of %d words", ErrNotReceipt, len(v), r.Words)
	}
	f := v[3]
	r.Query, r.Finish, r.Filled = f&flagQuery != 0, f&flagFinish != 0, f&flagFilled != 0
	r.T2Origin, r.Clock = sample.Origin(f>>3&3), ClockCode(f&7)
	for i, to := range [...]*uint32{
		&r.Run, &r.Epoch, &r.Next, &r.Base, &r.Received, &r.Lost, &r.Duplicated,
		&r.Reordered, &r.Late, &r.Corrupted, &r.Bursts, &r.Tx,
	} {
		*to = be.Uint32(v[8+4*i:])
	}
	r.T3 = [2]instant.Time{instant.Time(be.Uint64(v[56:])), instant.Time(be.Uint64(v[64:]))}
	for i := range r.Words {
		r.Recent[i] = be.Uint64(v[ReceiptFixedBytes+8*i:])
	}
	return r, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SealCRC writes the CRC-32C of the whole payload into its Receipt. The octets
// of the CRC itself and of the HMACs, which are written later, count as zero.
func SealCRC(b []byte, authenticated bool) {
	if at, ok := findReceipt(b, authenticated); ok {
		be.PutUint32(b[at+crcOffset:], crcOf(b, at, authenticated))
	}
}

// CheckCRC reports whether the payload is as it was sealed. False without a
// Receipt.
func CheckCRC(b []byte, authenticated bool) bool {
	at, ok := findReceipt(b, authenticated)
	return ok && be.Uint32(b[at+crcOffset:]) == crcOf(b, at, authenticated)
}

// findReceipt returns where the Receipt's value begins.
func findReceipt(b []byte, authenticated bool) (at int, ok bool) {
	base := baseBytes(authenticated)
	if len(b) < base {
		return 0, false
	}
	for at = base; len(b)-at >= TLVHeaderBytes; {
		n := int(be.Uint16(b[at+2:]))
		value := at + TLVHeaderBytes
		if n > len(b)-value {
			return 0, false
		}
		if TLVType(b[at+1]) == TypeReceipt && n >= ReceiptFixedBytes && be.Uint16(b[value:]) == receiptMagic {
			return value, true
		}
		at = value + n
	}
	return 0, false
}

func baseBytes(authenticated bool) int {
	if authenticated {
		return AuthenticatedBytes
	}
	return UnauthenticatedBytes
}

func crcOf(b []byte, receipt int, authenticated bool) uint32 {
	end, tail := len(b), 0
	if t := len(b) - hmacTLVSize; t > receipt && bytes.Equal(b[t+1:t+TLVHeaderBytes], []byte{uint8(TypeHMAC), 0, hmacBytes}) {
		end, tail = t+TLVHeaderBytes, hmacBytes
	}
	crc, from := uint32(0), 0
	if authenticated {
		crc = crc32.Update(crc, castagnoli, b[:hmacAt])
		crc = crc32.Update(crc, castagnoli, zeros[:hmacBytes])
		from = AuthenticatedBytes
	}
	crc = crc32.Update(crc, castagnoli, b[from:receipt+crcOffset])
	crc = crc32.Update(crc, castagnoli, zeros[:4])
	crc = crc32.Update(crc, castagnoli, b[receipt+crcOffset+4:end])
	return crc32.Update(crc, castagnoli, zeros[:tail])
}
