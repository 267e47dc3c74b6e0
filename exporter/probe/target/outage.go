package target

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"
)

// quietTime is the least time between two outages of one path in the log, and between two changes of its address: a path
// that flaps has at most one line for its end and one for its return in this time.
const quietTime = 5 * time.Minute

// outage is the present or the last outage of a host.
type outage struct {
	present, logged bool
	port            bool          // another source port is logged
	since           time.Duration // monotonic: its begin
	line            time.Duration // monotonic: when the last one was logged; 0: never
	skipped         int           // outages since, that were not logged
}

// LogReplies logs that the host has no replies any more, and that it has replies again. silent is how long it has had none, and
// why is the reason, which is called only for the log. now is monotonic.
func (t *Target) LogReplies(up bool, now, silent time.Duration, why func() string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.outage
	switch {
	case up && (o == nil || !o.present):
	case up:
		if o.present = false; o.logged {
			t.Log().Info("The path has replies again", "peer", t.path.Peer, "down_seconds", (now - o.since).Round(time.Second).Seconds())
		} else {
			o.skipped++
		}
	case o == nil || !o.present:
		o = cmp.Or(o, new(outage))
		o.present, o.logged, o.port, o.since = true, false, false, now-silent
		t.outage = o
		t.logOutage(now, why)
	case !o.logged:
		t.logOutage(now, why)
	}
}

// LogPort logs, once in an outage that is in the log, that the packets leave from another source port.
func (t *Target) LogPort(port uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.outage; o != nil && o.present && o.logged && !o.port {
		o.port = true
		t.Log().Info("The path has no replies and sends from another source port, in case a NAT or a firewall has a wrong entry for the previous one; further changes are not logged",
			"peer", t.path.Peer, "port", port)
	}
}

// logOutage logs the present outage, unless another one was logged recently.
func (t *Target) logOutage(now time.Duration, why func() string) {
	o := t.outage
	if o.line != 0 && now-o.line < quietTime {
		return
	}
	attributes := []any{"peer", t.path.Peer, "reason", t.silence(why())}
	if o.skipped > 0 {
		attributes = append(attributes, slog.Int("outages_not_logged", o.skipped))
	}
	o.logged, o.line, o.skipped = true, now, 0
	t.Log().Warn("The path has no replies", attributes...)
}

// changes are the changes of a host's address in the log: at most one in quietTime.
type changes struct {
	line    time.Time // of the last one; the zero Time: never
	skipped int       // since then
}

func (c *changes) log(to *slog.Logger, from, now netip.AddrPort) {
	if !c.line.IsZero() && time.Since(c.line) < quietTime {
		c.skipped++
		return
	}
	attributes := []any{"old", from.String(), "new", now.String()}
	if c.skipped > 0 {
		attributes = append(attributes, slog.Int("changes_not_logged", c.skipped))
	}
	to.Info("Address of the peer has changed", attributes...)
	c.line, c.skipped = time.Now(), 0
}
