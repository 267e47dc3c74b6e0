// Package hostid tells whether two programs run on the same kernel, and so read
// the very same clock.
//
// Containers, network namespaces and a prober beside its reflector share one
// CLOCK_REALTIME: the delay between them has no clock error at all, whether or
// not anything disciplines that clock. The proof is Linux's boot identifier, 122
// random bits that the kernel draws when it starts. It never leaves the host:
// what is compared is a token of it, salted anew for every run. (Virtual machines
// resumed from one snapshot share it too; see the decision record.)
package hostid

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
)

// ID is a kernel's identity. The zero value is an unknown one.
type ID struct{ boot [sha256.Size]byte }

// bootFile is random(4)'s, Linux 2.3.16 and later.
const bootFile = "/proc/sys/kernel/random/boot_id"

// Read finds this kernel's identity; unknown where there is none to be had.
func Read() ID {
	text, err := os.ReadFile(bootFile)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ID{}
	}
	return ID{sha256.Sum256(text)}
}

// Token is what may be told to others: equal for equal kernels and salts. 0
// stands for an unknown kernel and equals nothing.
func (id ID) Token(salt uint32) uint32 {
	if id == (ID{}) {
		return 0
	}
	var salted [sha256.Size + 4]byte
	binary.BigEndian.PutUint32(salted[copy(salted[:], id.boot[:]):], salt)
	sum := sha256.Sum256(salted[:])
	return max(1, binary.BigEndian.Uint32(sum[:]))
}
