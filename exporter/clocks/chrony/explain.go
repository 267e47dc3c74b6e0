package chrony

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/errtext"
)

// Explain is why the clock is not trusted, with the remedy; empty if it is, or if the reason is not known.
func (m *Monitor) Explain() string {
	check := m.steps.Check()
	k := m.now.Load()
	q := m.qualityAt(k, check, check.Now.Wall)
	fault := m.fault.Load()
	switch {
	case q.State == clock.Silent && fault != nil:
		return *fault
	case q.State == clock.Unsynchronized:
		return k.last.remedy()
	}
	return ""
}

// The remedies for a chronyd that replies.
const (
	unsynchronized = "chronyd replies, but is not synchronized: it has no usable source; look at `chronyc sources` and at `server` in chrony.conf"
	// localMode is for a clock that chronyc shows with a stratum and leap status Normal.
	localMode = "chronyd follows no source, only this host's clock (`local` in chrony.conf); look at `chronyc sources` and at `server` there; " +
		"`trust_local: true` is right only on the host that is the reference of an isolated site"
)

// remedy is the one for a report that is not synchronized.
func (r *report) remedy() string {
	if r.refID == refIDLocal {
		return localMode
	}
	return unsynchronized
}

var _ clock.Explainer = (*Monitor)(nil)

// advice is the remedy if chronyd gives no usable reply. The values are in the order in which they prevail: what one address
// tells may be more than what another does.
type advice uint8

const (
	absent advice = iota // no socket
	denied
	silent
	unusable
)

// String is the remedy.
func (a advice) String() string {
	return [...]string{
		absent:   "is chronyd running? `systemctl start chronyd`, or install the package chrony",
		denied:   "chronyd's socket permits no access: run as root or as chronyd's user, or remove `cmdport 0` from chrony.conf",
		silent:   "chronyd does not reply: `systemctl restart chronyd`; for an address of another host, `cmdallow` in its chrony.conf",
		unusable: "chronyd gives no usable reply",
	}[a]
}

func adviceOf(err error) advice {
	switch reason := causeOf(err); {
	case reason == timeout:
		return silent
	case errors.Is(err, fs.ErrPermission):
		return denied
	case reason == unreachable && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)):
		return absent
	case reason == unreachable && isIPv6Missing(err):
		return absent
	}
	return unusable
}

// isIPv6Missing reports whether this host lacks the address family of the address.
func isIPv6Missing(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.ENETUNREACH)
}

// explain returns the remedy with all that was tried, and the error that prevails, of the last one of each address.
func explain(addresses []address, last []error) (text string, worst error) {
	var tried []string
	for i, err := range last {
		if worst == nil || adviceOf(err) > adviceOf(worst) {
			worst = err
		}
		what := errtext.WordsWithin("chrony", err)
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			what = errno.Error()
		} else if causeOf(err) == timeout {
			what = fmt.Sprintf("no reply in %v", queryTimeout)
		}
		tried = append(tried, addresses[i].String()+": "+what)
	}
	return adviceOf(worst).String() + "; tried " + strings.Join(tried, ", "), worst
}
