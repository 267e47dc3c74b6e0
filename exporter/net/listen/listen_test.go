package listen

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAddressesThatFailAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		var mu sync.Mutex
		all := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:862"), netip.MustParseAddrPort("192.0.2.2:862"), netip.MustParseAddrPort("[fe80::1%eth7]:862")}
		missing := map[netip.AddrPort]bool{all[1]: true, all[2]: true}
		var opened []netip.AddrPort
		a := New(slog.New(slog.NewTextHandler(&said, nil)), all)
		err := a.Open(func(i int) error {
			mu.Lock()
			defer mu.Unlock()
			one := all[i]
			if missing[one] {
				return errors.New("not here")
			}
			opened = append(opened, one)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); a.Retry(t.Context()) }()
		for i, left := range [][]netip.AddrPort{{all[1], all[2]}, {all[2]}, nil} {
			mu.Lock()
			delete(missing, all[i])
			mu.Unlock()
			time.Sleep(RetryInterval + time.Second) // simulated time (synctest)
			var got []netip.AddrPort
			for _, f := range a.Failed() {
				got = append(got, f.Address)
			}
			mu.Lock()
			if !slices.Equal(got, left) || !slices.Equal(opened, all[:i+1]) {
				t.Errorf("%v without a socket, want %v; opened %v", got, left, opened)
			}
			mu.Unlock()
		}
		<-ended
		if n := strings.Count(said.String(), "\n"); n != 4 || strings.Count(said.String(), "level=WARN") != 2 {
			t.Errorf("%d lines, want two warnings, and two lines when the addresses are there:\n%s", n, &said)
		}
	})
}

func TestNoAddressIsAnError(t *testing.T) {
	all := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:862"), netip.MustParseAddrPort("192.0.2.2:862")}
	a := New(slog.New(slog.DiscardHandler), all)
	err := a.Open(func(i int) error { return errors.New("no " + all[i].String()) })
	if err == nil || err.Error() != "no 192.0.2.1:862\nno 192.0.2.2:862" || len(a.Failed()) != 0 {
		t.Errorf("%v, %v", err, a.Failed())
	}
}
