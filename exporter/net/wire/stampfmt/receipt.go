package stampfmt

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"time"

	"oneway.example/exporter/core/sample"
)

// ClockCode is the state of the remote end's clock in a Receipt: three bits. The zero value, also that of a request, is
// ClockOK.
type ClockCode uint8

// The codes, as on the wire.
const (
	// ClockOK: the Error Estimate is valid.
	ClockOK ClockCode = iota
	// ClockUnsynchronized: the clock is not synchronized, or not well enough.
	ClockUnsynchronized
	// ClockStepped: the clock was set during the session.
	ClockStepped
	// ClockNone: the clock has no monitor.
	ClockNone
	// ClockSilent: the clock's monitor does not reply.
	ClockSilent
	// ClockShared: the request's token (Receipt.Base) is that of the reflector's
	// own kernel: both ends read the same clock.
	ClockShared
)

// ReceiptFixedBytes is the length of a Receipt's value without its bitmap, in octets.
const ReceiptFixedBytes = 72

// MaxReceiptWords is the longest bitmap, in 64-bit words.
const MaxReceiptWords = 4

// HostBlockBytes is the length of the block with counts of the reflector's host, in octets: that of a word of the
// bitmap, which it replaces.
const HostBlockBytes = 8

// HostRequestBit is the bit of Received in a request by which the sender requests the host block (Receipt.Host).
const HostRequestBit = 1

// HostRequest is Received of a request whose sender understands the host block, and sets this DSCP (0..63) in its test
// packets.
func HostRequest(dscp uint8) uint32 { return HostRequestBit | uint32(dscp&63)<<8 }

// SentDSCP is the DSCP that the sender of a request sets in its test packets.
func (r *Receipt) SentDSCP() uint8 { return uint8(r.Received>>8) & 63 }

// CountModulus is the modulus of Receipt.Remarked and Receipt.CE.
const CountModulus = 1 << 12

const (
	receiptMagic   = 0x4f57
	receiptVersion = 1
	flagStatsQuery = 0x80
	flagFinish     = 0x40
	flagFilled     = 0x20
	hostFlag       = 0x08 // of the octet with version and words
	crcOffset      = 4
	replyTXOffset  = 56
	crcBytes       = 4
)

// Receipt is the TLV with the remote end's account of the forward direction, in a reply, and the sender's request for
// it. Its layout is in the package's documentation.
type Receipt struct {
	// Words is the length of Recent on the wire, 0..MaxReceiptWords.
	Words int
	// StatsQuery: a statistics query. Finish: the sender has waited for all packets. Filled: the reflector has set the
	// counts.
	StatsQuery, Finish, Filled bool
	// T2Origin is the origin of the reflector's receive timestamp: User, Kernel or Hardware. All others are written as
	// sample.Absent, not known.
	T2Origin sample.Origin
	// Clock is the state of the reflector's clock; only the low three bits are written.
	Clock ClockCode
	// Run is the sender's random number of this run, Epoch the reflector's of this session; 0: not known.
	Run, Epoch uint32
	// Packets of the forward direction: the low 32 bits of seqwin.Counts. In a request Next is the number of test
	// packets sent so far, Base a token of the sender's kernel (package hostid; 0: none), Received the sender's
	// capabilities (HostRequestBit), and the rest is zero.
	Next, Base, Received, Lost, Duplicated,
	Reordered, Late, Corrupted, Bursts uint32
	// Tx is the number of replies sent to test packets, this one included, modulo 2^32. In a request: the sender's
	// waiting time (Tmax, RFC 7680) in milliseconds.
	Tx uint32
	// EarlierTX are the transmit times of earlier replies: in the reply numbered n those of n-1, n-2 and n-3; in that
	// to a statistics query, the last three.
	EarlierTX [ReportedReplies]ReplyTX
	// TellsTX: the reflector's kernel or card has told when a reply of this session left, though perhaps too late for EarlierTX.
	TellsTX bool
	// Host: there is a host block with SocketDrops. Only some replies have one, and only on request: it replaces the
	// bitmap's last word, so that the reply is as long as the request.
	Host bool
	// SocketDrops counts the packets of all senders (a dropped packet has no known sender) that the reflector's kernel
	// dropped at the socket because its buffer was full, since some 2 to 4 s before this Epoch began (the sender's
	// first packets may be among them), plus this session's packets that the reflector refused for their rate, or
	// before it had space for the session. Modulo 2^32.
	SocketDrops uint32
	// TrafficClass of a host block is that octet of the IP header (RFC 2474, RFC 3168) of the request that is replied
	// to, as it arrived. Remarked and CE count the test packets of this Epoch that arrived with another DSCP than
	// SentDSCP, and with Congestion Experienced (RFC 3168): modulo CountModulus.
	TrafficClass uint8
	Remarked, CE uint16
	// Recent is seqwin.Counts.Recent. Words beyond Words are neither written nor read.
	Recent [MaxReceiptWords]uint64
}

