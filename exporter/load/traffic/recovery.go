package traffic

import "time"

// Recovery is until when TCP may wait before it sends again after interruptions of the path, as other packets show them: up to as
// long again as each took (RFC 6298 section 5.5). The zero value has seen none.
type Recovery struct{ until time.Time }

// shortest is the least time without a packet that is an interruption: some in a row are missing then.
const shortest = 1500 * time.Millisecond

// Observe returns the time until which TCP may wait; zero: it need not. quiet is the time since the last packet that does not
// depend on the connection, for which Observe is called at least once a second; above IdleTimeout it is no interruption.
func (r *Recovery) Observe(now time.Time, quiet time.Duration) time.Time {
	if until := now.Add(quiet); quiet > shortest && quiet <= IdleTimeout && until.After(r.until) {
		r.until = until
	}
	return r.until
}
