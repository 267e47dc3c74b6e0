package link

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestUseIsSeenNowAndAtItsEndUntilItIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewTable(nil)
		wants := func(want map[Use]time.Time) {
			t.Helper()
			if diff := cmp.Diff(want, l.Uses(), cmpopts.EquateEmpty(), cmpopts.EquateComparable(Use{})); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		}
		wants(nil)
		one := Use{Link: "uplink", Path: "a"}
		first, second := l.Fill(one), l.Fill(one)
		remote := l.Fill(Use{Link: "access", Peer: netip.MustParseAddr("::ffff:192.0.2.1")})
		remote()
		begun := time.Now()
		access := Use{Link: "access", Peer: netip.MustParseAddr("192.0.2.1")}
		time.Sleep(2 * time.Second) // simulated time (synctest)
		first()
		first() // must not end the second
		wants(map[Use]time.Time{one: time.Now(), access: begun})
		second()
		ended := time.Now()
		time.Sleep(usesKept) // simulated time (synctest)
		wants(map[Use]time.Time{one: ended})
		time.Sleep(time.Nanosecond) // simulated time (synctest)
		wants(nil)
		third := l.Fill(one)
		time.Sleep(time.Hour) // simulated time (synctest)
		wants(map[Use]time.Time{one: time.Now()})
		third()
		if len(l.uses) != 1 {
			t.Errorf("%d uses in memory, want 1", len(l.uses))
		}
	})
}
