// Package hostid detects whether two programs run on the same kernel, and therefore read the same clock.
//
// Containers, network namespaces and a prober on the host of its reflector share one CLOCK_REALTIME: the delay between them
// has no clock error, whether the clock is synchronized or not. The identity is Linux's boot identifier, 122 random bits
// that the kernel draws when it starts. It never leaves the host: only a token of it is compared, with a new salt for each
// run. (Virtual machines resumed from one snapshot share the identifier too; see the decision record.)
package hostid

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
)

// ID is the identity of a kernel. The zero value is an unknown one.
type ID struct{ boot [sha256.Size]byte }

// bootFile is described in random(4), Linux 2.3.16 and later.
const bootFile = "/proc/sys/kernel/random/boot_id"

// Read returns this kernel's identity; unknown if it cannot be read.
func Read() ID {
	text, err := os.ReadFile(bootFile)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ID{}
	}
	return ID{sha256.Sum256(text)}
}

// Token is the value to send to others: equal for equal kernels and salts. 0 means an unknown kernel and equals no other
// token.
func (id ID) Token(salt uint32) uint32 {
	if id == (ID{}) {
		return 0
	}
	var salted [sha256.Size + 4]byte
	binary.BigEndian.PutUint32(salted[copy(salted[:], id.boot[:]):], salt)
	sum := sha256.Sum256(salted[:])
	return max(1, binary.BigEndian.Uint32(sum[:]))
}
