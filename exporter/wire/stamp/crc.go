package stamp

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SealCRC writes the CRC-32C of the whole payload into its Receipt; without a
// Receipt it does nothing. The octets of the CRC itself and of the HMACs, which
// are written later, count as zero. All else, the flags of the TLVs included, has
// to be final.
func SealCRC(b []byte, authenticated bool) {
	if s, ok := findSeal(b, authenticated); ok {
		be.PutUint32(b[s.crc:], s.sum(b, authenticated))
	}
}

// CheckCRC reports whether the payload is as it was sealed. False without a
// Receipt.
func CheckCRC(b []byte, authenticated bool) bool {
	s, ok := findSeal(b, authenticated)
	return ok && be.Uint32(b[s.crc:]) == s.sum(b, authenticated)
}

// seal is where the fields of a packet are that its CRC cannot cover.
type seal struct {
	crc int
	// mac is the value of the HMAC TLV behind the Receipt; 0: there is none.
	mac int
}

// findSeal walks the TLVs. What does not parse ends the walk, and is covered.
func findSeal(b []byte, authenticated bool) (s seal, ok bool) {
	for at := baseBytes(authenticated); len(b)-at >= TLVHeaderBytes; {
		value := at + TLVHeaderBytes
		end := value + int(be.Uint16(b[at+2:]))
		if end > len(b) {
			break
		}
		switch kind := TLVType(b[at+1]); {
		case !ok && kind == TypeReceipt && isReceipt(b[value:end]):
			s.crc, ok = value+crcOffset, true
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
		crc, from = crcHole(crc, b[:hmacAt], hmacBytes), AuthenticatedBytes
	}
	crc, from = crcHole(crc, b[from:s.crc], crcBytes), s.crc+crcBytes
	if s.mac != 0 {
		crc, from = crcHole(crc, b[from:s.mac], hmacBytes), s.mac+hmacBytes
	}
	return crc32.Update(crc, castagnoli, b[from:])
}

// crcHole goes on over b and n octets that count as zero.
func crcHole(crc uint32, b []byte, n int) uint32 {
	return crc32.Update(crc32.Update(crc, castagnoli, b), castagnoli, zeros[:n])
}

func baseBytes(authenticated bool) int {
	if authenticated {
		return AuthenticatedBytes
	}
	return UnauthenticatedBytes
}
