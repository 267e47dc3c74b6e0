package load

// Lengths of the packets that prove an address. A Challenge is never longer than the
// Hello that it answers: nobody can have us send more than he sent himself.
const (
	HelloBytes     = HeaderBytes + 64
	MaxCookieBytes = HelloBytes - HeaderBytes
)

// AppendHello appends a Hello; the rest of it is zero.
func AppendHello(b []byte, session uint64, flags uint8) []byte {
	b = Header{Type: Hello, Flags: flags, Session: session, PayloadBytes: HelloBytes}.AppendTo(b)
	return append(b, make([]byte, MaxCookieBytes)...)
}

// AppendChallenge appends a Challenge with a cookie of at most MaxCookieBytes.
func AppendChallenge(b []byte, session uint64, cookie []byte) []byte {
	cookie = cookie[:min(len(cookie), MaxCookieBytes)]
	b = Header{Type: Challenge, Session: session, PayloadBytes: uint16(HeaderBytes + len(cookie))}.AppendTo(b)
	return append(b, cookie...)
}

// Cookie is that of a Challenge whose header h Parse has found good; nil if the packet
// is not as long as it says, or none of that kind.
func Cookie(b []byte, h Header) []byte {
	if h.Type != Challenge || len(b) != int(h.PayloadBytes) || len(b) > HelloBytes {
		return nil
	}
	return b[HeaderBytes:]
}
