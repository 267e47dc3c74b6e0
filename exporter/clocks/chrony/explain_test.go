package chrony

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/instant"
	"oneway.example/tests/await"
)

// TestAbsenceOfChronydHasItsRemedy: each state of a real chronyd, or of none, has a text of its own and one line in the log.
func TestAbsenceOfChronydHasItsRemedy(t *testing.T) {
	mute, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for name, c := range map[string]struct {
		address func(t *testing.T) string
		want    []string
	}{
		"none": {
			func(t *testing.T) string { return "unix://" + filepath.Join(t.TempDir(), "chronyd.sock") },
			[]string{"is chronyd running? `systemctl start chronyd`, or install the package chrony; tried unix:///", "chronyd.sock: no such file or directory"},
		},
		"mute": {
			func(*testing.T) string { return "udp://" + mute.LocalAddr().String() },
			[]string{"chronyd does not reply: `systemctl restart chronyd`", "; tried " + "udp://" + mute.LocalAddr().String() + ": no reply in 500ms"},
		},
		"unsynchronized": {
			func(t *testing.T) string { return "unix://" + startDaemon(t, "").dir + "/run/chronyd.sock" },
			[]string{unsynchronized},
		},
		"local mode": {
			func(t *testing.T) string {
				return "unix://" + startDaemon(t, "local stratum 8").dir + "/run/chronyd.sock"
			},
			[]string{"chronyd follows no source, only this host's clock (`local` in chrony.conf)", "`trust_local: true`"},
		},
		"synchronized": {
			func(t *testing.T) string {
				return "unix://" + startDaemon(t, "local stratum 1").dir + "/run/chronyd.sock"
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said await.Text
			m, err := New(Options{
				Address: c.address(t), Interval: 20 * time.Millisecond, TrustLocal: name == "synchronized", holdDown: time.Millisecond, silentAfter: time.Second,
				Log: slog.New(slog.NewTextHandler(&said, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			stop := clocktest.Start(t, m.Run, nil)
			defer stop()
			if len(c.want) == 0 {
				await.That(t, "the clock is trusted", func() bool { return m.Quality(instant.Now()).Synchronized() })
				if got := m.Explain(); got != "" {
					t.Errorf("got %q, want nothing", got)
				}
				return
			}
			for _, want := range c.want {
				await.That(t, want, func() bool { return strings.Contains(m.Explain(), want) })
			}
			line := func() int { return strings.Count(said.String(), c.want[0]) }
			await.That(t, "a line in the log", func() bool { return line() > 0 })
			time.Sleep(200 * time.Millisecond) // ten more requests, of which none may log: a line that is absent has no event to wait for
			if line() != 1 {
				t.Errorf("%d lines, want one:\n%s", line(), said.String())
			}
		})
	}
}

func TestReasonOfSeveralAddressesIsTheOneThatTellsMost(t *testing.T) {
	addresses, err := parseAddresses("")
	if err != nil {
		t.Fatal(err)
	}
	gone, closed := &queryError{unreachable, os.ErrNotExist}, &queryError{unreachable, syscall.ECONNREFUSED}
	for want, errs := range map[string][]error{
		"is chronyd running?":                                 {gone, closed, &queryError{unreachable, syscall.EADDRNOTAVAIL}},
		"or remove `cmdport 0` from chrony.conf":              {&queryError{unreachable, syscall.EACCES}, closed, closed},
		"chronyd does not reply: `systemctl restart chronyd`": {gone, &queryError{timeout, os.ErrDeadlineExceeded}, closed},
		"chronyd gives no usable reply":                       {gone, &queryError{refused, os.ErrInvalid}, closed},
	} {
		got, _ := explain(addresses, errs)
		if !strings.Contains(got, want) || !strings.Contains(got, "tried unix:///run/chrony/chronyd.sock: ") || !strings.Contains(got, ", udp://127.0.0.1:323: ") {
			t.Errorf("got %q, want %q with all addresses", got, want)
		}
	}
}