// ErrNotReceipt means: the value is another experiment's type 251, or of another version.
var ErrNotReceipt = errors.New("stampfmt: not a Receipt")

// AppendTo appends the whole TLV; the CRC stays zero for SealCRC. Words is clamped to its range.
func (r Receipt) AppendTo(b []byte) []byte {
	words := min(max(r.Words, 0), MaxReceiptWords)
	form, length := receiptVersion<<4|uint8(words), ReceiptFixedBytes+8*words
	if r.Host {
		form, length = form|hostFlag, length+HostBlockBytes
	}
	b = appendHeader(b, senderFlags, TypeReceipt, length)
	b = be.AppendUint16(b, receiptMagic)
	b = append(b, form, r.flags())
	b = append(b, zeros[:crcBytes]...)
	for _, v := range [...]uint32{
		r.Run, r.Epoch, r.Next, r.Base, r.Received, r.Lost, r.Duplicated, r.Reordered, r.Late, r.Corrupted, r.Bursts, r.Tx,
	} {
		b = be.AppendUint32(b, v)
	}
	b = appendReplyTX(b, r.EarlierTX, r.TellsTX)
	for _, w := range r.Recent[:words] {
		b = be.AppendUint64(b, w)
	}
	if r.Host {
		b = be.AppendUint32(b, r.SocketDrops)
		b = be.AppendUint32(b, uint32(r.TrafficClass)<<24|uint32(r.Remarked%CountModulus)<<12|uint32(r.CE%CountModulus))
	}
	return b
}

func (r *Receipt) flags() (f uint8) {
	for i, set := range [...]bool{r.StatsQuery, r.Finish, r.Filled} {
		if set {
			f |= flagStatsQuery >> i
		}
	}
	if r.T2Origin <= sample.Hardware {
		f |= uint8(r.T2Origin) << 3
	}
	return f | uint8(r.Clock)&7
}

// receiptForm returns the number of bitmap words of a Receipt, and whether there is a host block. ok is false if magic,
// version or length do not match.
func receiptForm(v []byte) (words int, host, ok bool) {
	if len(v) < ReceiptFixedBytes || be.Uint16(v) != receiptMagic || v[2]>>4 != receiptVersion {
		return 0, false, false
	}
	words, host = int(v[2]&7), v[2]&hostFlag != 0
	want := ReceiptFixedBytes + 8*words
	if host {
		want += HostBlockBytes
	}
	return words, host, words <= MaxReceiptWords && len(v) == want
}

// ParseReceipt reads the value; CheckCRC checks its CRC. The error is ErrNotReceipt.
func ParseReceipt(v []byte) (r Receipt, err error) {
	words, host, ok := receiptForm(v)
	if !ok {
		return r, fmt.Errorf("%w: %d bytes that begin with %x", ErrNotReceipt, len(v), v[:min(len(v), 4)])
	}
	r.Words, r.Host = words, host
	f := v[3]
	r.StatsQuery, r.Finish, r.Filled = f&flagStatsQuery != 0, f&flagFinish != 0, f&flagFilled != 0
	r.T2Origin, r.Clock = sample.Origin(f>>3&3), ClockCode(f&7)
	n := v[8:56] // Run to Tx
	r.Run, r.Epoch, r.Next, r.Base = be.Uint32(n), be.Uint32(n[4:]), be.Uint32(n[8:]), be.Uint32(n[12:])
	r.Received, r.Lost, r.Duplicated, r.Reordered = be.Uint32(n[16:]), be.Uint32(n[20:]), be.Uint32(n[24:]), be.Uint32(n[28:])
	r.Late, r.Corrupted, r.Bursts, r.Tx = be.Uint32(n[32:]), be.Uint32(n[36:]), be.Uint32(n[40:]), be.Uint32(n[44:])
	r.EarlierTX, r.TellsTX = parseReplyTX(v[replyTXOffset:])
	for i := range r.Words {
		r.Recent[i] = be.Uint64(v[ReceiptFixedBytes+8*i:])
	}
	if r.Host {
		host := v[ReceiptFixedBytes+8*words:]
		counts := be.Uint32(host[4:])
		r.SocketDrops, r.TrafficClass = be.Uint32(host), uint8(counts>>24)
		r.Remarked, r.CE = uint16(counts>>12%CountModulus), uint16(counts%CountModulus)
	}
	return r, nil
}

// ReplyTX is the transmit time of an earlier reply. The zero value: not known.
type ReplyTX struct {
	// Known: the remote end's kernel or card has provided a timestamp.
	Known bool
	// After is the transmit timestamp minus the T3 in the reply. On the wire it is in nanoseconds, at most
	// MaxReplyTXAfter; a larger one is not known.
	After time.Duration
	// TXUncertainty is how much later the reply may have left (sample.Stamp). It is rounded up by at most a sixteenth
	// or a microsecond.
	TXUncertainty time.Duration
}

