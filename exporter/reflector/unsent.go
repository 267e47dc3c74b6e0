package reflector

import (
	"log/slog"
	"slices"
	"time"
)

// unsent notices when this host begins to refuse answers (its firewall, its routes, a full queue),
// and when it has taken all for a while.
type unsent struct {
	failed uint64        // in all, at the last look
	last   time.Duration // the last look that found more
	told   bool
}

// calm is after which time without a refused answer a host is taken to send again. Strangers can have
// answers refused, by the addresses that they ask from: they get no more than two lines in it.
const calm = time.Minute

func (u *unsent) look(s *Stats, now time.Duration, log *slog.Logger) {
	failed := s.Results[SendFailed]
	more := failed - u.failed
	u.failed = failed
	switch {
	case more > 0:
		u.last = now
		if !u.told {
			u.told = true
			log.Warn("This host refuses to send answers", "answers", more, "errors", errorsOf(s))
		}
	case u.told && now-u.last > calm:
		u.told = false
		log.Info("This host sends all answers again", "refused", failed)
	}
}

// errorsOf are the kernel's words for what has been refused so far.
func errorsOf(s *Stats) (all []string) {
	for errno := range s.SendErrors {
		all = append(all, errno.Error())
	}
	slices.Sort(all)
	return all
}
