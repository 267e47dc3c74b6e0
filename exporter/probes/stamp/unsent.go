package stamp

import (
	"log/slog"
	"time"
)

// unsent notices when this host begins to refuse a session's packets (its firewall, its routes, a
// full queue), and when it has taken them for a while.
type unsent struct {
	log  *slog.Logger  // nil: nobody is told
	err  error         // of the last that was refused since the last look; nil: none was
	last time.Duration // monotonic; the last look that found one
	told bool
}

// calm is after which time without a refused packet a host is taken to send again; of a session
// that is slow, three intervals.
const calm = 3 * time.Second

// look returns what there is to be told; nil: nothing.
func (u *unsent) look(now, interval time.Duration) (tell func()) {
	log, err := u.log, u.err
	switch {
	case err != nil:
		u.err, u.last = nil, now
		if u.told || log == nil {
			return nil
		}
		u.told = true
		return func() { log.Warn("The path has a fault", "fault", string(unsendable), "err", err) }
	case u.told && now-u.last > max(calm, 3*interval):
		u.told = false
		return func() { log.Info("The path's fault is over", "fault", string(unsendable)) }
	}
	return nil
}

// tell logs what look finds, with no lock held: packets must not wait for a log.
func (s *session) tell(now time.Duration) {
	s.mu.Lock()
	tell := s.unsent.look(now, s.opts.Interval)
	s.mu.Unlock()
	if tell != nil {
		tell()
	}
}
