package option

import (
	"encoding"
	"testing"
)

func TestErrorsOfValuesOfferWhatMayBeMeant(t *testing.T) {
	for _, c := range []struct {
		into       encoding.TextUnmarshaler
		text, want string
	}{
		{new(Rate), "12M", "write 12Mbit for bits a second, or 96Mbit if 12 MB (bytes) a second are meant"},
		{new(Rate), "1.5m", "write 1.5Mbit for bits a second, or 12Mbit if 1.5 MB (bytes) a second are meant"},
		{new(Rate), "12MB/s", "a rate is in bits a second; write 96Mbit for this many bytes, or 12Mbit for bits"},
		{new(Rate), "10MiB", "a rate is in bits a second; write 83.88608Mbit for this many bytes, or 10Mbit for bits"},
		{new(Rate), "1.5KiB/s", "a rate is in bits a second; write 12.288kbit for this many bytes, or 1.5Kbit for bits"},
		{new(Rate), "2000Gbit", errLarge.Error()},
		{new(Rate), "1.5T", errLarge.Error()},
		{new(Rate), "1.5Tbit", errLarge.Error()},
		{new(Rate), "2000GB", errLarge.Error()},
		{new(Rate), "2000G", errLarge.Error()},
		{new(Rate), "500G", "write 500Gbit for bits a second"},
		{new(Rate), "10mbit", "write 10Mbit"},
		{new(Rate), "10Mibit", "a rate has decimal prefixes; write 10.48576Mbit"},
		{new(Rate), "12", "it has no unit; write 12bit, 12kbit or 12Mbit"},
		{new(Rate), "fast", errRate.Error()},
		{new(Bytes), "12M", "write 12MB for bytes, or 1500kB if 12 Mbit are meant"},
		{new(Bytes), "500Mbit", "an amount of data is in bytes; write 62500kB for this many bits, or 500MB for bytes"},
		{new(Bytes), "3k", "write 3kB for bytes, or 375B if 3 kbit are meant"},
		{new(Bytes), "1.5G", "write 1.5GB for bytes, or 187.5MB if 1.5 Gbit are meant"},
		{new(Bytes), "1T", "write 1TB for bytes, or 125GB if 1 Tbit are meant"},
		{new(Bytes), "1.5Gbit", "an amount of data is in bytes; write 187.5MB for this many bits, or 1.5GB for bytes"},
		{new(Bytes), "10 MiB", "write 10MiB, without a space"},
		{new(Bytes), "much", errBytes.Error()},
		{new(Listen), "862", `write ":862" for all addresses of this host, or an address and a port, such as "192.0.2.1:862"`},
		{new(Listen), "2001:db8::7:862", `an IPv6 address with a port needs brackets; write "[2001:db8::7]:862"`},
		{new(Listen), "[2001:db8::7]", `it has no port; write "[2001:db8::7]:862"`},
		{new(Listen), "*:862", `write ":862", which means all addresses of this host`},
		{new(Listen), "localhost:862", `"localhost" is no address; write an address of this host, such as "127.0.0.1:862", or ":862" for all`},
		{new(Listen), "[fe80::1%e h]:862", "it has a space in it; remove the space"},
		{new(Listen), ":99999", errPort.Error()},
		{new(Listen), "http://192.0.2.1:862", errListen.Error()},
	} {
		if err := c.into.UnmarshalText([]byte(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%T %q: error is %v, want %s", c.into, c.text, err, c.want)
		}
	}
}

func TestOfferedAmountsAreAccepted(t *testing.T) {
	for text, want := range map[string]Bytes{"1500kB": 1_500_000, "375B": 375, "62500kB": 62_500_000, "1500B": 1500, "1.5GB": 1_500_000_000, "187.5MB": 187_500_000, "1TB": 1e12} {
		var got Bytes
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestOfferedRatesAreAccepted(t *testing.T) {
	for text, want := range map[string]Rate{"83.88608Mbit": 10 << 20, "1.5Kbit": 187.5} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, float64(got), err, float64(want))
		}
	}
}
