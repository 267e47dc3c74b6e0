package reflector

import "time"

// dropsBefore is how far back, at least and at most twice that, the drops of a socket belong
// to a session that begins: its first packets may be among them.
const dropsBefore = 2 * time.Second

// dropCount is how many packets the kernel has dropped at a socket, or the shard has refused of
// those without a session, as of the batch, and as of dropsBefore ago.
type dropCount struct {
	total  uint64
	before [2]uint64 // the older first; the newer one as of turned
	turned time.Duration
}

// update takes the total.
func (d *dropCount) update(total uint64, now time.Duration) {
	if age := now - d.turned; age >= 2*dropsBefore {
		d.before, d.turned = [2]uint64{d.total, d.total}, now
	} else if age >= dropsBefore {
		d.before, d.turned = [2]uint64{d.before[1], d.total}, now
	}
	d.total = total
}
