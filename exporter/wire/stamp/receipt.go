package stamp

import (
	"errors"
	"fmt"

	"oneway.example/exporter/sample"
)

// ClockCode is what the far end says of its clock in a Receipt: three bits. The
// zero value, also that of a question, is ClockOK.
type ClockCode uint8

// The codes; they go over the wire.
const (
	// ClockOK: the Error Estimate holds.
	ClockOK ClockCode = iota
	// ClockUnsynchronised: the clock follows nothing, or too loosely.
	ClockUnsynchronised
	// ClockStepped: the clock was set while the session lasted.
	ClockStepped
	// ClockNone: nobody watches the clock.
	ClockNone
	// ClockSilent: who watches the clock does not answer.
	ClockSilent
	// ClockShared: the question's token (Receipt.Base) is that of the reflector's
	// own kernel: both ends read the same clock.
	ClockShared
)

// ReceiptFixedBytes is the length of a Receipt's value without its bitmap, in octets.
const ReceiptFixedBytes = 72

// MaxReceiptWords is the longest bitmap, in 64-bit words.
const MaxReceiptWords = 4

// HostBlockBytes is the length of the block that tells of the reflector's host, in octets:
// that of a word of the bitmap, in the place of which it stands.
const HostBlockBytes = 8

// AsksHost is the bit of Received in a question by which the sender says that it
// understands the host block (Receipt.Host).
const AsksHost = 1

const (
	receiptMagic   = 0x4f57
	receiptVersion = 1
	flagQuery      = 0x80
	flagFinish     = 0x40
	flagFilled     = 0x20
	hostFlag       = 0x08 // of the octet with version and words
	crcOffset      = 4
	leftOffset     = 56
	crcBytes       = 4
)

// Receipt is our own TLV: the far end's account of the forward direction,
// in place of the sender's question for it. Its layout is in the package's
// documentation.
type Receipt struct {
	// Words is the length of Recent on the wire, 0..MaxReceiptWords.
	Words int
	// Query: no test packet. Finish: all that was sent has been waited for.
	// Filled: the reflector wrote the counts.
	Query, Finish, Filled bool
	// T2Origin is where the reflector's receive stamp was taken: User, Kernel or
	// Hardware. All others are written as sample.Absent, not told.
	T2Origin sample.Origin
	// Clock is the reflector's word on its clock; only the low three bits go over
	// the wire.
	Clock ClockCode
	// Run is the sender's random name of this run, Epoch the reflector's of this
	// life of its session; 0: not known.
	Run, Epoch uint32
	// Packets of the forward direction: the low 32 bits of seqwin.Counts. In a
	// question Next is the number of test packets sent so far, Base a token of the
	// sender's kernel (package hostid; 0: not told), Received what the sender understands
	// beside the first form of a Receipt (AsksHost), and the rest is zero.
	Next, Base, Received, Lost, Duplicated,
	Reordered, Late, Corrupted, Bursts uint32
	// Tx is the number of answers sent to test packets, this one included, modulo
	// 2^32. In a question: the sender's waiting time (Tmax, RFC 7680) in milliseconds.
	Tx uint32
	// Left tells when earlier answers left: in the answer numbered n those numbered
	// n-1, n-2 and n-3; in that to a query, the last three.
	Left [LeftAnswers]Left
	// Host: there is a host block, and so SocketDrops. Only answers have one, now and then,
	// and only if the question asked for it: then it stands in the place of the bitmap's
	// last word, so that the answer is as long as the question.
	Host bool
	// SocketDrops counts the packets that the reflector's kernel has dropped at the socket
	// that took the question, for want of buffer, since some 2 to 4 s before this Epoch
	// began (the sender's first packets may be among them), of all senders,
	// since a dropped packet is nobody's; and this session's that the reflector has refused
	// for their rate, or before it had room for the session. Modulo 2^32.
	SocketDrops uint32
	// Recent is seqwin.Counts.Recent. What lies beyond Words is neither written
	// nor read.
	Recent [MaxReceiptWords]uint64
}

// ErrNotReceipt says that the value is another experiment's type 251, or of another version.
var ErrNotReceipt = errors.New("stamp: not a Receipt")

// AppendTo appends the whole TLV; the CRC is left zero for SealCRC. Words out of
// range are taken for the nearest that is in it.
func (r Receipt) AppendTo(b []byte) []byte {
	words := min(max(r.Words, 0), MaxReceiptWords)
	form, length := receiptVersion<<4|uint8(words), ReceiptFixedBytes+8*words
	if r.Host {
		form, length = form|hostFlag, length+HostBlockBytes
	}
	b = appendHeader(b, senderFlags, TypeReceipt, length)
	b = be.AppendUint16(b, receiptMagic)
	b = append(b, form, r.flags())
	for _, v := range [...]uint32{
		0, r.Run, r.Epoch, r.Next, r.Base, r.Received, r.Lost, r.Duplicated,
		r.Reordered, r.Late, r.Corrupted, r.Bursts, r.Tx,
	} {
		b = be.AppendUint32(b, v)
	}
	b = appendLeft(b, r.Left)
	for _, w := range r.Recent[:words] {
		b = be.AppendUint64(b, w)
	}
	if r.Host {
		b = be.AppendUint32(b, r.SocketDrops)
		b = be.AppendUint32(b, 0)
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

// isReceipt knows a Receipt of this version by its magic, version and length.
func isReceipt(v []byte) bool {
	if len(v) < ReceiptFixedBytes || be.Uint16(v) != receiptMagic || v[2]>>4 != receiptVersion {
		return false
	}
	words, host := receiptForm(v)
	return words <= MaxReceiptWords && len(v) == ReceiptFixedBytes+8*words+host
}

// receiptForm is how many words the bitmap of a Receipt has, and octets its host block.
func receiptForm(v []byte) (words, hostBytes int) {
	words = int(v[2] & 7)
	if v[2]&hostFlag != 0 {
		hostBytes = HostBlockBytes
	}
	return words, hostBytes
}

// ParseReceipt reads the value; its CRC is CheckCRC's business. The error is
// ErrNotReceipt.
func ParseReceipt(v []byte) (r Receipt, err error) {
	if !isReceipt(v) {
		return r, fmt.Errorf("%w: %d bytes that begin with %x", ErrNotReceipt, len(v), v[:min(len(v), 4)])
	}
	words, hostBytes := receiptForm(v)
	r.Words, r.Host = words, hostBytes > 0
	f := v[3]
	r.Query, r.Finish, r.Filled = f&flagQuery != 0, f&flagFinish != 0, f&flagFilled != 0
	r.T2Origin, r.Clock = sample.Origin(f>>3&3), ClockCode(f&7)
	for i, to := range [...]*uint32{
		&r.Run, &r.Epoch, &r.Next, &r.Base, &r.Received, &r.Lost, &r.Duplicated,
		&r.Reordered, &r.Late, &r.Corrupted, &r.Bursts, &r.Tx,
	} {
		*to = be.Uint32(v[8+4*i:])
	}
	r.Left = parseLeft(v[leftOffset:])
	for i := range r.Words {
		r.Recent[i] = be.Uint64(v[ReceiptFixedBytes+8*i:])
	}
	if r.Host {
		r.SocketDrops = be.Uint32(v[ReceiptFixedBytes+8*words:])
	}
	return r, nil
}
