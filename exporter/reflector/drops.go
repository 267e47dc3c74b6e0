package reflector

import "time"

// dropsBefore is how far back, at least and at most twice that, the drops of a socket belong
// to a session that begins: its first packets may be among them.
const dropsBefore = 2 * time.Second

// socketDrops are how many packets the kernel has dropped at a socket, as of the batch, and
// as of dropsBefore ago.
type socketDrops struct {
	total  uint64
	before [2]uint64 // the older first; the newer one as of turned
	turned time.Duration
}

// update takes the socket's total.
func (d *socketDrops) update(total uint64, now time.Duration) {
	if age := now - d.turned; age >= 2*dropsBefore {
		d.before, d.turned = [2]uint64{d.total, d.total}, now
	} else if age >= dropsBefore {
		d.before, d.turned = [2]uint64{d.before[1], d.total}, now
	}
	d.total = total
}
