package option

import (
	"net/netip"
	"testing"
)

// TestListenAddressesThatCannotBothBeBound: an element that could not be read is the zero Listen, which is also ":0".
func TestListenAddressesThatCannotBothBeBound(t *testing.T) {
	for _, c := range []struct {
		all  []string
		want string
	}{
		{[]string{"192.0.2.1:862", "127.0.0.1:862", ":863"}, ""},
		{[]string{"0.0.0.0:862", "[::]:862"}, ""},
		{[]string{"0.0.0.0:862", "[::1]:862"}, ""},
		{[]string{"127.0.0.1:862", ":862"}, `listen[0] is "127.0.0.1:862", which listen[1], ":862", includes; remove one of them`},
		{[]string{":862", "[::]:862"}, `listen[1] is "[::]:862", which listen[0], ":862", includes; remove one of them`},
		{[]string{"[::]:862", "[fe80::1%eth0]:862"}, `listen[1] is "[fe80::1%eth0]:862", which listen[0], "[::]:862", includes; remove one of them`},
		{[]string{"localhost:862", ":0"}, ""},
		{[]string{"127.0.0.1:0", "127.0.0.1:0"}, ""},
		{[]string{":862", ":0", ":862"}, `listen[2] is ":862" for the second time`},
		{[]string{"127.0.0.1:862", "[::ffff:127.0.0.1]:862"}, `listen[1] is "127.0.0.1:862" for the second time`},
	} {
		all := make(Listens, len(c.all))
		for i, text := range c.all {
			_ = all[i].UnmarshalText([]byte(text)) // its error is reported in its place
		}
		got := ""
		if err := all.Check(862); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.all, got, c.want)
		}
	}
}

func TestListenAddressesOfTwoServersCannotBothBeBound(t *testing.T) {
	reflector := Listens{{Port: 862}, {Addr: netip.MustParseAddr("192.0.2.1"), Port: 8620}, {Port: 0}}
	for text, refused := range map[string]bool{
		":8620": true, "0.0.0.0:8620": true, "192.0.2.1:8620": true, "[::1]:862": true,
		"192.0.2.2:8620": false, "[::]:8620": false, ":8621": false, ":0": false,
	} {
		var l Listen
		if err := l.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := (Listens{l}).CheckBeside("reflector", reflector); (err != nil) != refused {
			t.Errorf("%s: %v, want an error: %v", text, err, refused)
		}
	}
}
