package stamp

import (
	"fmt"

	wire "oneway.example/exporter/wire/stamp"
)

// layout says what a test packet of a given size carries. Octets count UDP payload.
type layout struct {
	size          int
	authenticated bool
	base          int
	followUp      bool
	// receipt says whether there is room for our own TLV; without it the
	// directions are told apart by queries sent beside the test packets.
	receipt bool
	words   int // of the receipt's bitmap
	padding int // value octets of the Extra Padding TLV; -1: no such TLV
}

const (
	followUpBytes     = wire.TLVHeaderBytes + 16
	receiptFixedBytes = wire.TLVHeaderBytes + 72
	hmacTLVBytes      = wire.TLVHeaderBytes + 16
	receiptWords      = 4
	voicePacketBytes  = 172 // RTP header and 20 ms of G.711
)

// defaultSize is that of a G.711 voice packet, or the smallest authenticated
// packet that carries everything.
func defaultSize(authenticated bool) int {
	if authenticated {
		return wire.AuthenticatedBytes + followUpBytes + receiptFixedBytes + 8*receiptWords + hmacTLVBytes
	}
	return voicePacketBytes
}

// planLayout fits as much into size octets as there is room for, in order of
// worth: Receipt with one word, Follow-Up, more words, padding.
func planLayout(size int, authenticated bool) (layout, error) {
	l := layout{size: size, authenticated: authenticated, base: wire.UnauthenticatedBytes, padding: -1}
	if authenticated {
		l.base = wire.AuthenticatedBytes
	}
	if size < l.base || size > maxSize {
		return l, fmt.Errorf("it must be between %d and %d octets of UDP payload", l.base, maxSize)
	}
	free := size - l.base
	if free == 0 {
		return l, nil
	}
	if authenticated {
		if free -= hmacTLVBytes; free < 0 {
			return l, fmt.Errorf("an authenticated packet has either %d or at least %d octets", l.base, l.base+hmacTLVBytes)
		}
	}
	for _, try := range layoutsByWorth() {
		rest := free
		if try.followUp {
			rest -= followUpBytes
		}
		if try.receipt {
			rest -= receiptFixedBytes + 8*try.words
		}
		if rest == 0 || rest >= wire.TLVHeaderBytes {
			l.followUp, l.receipt, l.words = try.followUp, try.receipt, try.words
			if rest > 0 {
				l.padding = rest - wire.TLVHeaderBytes
			}
			return l, nil
		}
	}
	return l, fmt.Errorf("%d octets beyond the base packet are too few for a TLV; take %d or at least %d",
		free, l.base, l.base+wire.TLVHeaderBytes)
}

func layoutsByWorth() []layout {
	var all []layout
	for words := receiptWords; words >= 0; words-- {
		all = append(all, layout{followUp: true, receipt: true, words: words})
	}
	return append(all, layout{receipt: true}, layout{followUp: true}, layout{})
}