// MaxReplyTXAfter is the longest ReplyTX.After on the wire.
const MaxReplyTXAfter = math.MaxUint32 - 1

// ReportedReplies is how many earlier replies a Receipt reports.
const ReportedReplies = 3

// appendReplyTX writes 32 bits for each: nanoseconds plus one, 0 for not known; then ten bits for each TX uncertainty,
// from the highest: a power of two (5 bits) times a number of microseconds (5 bits); the lowest bit is tells.
func appendReplyTX(b []byte, all [ReportedReplies]ReplyTX, tells bool) []byte {
	txUncertainty, last := uint32(0), uint32(0)
	for _, l := range all {
		after, code := uint32(0), uint32(0)
		if l.Known && l.After >= 0 && l.After <= MaxReplyTXAfter {
			after, code = uint32(l.After)+1, txUncertaintyCode(l.TXUncertainty)
		}
		b = be.AppendUint32(b, after)
		txUncertainty = txUncertainty<<10 | code
	}
	if tells {
		last = 1
	}
	return be.AppendUint32(b, txUncertainty<<2|last)
}

func parseReplyTX(v []byte) (all [ReportedReplies]ReplyTX, tells bool) {
	txUncertainty := be.Uint32(v[4*ReportedReplies:])
	for i := range all {
		if after := be.Uint32(v[4*i:]); after != 0 {
			all[i] = ReplyTX{Known: true, After: time.Duration(after - 1), TXUncertainty: txUncertaintyTime(txUncertainty >> (22 - 10*i) & 0x3ff)}
		}
	}
	return all, txUncertainty&1 != 0
}

func txUncertaintyCode(d time.Duration) uint32 {
	us := uint64((max(d, 0) + time.Microsecond - 1) / time.Microsecond)
	power := max(0, bits.Len64(us)-5)
	us = (us + 1<<power - 1) >> power
	if us == 32 { // rounded up beyond five bits
		us, power = 16, power+1
	}
	if power > 31 {
		return 0x3ff
	}
	return uint32(power)<<5 | uint32(us)
}

func txUncertaintyTime(code uint32) time.Duration {
	return time.Duration(uint64(code&31)<<(code>>5)) * time.Microsecond
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SealCRC writes the CRC-32C of the whole payload into its Receipt; without a Receipt it does nothing. The octets of
// the CRC itself and of the HMACs, which are written later, count as zero. All others, the flags of the TLVs included,
// must be final.
func SealCRC(b []byte, authenticated bool) {
	if s, ok := findSeal(b, authenticated); ok {
		be.PutUint32(b[s.crc:], s.sum(b, authenticated))
	}
}

// CheckCRC reports whether the CRC matches. False without a Receipt.
func CheckCRC(b []byte, authenticated bool) bool {
	s, ok := findSeal(b, authenticated)
	return ok && be.Uint32(b[s.crc:]) == s.sum(b, authenticated)
}

// seal is the offsets of the fields that the CRC does not cover.
type seal struct {
	crc int
	// mac is the offset of the HMAC TLV's value after the Receipt; 0: none.
	mac int
}

// findSeal walks the TLVs. Octets that do not parse end the walk, and are covered.
func findSeal(b []byte, authenticated bool) (s seal, ok bool) {
	for at := baseBytes(authenticated); len(b)-at >= TLVHeaderBytes; {
		value := at + TLVHeaderBytes
		end := value + int(be.Uint16(b[at+2:]))
		if end > len(b) {
			break
		}
		switch kind := TLVType(b[at+1]); {
		case !ok && kind == TypeReceipt:
			_, _, ok = receiptForm(b[value:end])
			s.crc = value + crcOffset
		case ok && kind == TypeHMAC && end-value == hmacBytes:
			s.mac = value
			return s, ok
		}
		at = end
	}
	return s, ok
}

func (s seal) sum(b []byte, authenticated bool) uint32 {
	crc, from := uint32(0), 0
	if authenticated {
		crc, from = crcZeros(crc, b[:hmacAt], hmacBytes), AuthenticatedBytes
	}
	crc, from = crcZeros(crc, b[from:s.crc], crcBytes), s.crc+crcBytes
	if s.mac != 0 {
		crc, from = crcZeros(crc, b[from:s.mac], hmacBytes), s.mac+hmacBytes
	}
	return crc32.Update(crc, castagnoli, b[from:])
}

// crcZeros continues the CRC over b and n octets that count as zero.
func crcZeros(crc uint32, b []byte, n int) uint32 {
	return crc32.Update(crc32.Update(crc, castagnoli, b), castagnoli, zeros[:n])
}

func baseBytes(authenticated bool) int {
	if authenticated {
		return AuthenticatedBytes
	}
	return UnauthenticatedBytes
}
