package capture

import (
	"bytes"
	"testing"
)

// FuzzPacket checks that a packet accepted as UDP is complete, and that its fields are those of the input.
func FuzzPacket(f *testing.F) {
	packet := append([]byte{0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}, 0, 7, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4)
	f.Add(packet)
	f.Add(packet[:28])
	f.Add(append(bytes.Clone(packet[:24]), 0, 0, 0, 0))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = Stamp(b) // control messages come from the kernel
		p, ok := parse(b)
		if !ok {
			return
		}
		if p.Bytes < 0 {
			t.Errorf("packet %x: payload of %d bytes", b, p.Bytes)
		}
		head := b[28:min(len(b), 28+len(p.Head))]
		if !bytes.Equal(p.Head[:len(head)], head) || !bytes.Equal(p.Head[len(head):], make([]byte, len(p.Head)-len(head))) {
			t.Errorf("packet %x: payload starts with %x", b, p.Head)
		}
		if p.Source != uint16(b[20])<<8|uint16(b[21]) || p.Destination != uint16(b[22])<<8|uint16(b[23]) {
			t.Errorf("packet %x: ports %d to %d", b, p.Source, p.Destination)
		}
	})
}
