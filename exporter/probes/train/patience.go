package train

import (
	"time"

	"oneway.example/exporter/heavy"
)

// patience is how long to wait, in one direction, for packets that may be lost. Without it
// each lost train, and each size that is too large for the path, costs all of drain_timeout.
// The zero value knows nothing, and waits as configured.
type patience struct {
	largest time.Duration // lag seen so far
	known   bool
}

// What has not come after lags times the largest lag seen, which is longer than any delay
// seen, is lost; but nothing is before a least time, in which a host or a radio link may
// pause. Trains fill a queue, in which the words of both ends wait too, or are lost and come
// again: a session that is silent for so long is given up.
const (
	lags            = 4
	leastIdleProbes = time.Second
	leastIdleTrains = 3 * time.Second
)

// learn takes the lag of a transfer that lost nothing.
func (p *patience) learn(t *heavy.Transfer) {
	if lag, ok := t.Lag(); ok {
		p.largest, p.known = max(p.largest, lag), true
	}
}

// idle is for heavy.Session.TransferWithin; zero: as configured.
func (p *patience) idle(least time.Duration) time.Duration {
	if !p.known {
		return 0
	}
	return max(least, lags*p.largest)
}
